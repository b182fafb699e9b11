#!/bin/bash
# Memory, threads and forks of a real server with the module: valgrind, a million keys, constant load. LONG=1 is for a
# quiet hour: MINUTES=60 of load, FORKS=200. CURVE= names a file: for MINUTES=240, it gets each minute the memory of a
# server with a million keys that come and go, of a client and of a gateway, and nothing else runs. bench/curve.go draws it.
. "$(dirname "$0")/lib.sh"
need_server
if [ -n "${CURVE:-}" ]; then
  build/gateway.sh
  GOTHROTTLE_GATEWAY=$PWD/build/out/gothrottle-gateway GOTHROTTLE_CURVE=$(realpath "$CURVE") \
    exec go test -count=1 -v -timeout 0 -run '^TestHours$' ./tests/hours
fi
need valgrind valgrind libc6-dbg
if [ "${LONG:-}" = 1 ]; then
  export MINUTES=${MINUTES:-60} FORKS=${FORKS:-200}
fi
GOTHROTTLE_MEMORY=1 go test -count=1 -v -timeout $((15 + 2 * ${MINUTES:-0}))m -run '^TestMemory_' ./tests
