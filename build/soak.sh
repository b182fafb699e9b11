#!/bin/bash
# What make test-chaos does, for MINUTES (60 if not set) and in longer runs. The memory and the times of a long run tell
# whether a server stays as it is. SEED is the seed of the first run; without SEED it is random. The last lines of the
# output tell the seed of the next run.
. "$(dirname "$0")/lib.sh"
build/module.sh
server=${SERVER:-$(build/server.sh)} || die 'no server to test against: please install redis-server (7.0 or newer) or valkey-server.'
mkdir -p build/out
go build -o build/out/chaos-program ./tests/chaos
"$server" --version
build/out/chaos-program -server "$server" -time "${MINUTES:-60}m" -steps "${STEPS:-4000}" -shrink 20m -seed "${SEED:-0}"
