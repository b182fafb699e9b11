#!/bin/bash
# The black-box tests and the Go client, on every server of build/servers.txt, or those that SERVERS names, as make test-server
# runs them on one. The logs are in build/out/servers.
. "$(dirname "$0")/lib.sh"
out=$PWD/build/out/servers folders=(tests throttle)
# A network with only 127.0.0.1: servers in different ones never ask for the same port.
network=(unshare --net sh -c 'ip link set lo up && exec "$@"' sh)

row() { printf '%-10s %-8s %-12s %8s\n' "$@"; }

# test_server NAME SUITE MORE PACKAGE EXPECTED KIND  is called for each row of build/servers.txt, by this script itself, and
# prints a row of the table.
test_server() {
  local name=$1 expected=$5 kind=$6 began=$SECONDS result=FAILED folder version only server calls=30000
  [ "$name" != "$LONG" ] || calls=300000
  export GOTHROTTLE_SCRIPT_CALLS=${GOTHROTTLE_SCRIPT_CALLS:-$calls}
  [ "$kind" = required ] || result='NOT TESTED'
  server=$(build/fetch-server.sh "$name" 2>"$out/$name.log") || { row "$name" - "$result" - && return; }
  result=passed
  version=$(server_version "$server")
  for folder in "${folders[@]}"; do
    only=.
    [ "$folder" != throttle ] || only=Server_
    (cd "$folder" && GOTHROTTLE_SERVER=$server ${NETWORK:+"${network[@]}"} "$WORK/${folder##*/}.test" -test.timeout 40m -test.run "$only") || result=FAILED
  done >"$out/$name.log" 2>&1
  (cd throttle && GOTHROTTLE_SCRIPT=1 GOTHROTTLE_SERVER=$server ${NETWORK:+"${network[@]}"} "$WORK/throttle.test" \
    -test.timeout 20m -test.run Server_) >>"$out/$name.log" 2>&1 || result=FAILED
  if [ "$result" = FAILED ] && [ "$kind" = moving ] && ! is_version "$version" "$expected"; then result='newer: fails'; fi
  row "$name" "$version" "$result" $((SECONDS - began))
}
wanted_rows() { server_rows | grep -E "^(${SERVERS// /|})" || die "SERVERS: '$SERVERS' are not rows of build/servers.txt."; }
SERVERS=${SERVERS:-$(server_rows | cut -d ' ' -f 1 | xargs)}
[ $# = 0 ] || { test_server "$@" && exit; }

need 'lua5.1 lua5.4' lua5.1 lua5.4
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
[ -n "${GOTHROTTLE_MODULE:-}" ] || build/module.sh
export WORK NETWORK=1 GOTHROTTLE_MODULE=${GOTHROTTLE_MODULE:-$PWD/build/out/gothrottle.so}
# At night one server, another one each day, gets 900,000 calls by the module and the script in turn, and the others a tenth.
LONG=
[ -z "${NIGHTLY:-}" ] || LONG=$(wanted_rows | sed -n "$((10#$(date +%j) % $(wanted_rows | wc -l) + 1))p" | cut -d ' ' -f 1)
export LONG
mkdir -p "$out"
go test -c -o "$WORK/" "${folders[@]/#/./}"
at_once=3 # a run spends half its time waiting, so two cores can do three
have ip || ! can_install || apt_install iproute2 || true
"${network[@]}" true 2>/dev/null || {
  echo 'test-servers: the servers are tested one after another, because only root with iproute2 can make networks.'
  at_once=1 NETWORK=
}
wanted_rows | xargs -P "$at_once" -L 1 build/test-servers.sh | tee "$WORK/rows"

grep -E 'FAILED|NOT TESTED|newer' "$WORK/rows" | while read -r name _; do cat "$out/$name.log"; done || true
row server version result seconds
sort "$WORK/rows"
[ "$(grep -vc FAILED "$WORK/rows")" = "$(wanted_rows | wc -l)" ] || die 'test-servers: FAILED: what failed is above.'
echo 'test-servers: passed'
