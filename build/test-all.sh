#!/bin/bash
# What must pass for a submission, in 25 minutes on two cores. ONLY="chaos failover" runs these parts. The workflow ci.yml
# runs the parts in several jobs.
. "$(dirname "$0")/lib.sh"
export SERVERS=${SERVERS:-redis70 valkey91} # the oldest, and the newest
# One list has the parts that start a Docker engine.
run_parts 'docker deploy packages languages examples' \
  'lint unit proofs gateway checkers servers chaos playground monitoring failover bench'
