#!/bin/bash
# Runs what takes seeds, with new ones: chaos, moves of slots, concurrent calls, the simulation and the fuzzers, for MINUTES
# (10) on each server of SERVER: paths or names of build/servers.txt. It adds what was run to docs/tested.tsv and
# docs/tested.md. WHERE names the machine there. A schedule that fails is in build/out/chaos. Move it to
# tests/chaos/testdata: make test-chaos runs what is there.
. "$(dirname "$0")/lib.sh"
need_go
build/module.sh
servers=${SERVER:-$(local_server)}
read -ra each <<<"$servers"
minutes=${MINUTES:-10} where=${WHERE:-$(nproc) cores}
log=build/out/soak.log
mkdir -p build/out
go build -o build/out/chaos-program ./tests/chaos

# record WHAT SERVER CALLS FAULTS SECONDS  adds a row.
record() { printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$(date -u +%F)" "$@" "$where" >>docs/tested.tsv; }

# sum PATTERN  adds up the last words of the lines of the log that begin so.
sum() { awk -v pattern="^ *$1" '$0 ~ pattern { n += $NF } END { print n + 0 }' "$log"; }

# took COMMAND ...  runs a command, whose output goes to the log, too. seconds is how long it took.
took() {
  local began=$SECONDS
  "$@" 2>&1 | tee "$log"
  seconds=$((SECONDS - began))
}

export GOTHROTTLE_MODULE=$PWD/build/out/gothrottle.so
for server in "${each[@]}"; do
  if grep -q "^$server " build/servers.txt; then server=$(build/fetch-server.sh "$server" | tail -n 1); fi
  export GOTHROTTLE_SERVER=$server
  name="$(basename "$server" -server) $(server_version "$server")"
  took build/out/chaos-program -server "$server" -seed 0 -time $((minutes * 40))s
  record 'random calls and faults' "$name" "$(sum calls)" "$(sum fault)" "$seconds"
  took build/out/chaos-program -server "$server" -seed 0 -cluster -time $((minutes * 5))s -steps 60
  record 'slots that move' "$name" "$(sum 'calls  ')" "$(sum 'moves by')" "$seconds"
  calls=$((minutes * 2000))
  GOTHROTTLE_SEED=$((RANDOM * 10000)) GOTHROTTLE_OPERATIONS=$calls took go test -count=1 -v -run Server_linearizable ./commands
  grep -q -- '--- SKIP' "$log" || record 'concurrent calls' "$name" "$calls" \
    "$(grep -o 'map\[.*\]' "$log" | grep -o '[a-z]*:[0-9]*' | awk -F: '$1 != "none" { n += $2 } END { print n + 0 }')" "$seconds"
done
SEED=0 STEPS=$((minutes * 300000)) took build/test-sim.sh
record simulation 'in memory' $((minutes * 300000)) 0 "$seconds"
for package in funnel commands; do
  mapfile -t fuzzers < <(grep -ho 'func Fuzz[A-Za-z]*' "$package"/*_test.go | cut -d' ' -f2)
  for fuzzer in "${fuzzers[@]}"; do
    took go test -run '^$' -fuzz "^$fuzzer\$" -fuzztime $((minutes * 2))s "./$package"
    record "$fuzzer" 'in memory' "$(grep -o 'execs: [0-9]*' "$log" | tail -n 1 | cut -d' ' -f2)" 0 "$seconds"
  done
done
build/tested.sh
