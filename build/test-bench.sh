#!/bin/bash
# The tests of what make bench runs, each of its rows once in short, and the bounds on instructions. No time has a bound.
# CHECK=all counts the instructions of all rows on all servers.
. "$(dirname "$0")/lib.sh"
lint_module bench
CHECK='' go -C bench test -count=1 ./... # the counts come last
server=$(local_server)
for what in costs client; do
  QUICK=1 ROUNDS=1 SERVER=$server build/bench.sh "$what" >build/out/bench.log || die "$(tail -n 30 build/out/bench.log)"
done
build/bench.sh check
