#!/bin/bash
# Memory, threads and forks of a real server with the module: valgrind, a million keys,
# constant load. LONG=1 is for a quiet hour: MINUTES=60 of load, FORKS=200.
. "$(dirname "$0")/lib.sh"
need_go

have valgrind || ! can_install || apt_install valgrind libc6-dbg || true
have valgrind || die 'valgrind is needed: please install valgrind and libc6-dbg.'
build/module.sh
server=$(build/server.sh) || die 'no server to test against: please install redis-server (7.0 or newer) or valkey-server.'
"$server" --version
if [ "${LONG:-}" = 1 ]; then
  export MINUTES=${MINUTES:-60} FORKS=${FORKS:-200}
fi
export GOTHROTTLE_MODULE=$PWD/build/out/gothrottle.so GOTHROTTLE_SERVER=$server GOTHROTTLE_MEMORY=1
go test -count=1 -v -timeout $((15 + 2 * ${MINUTES:-0}))m -run '^TestMemory_' ./tests
