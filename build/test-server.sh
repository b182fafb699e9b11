#!/bin/bash
# The black-box tests and the Go client, against a local server.
. "$(dirname "$0")/lib.sh"
need_server
need 'lua5.1 lua5.4' lua5.1 lua5.4
go test -count=1 -timeout 40m -vet=off ${SHORT:+-short} ./tests
go test -count=1 -timeout 20m -vet=off ${SHORT:+-short} -run Server_ ./throttle
GOTHROTTLE_SCRIPT=1 go test -count=1 -timeout 20m -vet=off ${SHORT:+-short} -run Server_ ./throttle
