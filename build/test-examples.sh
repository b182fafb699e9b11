#!/bin/bash
# The examples of the Go client, in memory and against a local server.
. "$(dirname "$0")/lib.sh"
need_server
lint_module examples/go
go -C examples/go test -count=1 -timeout 20m ./...
