#!/bin/bash
# Random worlds of the Go client and the gateway, with new seeds: SEEDS of each. And 100,000 random paths through proxies.
. "$(dirname "$0")/lib.sh"
need_cc
seeds=${SEEDS:-3000} first=${SEED:-$(($(date +%s) * 1000))}
echo "test-worlds: $seeds seeds from $first"
export WORLD_SEED=$first
go -C gateway test -count=1 -timeout 0 -run '^TestWorld$' -seeds $((seeds / 10)) .
go test -count=1 -timeout 0 ./tests/clients -run '^TestWorlds$' -seeds "$seeds" -seed "$first"
PATHS=34000 build/test-gateway.sh -run '^TestPaths$'
