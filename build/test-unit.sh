#!/bin/bash
# The tests that need no server, once. Lint has vetted the code.
. "$(dirname "$0")/lib.sh"
need_cc
# shellcheck disable=SC2086 # SHORT is -short or nothing
go test -count=1 -vet=off ${SHORT:-} ./funnel/... ./commands/... ./cgo/... ./throttle/... ./build ./tests/planted
