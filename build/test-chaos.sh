#!/bin/bash
# Random calls, clocks and faults on real servers and their replicas, held to package commands/memory. SERVER names one or more
# servers, which share CHAOS_SECONDS. A fifth of the time goes to clusters whose slots move. SEED is the seed of the first run: 1 if
# not set, and 0 for a random one.
. "$(dirname "$0")/lib.sh"
build/module.sh
servers=${SERVER:-$(local_server)}
read -ra each <<<"$servers"
mkdir -p build/out
go build -o build/out/chaos-program ./tests/chaos
fifth=$((${CHAOS_SECONDS:-60} / ${#each[@]} / 5))
for server in "${each[@]}"; do
  "$server" --version
  build/out/chaos-program -server "$server" -seed "${SEED:-1}" -time $((fifth * 4))s
  build/out/chaos-program -server "$server" -seed "${SEED:-1}" -cluster -time ${fifth}s -steps 60
done
