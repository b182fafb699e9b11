#!/bin/bash
# Memory, threads and forks of a real server with the module: valgrind, a million keys,
# constant load. LONG=1 is for a quiet hour: MINUTES=60 of load, FORKS=200.
. "$(dirname "$0")/lib.sh"
need valgrind valgrind libc6-dbg
need_server
if [ "${LONG:-}" = 1 ]; then
  export MINUTES=${MINUTES:-60} FORKS=${FORKS:-200}
fi
GOTHROTTLE_MEMORY=1 go test -count=1 -v -timeout $((15 + 2 * ${MINUTES:-0}))m -run '^TestMemory_' ./tests
