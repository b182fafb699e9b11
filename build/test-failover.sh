#!/bin/bash
# Failovers under load, in a cluster and under Sentinel, with partitions. FAILOVERS=n makes n of them. SEED=n repeats the
# order of a run. ONLY=name makes one kind of them. FIGURES=1 writes the figures into docs/operating.md. Network namespaces
# need root.
. "$(dirname "$0")/lib.sh"
have ip || ! can_install || apt_install iproute2
build/module.sh
server=$(build/server.sh) || die 'no server to test against: please install redis-server (7.0 or newer) or valkey-server.'
"$server" --version
export GOTHROTTLE_MODULE=$PWD/build/out/gothrottle.so GOTHROTTLE_SERVER=$server FAILOVERS=${FAILOVERS:-15}
[ "$FAILOVERS" -ge 3 ] || die "FAILOVERS must be 3 or more, not '$FAILOVERS'."
go test -count=1 -v -timeout 3h ./tests/failover
