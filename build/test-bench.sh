#!/bin/bash
# The tests of what make bench runs. They measure nothing.
. "$(dirname "$0")/lib.sh"
need_go
lint_module bench
go -C bench test -count=1 ./...
