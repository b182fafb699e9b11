#!/bin/bash
# Runs what takes seeds, with new ones, for about MINUTES (10) on each server of SERVER: paths or names of build/servers.txt.
# ONLY names some of the parts. It adds what was run to the table of docs/tested.md. A schedule that fails is in
# build/out/chaos. Move it to tests/chaos/testdata: make test-chaos runs what is there. A part that fails does not stop the
# others. If it is interrupted, the next run leaves out the parts that have run.
. "$(dirname "$0")/lib.sh"
renice -n 19 $$ >/dev/null # whatever else runs comes first, also in other sessions
[ ! -w /proc/self/autogroup ] || echo 19 >/proc/self/autogroup
build/module.sh
servers=${SERVER:-$(local_server)}
read -ra each <<<"$servers"
all=' chaos slots flood concurrent models script gateway simulation fuzzers '
parts=" ${ONLY:-$all} "
for part in $parts; do [[ $all == *" $part "* ]] || die "ONLY: '$part' is not one of the parts:$all"; done
minutes=${MINUTES:-10}
mkdir -p build/out
state=build/out/soak-parts failed=
log=$(mktemp)
trap 'rm -f "$log"' EXIT
go build -o build/out/chaos-program ./tests/chaos

wanted() { [[ $parts == *" $1 "* ]]; }

# record WHAT SERVER CALLS FAULTS SECONDS  adds a run to its row of the table, and to the last row, which is the sum. A server
# without a column is in the one for others.
record() {
  awk -F ' *[|] *' -v what="$1" -v server="$2" -v calls="$3" -v faults="$4" -v seconds="$5" -v today="$(date -u +%F)" '
    function add(run) {
      $column = sprintf("%.0f", $column + calls)
      $faulty = sprintf("%.0f", $faulty + faults)
      $hours = sprintf("%.3f", $hours + seconds / 3600)
      $last = run
      text = "|"
      for (i = 2; i < NF; i++) text = text " " $i " |"
      print text
    }
    $2 == "what" {
      column = NF - 4
      for (i = 3; i < column; i++) if ($i == server) column = i
      faulty = NF - 3
      hours = NF - 2
      last = NF - 1
    }
    $2 == what { add(today); found = 1; next }
    $2 == "all" {
      all = $0
      if (!found) { gsub(/[^|]+/, " "); $2 = what; add(today); $0 = all }
      add("")
      next
    }
    { print }' docs/tested.md >"$log"
  cp "$log" docs/tested.md
}

# sum PATTERN  adds up the last words of the lines of the log that begin so.
sum() { awk -v pattern="^ *$1" '$0 ~ pattern { n += $NF } END { print n + 0 }' "$log"; }

# took COMMAND ...  runs a command, whose output goes to the log, too. seconds is how long it took.
took() {
  local began=$SECONDS
  "$@" 2>&1 | tee "$log" || { failed+=" $part" && return 1; }
  seconds=$((SECONDS - began))
}

# once PART SERVER COMMAND ...  runs a part, if it is wanted and has not run on the server.
once() {
  part=$1
  if ! wanted "$1" || grep -qxsF "$1 $2" "$state"; then return; fi
  "${@:3}" || true
  echo "$1 $2" >>"$state"
}

# chaos WHAT SERVER CALLS FAULTS TIME OPTION ...  runs the program of tests/chaos and adds a row: CALLS and FAULTS are patterns.
chaos() {
  took build/out/chaos-program -server "$GOTHROTTLE_SERVER" -seed 0 -time $((minutes * $5))s "${@:6}" || return
  record "$1" "$2" "$(sum "$3")" "$(sum "$4")" "$seconds"
}

# The parts. Each takes the server's name for the table.

run_chaos() { chaos 'random calls and faults' "$1" calls fault 25; }
run_slots() { chaos 'slots that move' "$1" 'calls  ' 'moves by' 8 -cluster -steps 60; }
run_flood() { chaos floods "$1" calls 'no faults' 10 -only flood; }
run_concurrent() { chaos 'concurrent calls' "$1" calls fault 15 -many; }

# Calls with fair shares have a row of their own.
run_models() {
  local calls=$((minutes * 200000)) shares
  GOTHROTTLE_SEED=$((RANDOM * 10000000)) GOTHROTTLE_CALLS=$calls GOGC=1000 took go test -count=1 -timeout 0 -v -run Server_all ./tests/world || return
  shares=$(grep -o 'shares:[0-9]*' "$log" | cut -d: -f2)
  record 'calls against exact models' "$1" $((calls - shares)) 0 "$seconds"
  record 'fair shares against exact models' "$1" "$shares" 0 0
}

run_gateway() {
  local calls=$((minutes * 10000))
  GOTHROTTLE_RATELIMIT=$(upstream_gateway)
  export GOTHROTTLE_RATELIMIT
  GOTHROTTLE_SEED=$((RANDOM * 1000000)) GOTHROTTLE_CALLS=$calls took go -C gateway test -count=1 -timeout 0 -run '^TestSideBySide$' . || return
  record 'gateway beside envoyproxy/ratelimit' "$1" "$calls" 0 "$seconds"
}

# Each of the commands and kinds of GO.ALL gets as many calls.
run_script() {
  local calls=$((minutes * 12000))
  GOTHROTTLE_SCRIPT_SEED=$((RANDOM * 10000000)) GOTHROTTLE_SCRIPT_CALLS=$calls took go test -count=1 -timeout 0 -v -run TestScript_random ./tests || return
  record 'script and module in turn' "$1" $(($(grep -c ' --- PASS' "$log") * calls)) 0 "$seconds"
}

export GOTHROTTLE_MODULE=$PWD/build/out/gothrottle.so
for server in "${each[@]}"; do
  GOTHROTTLE_SERVER=$(server_path "$server")
  export GOTHROTTLE_SERVER
  name="$(basename "$GOTHROTTLE_SERVER" -server) $(server_version "$GOTHROTTLE_SERVER")"
  for one in chaos slots flood concurrent models script gateway; do once "$one" "$name" "run_$one" "$name"; done
done

run_simulation() {
  SEED=0 STEPS=$((minutes * 300000)) took build/test-sim.sh || return
  record simulation 'in memory' $((minutes * 300000)) 0 "$seconds"
}

run_fuzzer() {
  took go test -run '^$' -fuzz "^$2\$" -fuzztime $((minutes * 2))s "./$1" || return
  record "$2" 'in memory' "$(grep -o 'execs: [0-9]*' "$log" | tail -n 1 | cut -d' ' -f2)" 0 "$seconds"
}

once simulation - run_simulation
for package in funnel commands; do
  mapfile -t fuzzers < <(grep -ho 'func Fuzz[A-Za-z]*' "$package"/*_test.go | cut -d' ' -f2)
  for fuzzer in "${fuzzers[@]}"; do
    once fuzzers "$fuzzer" run_fuzzer "$package" "$fuzzer"
  done
done
rm -f "$state"
[ -z "$failed" ] || die "test-soak: FAILED:$failed"
