#!/bin/bash
# What must pass for a submission, in 25 minutes on two cores. ONLY="chaos failover" runs these parts. The workflow ci.yml
# runs the parts in several jobs.
. "$(dirname "$0")/lib.sh"
export SERVERS=${SERVERS:-redis70 valkey91} # the oldest, and the newest
run_parts lint unit checkers servers docker deploy chaos examples languages playground gateway monitoring failover packages \
  bench
