#!/bin/bash
# The simulation: random steps, and faults that it must find. SEED=7 repeats a run, SEED=7/12 one world of it.
. "$(dirname "$0")/lib.sh"
need_go

STEPS=${STEPS:-10000000} go test -count=1 -timeout 30m -v -run '^TestSim' ./tests/sim | grep -v '^=== '
