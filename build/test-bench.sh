#!/bin/bash
# The tests of what make bench runs, and the bounds on instructions. No time has a bound. NIGHTLY=1 also runs each row once in
# short. CHECK=all counts the instructions of all rows on all servers.
. "$(dirname "$0")/lib.sh"
lint_module bench
CHECK='' go -C bench test -count=1 ./... # the counts come last
[ -n "${NIGHTLY:-}" ] || exec build/bench.sh check
server=$(local_server)
for what in costs latency client holds quick; do
  QUICK=1 ROUNDS=1 SERVER=$server build/bench.sh "$what" >build/out/bench.log || die "$(tail -n 30 build/out/bench.log)"
done
build/bench.sh check
