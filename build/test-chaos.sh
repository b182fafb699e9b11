#!/bin/bash
# Random calls, clocks and faults on real servers, held to exact models. SERVER names one or more servers, which share
# CHAOS_SECONDS. A tenth of the time goes to clusters whose slots move. SEED is the seed of the first run: 1 if not set, and
# 0 for a random one.
. "$(dirname "$0")/lib.sh"
build/module.sh
servers=${SERVER:-$(build/server.sh)} || die 'no server to test against: please install redis-server (7.0 or newer) or valkey-server.'
read -ra each <<<"$servers"
mkdir -p build/out
go build -o build/out/chaos-program ./tests/chaos
seconds=$((${CHAOS_SECONDS:-120} / ${#each[@]}))
for server in "${each[@]}"; do
  "$server" --version
  build/out/chaos-program -server "$server" -time $((seconds - seconds / 10))s -seed "${SEED:-1}"
  build/out/chaos-program -cluster -server "$server" -time $((seconds / 10))s -steps 60 -seed "${SEED:-1}"
done
