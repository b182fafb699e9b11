#!/bin/bash
# The black-box tests, random calls against exact models and the Go client, against a local server.
. "$(dirname "$0")/lib.sh"
need_server
# shellcheck disable=SC2086 # SHORT is -short or nothing
go test -count=1 -timeout 40m -vet=off ${SHORT:-} ./tests/server ./tests
# shellcheck disable=SC2086
go test -count=1 -timeout 20m -vet=off ${SHORT:-} -run Server_ ./throttle ./commands
