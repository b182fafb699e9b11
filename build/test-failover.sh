#!/bin/bash
# Cuts off a master under load: one with a replica, one under Sentinel and one of a cluster. Then takes servers' disks away.
# Network namespaces and file systems need root.
. "$(dirname "$0")/lib.sh"
need ip iproute2
need_server
go test -count=1 -v -timeout 10m ./tests/failover ./tests/storage
