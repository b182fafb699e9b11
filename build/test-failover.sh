#!/bin/bash
# Cuts off a master under load: one with a replica, one under Sentinel and one of a cluster. Then takes servers' disks away.
# Network namespaces and file systems need root.
. "$(dirname "$0")/lib.sh"
have ip || ! can_install || apt_install iproute2
build/module.sh
server=$(build/server.sh) || die 'no server to test against: please install redis-server (7.0 or newer) or valkey-server.'
"$server" --version
GOTHROTTLE_MODULE=$PWD/build/out/gothrottle.so GOTHROTTLE_SERVER=$server go test -count=1 -v -timeout 10m ./tests/failover ./tests/storage
