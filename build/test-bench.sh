#!/bin/bash
# The tests of what make bench runs, each of its rows once in short, and the bounds on instructions. No time has a bound.
. "$(dirname "$0")/lib.sh"
need_go
lint_module bench
go -C bench test -count=1 ./...
server=$(build/server.sh) || die 'no server to measure: please install redis-server (7.0 or newer) or valkey-server.'
for what in costs client; do
  QUICK=1 ROUNDS=1 SERVER=$server build/bench.sh "$what" >build/out/bench.log || die "$(tail -n 30 build/out/bench.log)"
done
build/bench.sh check
