#!/bin/bash
# Starts a server in memory on 127.0.0.1, for tests in any language: faults and the clock are commands. PORT is where, by
# default a free port. The first line of the output says which, as in ADDR=127.0.0.1:40001. build/memory.sh -help lists
# the options, and commands/memory/serve/main.go the commands.
. "$(dirname "$0")/lib.sh"
need_go
mkdir -p build/out
CGO_ENABLED=0 go build -buildvcs=false -o build/out/gothrottle-memory ./commands/memory/serve >&2
exec build/out/gothrottle-memory -port "${PORT:-0}" "$@"
