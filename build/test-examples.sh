#!/bin/bash
# The examples of the Go client, in memory and against a local server.
. "$(dirname "$0")/lib.sh"
need_go

build/module.sh
server=$(build/server.sh) || die 'no server to test against: please install redis-server (7.0 or newer) or valkey-server.'
export GOTHROTTLE_MODULE=$PWD/build/out/gothrottle.so GOTHROTTLE_SERVER=$server
lint_module examples/go
go -C examples/go test -count=1 -timeout 20m ./...
