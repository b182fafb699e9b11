#!/bin/bash
# make test-chaos for MINUTES, with longer runs: their memory and times tell whether a server stays as it is. SEED is the
# seed of the first run, which is random without it; the last lines tell the next one.
. "$(dirname "$0")/lib.sh"
build/module.sh
server=${SERVER:-$(build/server.sh)} || die 'no server to test against: please install redis-server (7.0 or newer) or valkey-server.'
mkdir -p build/out
go build -o build/out/chaos-program ./tests/chaos
"$server" --version
build/out/chaos-program -server "$server" -time "${MINUTES:-60}m" -steps "${STEPS:-4000}" -shrink 20m -seed "${SEED:-0}"
