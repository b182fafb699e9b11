#!/bin/bash
# Hangs a master, under Sentinel and in a cluster, and counts what the Go client is granted.
. "$(dirname "$0")/lib.sh"
need_server
go test -count=1 -v -timeout 10m ./tests/failover
