#!/bin/bash
# Cuts off a master under load: one under Sentinel and one of a cluster. Network namespaces need root.
. "$(dirname "$0")/lib.sh"
need ip iproute2
need_server
go test -count=1 -v -timeout 10m ./tests/failover
