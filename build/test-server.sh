#!/bin/bash
# The black-box tests, random calls against exact models and the Go client, against a local server.
. "$(dirname "$0")/lib.sh"
need_server
need 'lua5.1 lua5.4' lua5.1 lua5.4
go test -count=1 -timeout 40m -vet=off ${SHORT:+-short} ./tests/server ./tests
go test -count=1 -timeout 20m -vet=off ${SHORT:+-short} -run Server_ ./throttle ./tests/world
GOTHROTTLE_SCRIPT=1 go test -count=1 -timeout 20m -vet=off ${SHORT:+-short} -run Server_ ./throttle
