#!/bin/bash
# The black-box tests, random calls against exact models and the tests of the Go client, on every server of
# build/servers.txt, as make test-server runs them on one. The logs are in build/out/servers.
. "$(dirname "$0")/lib.sh"
out=$PWD/build/out/servers
work=$(mktemp -d)
# Each run is a process group, so that no test is left behind.
cleanup() {
  for group in $(jobs -pr); do kill -- "-$group" 2>/dev/null || true; done
  rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 143' TERM INT HUP
[ -n "${GOTHROTTLE_MODULE:-}" ] || build/module.sh
export GOTHROTTLE_MODULE=${GOTHROTTLE_MODULE:-$PWD/build/out/gothrottle.so} GOTHROTTLE_OPERATIONS=${GOTHROTTLE_OPERATIONS:-20000}
mkdir -p "$out"
folders=(tests/server tests throttle commands)
go test -c -o "$work/" "${folders[@]/#/./}"

# A run spends half its time waiting, so two cores can do three. Each one has a network of its own with only 127.0.0.1:
# they never ask for the same port.
at_once=3
network=(unshare --net sh -c 'ip link set lo up && exec "$@"' sh)
have ip || ! can_install || apt_install iproute2 || true
"${network[@]}" true 2>/dev/null || {
  echo 'test-servers: the servers are tested one after another, because only root with iproute2 can make networks.'
  at_once=1 network=()
}

row() { printf '%-10s %-8s %-12s %8s\n' "$@"; }

# run_tests NAME SERVER KIND EXPECTED  runs all tests on a server, and writes the server's row of the table.
run_tests() {
  local name=$1 server=$2 began=$SECONDS result=passed folder version only
  version=$(server_version "$server")
  for folder in "${folders[@]}"; do
    only=.
    case $folder in throttle | commands) only=Server_ ;; esac
    (cd "$folder" && GOTHROTTLE_SERVER=$server "${network[@]}" "$work/${folder##*/}.test" -test.timeout 40m -test.run "$only") || result=FAILED
  done >"$out/$name.log" 2>&1
  if [ "$result" = FAILED ] && [ "$3" = moving ] && ! is_version "$version" "$4"; then result='newer: fails'; fi
  row "$name" "$version" "$result" $((SECONDS - began)) | tee "$work/$name.row"
}

testers=()
while read -r name _ _ _ expected kind; do
  if ! server=$(build/fetch-server.sh "$name"); then
    [ "$kind" = moving ] || die "$name is required and could not be had."
    row "$name" - 'NOT TESTED' - >"$work/$name.row"
    continue
  fi
  testers+=("$name $server $kind $expected")
done < <(server_rows)

set -m
for tester in "${testers[@]}"; do
  while [ "$(jobs -pr | wc -l)" -ge "$at_once" ]; do wait -n || true; done
  # shellcheck disable=SC2086
  run_tests $tester &
done
wait
set +m

echo
while read -r name _; do
  [ -e "$work/$name.row" ] || row "$name" - FAILED - >"$work/$name.row"
  ! grep -qE 'FAILED|newer' "$work/$name.row" || cat "$out/$name.log"
done < <(server_rows)
row server version result seconds
cat "$work"/*.row
! grep -q FAILED "$work"/*.row || die 'test-servers: FAILED: what failed is above.'
echo 'test-servers: passed'
