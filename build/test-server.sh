#!/bin/bash
# The black-box tests and the Go client, against a local server.
. "$(dirname "$0")/lib.sh"
build/module.sh
server=$(build/server.sh) || die 'no server to test against: please install redis-server (7.0 or newer) or valkey-server.'
"$server" --version
export GOTHROTTLE_MODULE=$PWD/build/out/gothrottle.so GOTHROTTLE_SERVER=$server
go test -count=1 -timeout 40m ./tests/server ./tests
go test -count=1 -timeout 20m -run Server_ ./throttle
