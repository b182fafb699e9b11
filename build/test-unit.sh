#!/bin/bash
# The tests that need no server, once. Lint has vetted the code.
. "$(dirname "$0")/lib.sh"
need_cc
go test -count=1 -vet=off ${SHORT:+-short} ./funnel/... ./commands/... ./cgo/... ./throttle/... ./build ./tests/planted ./tests/clients
