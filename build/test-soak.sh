#!/bin/bash
# Runs what takes seeds, with new ones, for about MINUTES (10) on each server of SERVER: paths or names of build/servers.txt.
# ONLY names some of the parts. Each part's log, with the numbers of its calls and faults, is in build/out/soak. A part that
# fails doesn't stop the others.
. "$(dirname "$0")/lib.sh"
renice -n 19 $$ >/dev/null # whatever else runs comes first, also in other sessions
if [ "$(id -u)" = 0 ] && [ -w /proc/self/autogroup ]; then
  before=$(sed 's/.*nice //' /proc/self/autogroup)
  trap 'echo "$before" >/proc/self/autogroup' EXIT # the caller's session shares it
  echo 19 >/proc/self/autogroup
fi
all=' chaos slots script gateway clients fuzzers ' minutes=${MINUTES:-10} failed=
parts=" ${ONLY:-$all} "
for part in $parts; do [[ $all == *" $part "* ]] || die "ONLY: '$part' is not one of the parts:$all"; done
build/module.sh
export GOTHROTTLE_MODULE=$PWD/build/out/gothrottle.so
mkdir -p build/out/soak
go build -o build/out/chaos-program ./tests/chaos

# soak PART NAME COMMAND ...  runs a part, if it is wanted. NAME is that of the log.
soak() {
  [[ $parts == *" $1 "* ]] || return 0
  step "$2" "${@:3}" 2>&1 | tee "build/out/soak/$2.log" || failed+=" $2"
}

# chaos PART TIME OPTION ...  runs the program of tests/chaos for TIME times MINUTES s.
chaos() {
  soak "$1" "$1-$name" build/out/chaos-program -server "$GOTHROTTLE_SERVER" -seed 0 -time $((minutes * $2))s "${@:3}"
}

read -ra servers <<<"${SERVER:-$(local_server)}"
for server in "${servers[@]}"; do
  GOTHROTTLE_SERVER=$(server_path "$server")
  export GOTHROTTLE_SERVER
  name=$(basename "$GOTHROTTLE_SERVER" -server)-$(server_version "$GOTHROTTLE_SERVER")
  chaos chaos 25
  chaos slots 8 -cluster -steps 60
  soak script "script-$name" env GOTHROTTLE_SCRIPT_SEED=$((RANDOM * 10000000)) GOTHROTTLE_SCRIPT_CALLS=$((minutes * 80000)) \
    go test -count=1 -timeout 0 -v -run TestScript_random ./tests
  [[ $parts != *' gateway '* ]] || soak gateway "gateway-$name" env GOTHROTTLE_RATELIMIT="$(upstream_gateway)" \
    GOTHROTTLE_SEED=$((RANDOM * 1000000)) GOTHROTTLE_CALLS=$((minutes * 10000)) \
    go -C gateway test -count=1 -timeout 0 -run '^TestSideBySide$' .
done
soak clients clients go test -count=1 -timeout 0 -v -run '^TestWorlds$' ./tests/clients -seeds $((minutes * 300)) -seed $((RANDOM * 1000000))
for package in funnel commands; do
  mapfile -t fuzzers < <(sed -n 's/^func \(Fuzz[A-Za-z]*\).*/\1/p' "$package"/*_test.go)
  for fuzzer in "${fuzzers[@]}"; do
    soak fuzzers "$fuzzer" go test -run '^$' -fuzz "^$fuzzer\$" -fuzztime $((minutes * 2))s "./$package"
  done
done
[ -z "$failed" ] || die "test-soak: FAILED:$failed"
