#!/bin/bash
# The black-box tests, random calls against exact models and the tests of the Go client, on every server of
# build/servers.txt. The kind of server that this machine has is left to make test-server. The logs are in
# build/out/servers.
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
build/module.sh
mkdir -p "$out"
for package in tests throttle commands; do go test -c -o "$work/$package.test" "./$package"; done

# A run spends half its time waiting, so two cores can do three. Each one has a network of its own with only 127.0.0.1:
# they never ask for the same port.
at_once=3
network=(unshare --net sh -c 'ip link set lo up && exec "$@"' sh)
have ip || ! can_install || apt_install iproute2 || true
"${network[@]}" true 2>/dev/null || {
  echo 'test-servers: the servers are tested one after another, because only root with iproute2 can make networks.'
  at_once=1 network=()
}

# failures LOG  prints what the tests that failed have printed. Tests that run at the same time print in turns.
failures() {
  awk 'NR == FNR { if (/^--- FAIL/) failed[$3]; next }
    /^=== / { split($3, name, "/"); wanted = name[1] in failed; next }
    /^(panic|fatal error|tests):/ { wanted = 1 }
    wanted && !/^--- PASS/' "$1" "$1"
}

# count RESULT LOG ...
count() { cat "${@:2}" | grep -c "^--- $1:" || true; }

# run_tests NAME SERVER  runs all tests on a server, and writes the server's row of the table.
run_tests() {
  local name=$1 begin=$SECONDS result=passed package options=() logs=()
  export GOTHROTTLE_MODULE=$PWD/build/out/gothrottle.so GOTHROTTLE_SERVER=$2 GOTHROTTLE_OPERATIONS=10000
  for package in tests throttle commands; do
    logs+=("$out/$name.$package.log")
    options=(-test.v -test.timeout 40m)
    [ "$package" = tests ] || options+=(-test.run Server_)
    (cd "$package" && "${network[@]}" "$work/$package.test" "${options[@]}") >"$out/$name.$package.log" 2>&1 || result=FAILED
  done
  row "$name" "$(server_version "$2")" "$result" "$(count PASS "${logs[@]}")" "$(count FAIL "${logs[@]}")" \
    "$(count SKIP "${logs[@]}")" $((SECONDS - begin)) | tee "$work/$name.row"
}

row() { printf '%-10s %-8s %-12s %7s %7s %8s %8s\n' "$@"; }

local_server=$(build/server.sh || true)
local_version=$([ -z "$local_server" ] || server_version "$local_server")
testers=() failed=()
while read -r name _ _ package expected kind; do
  if [ "$(basename "$local_server")" = "$package" ] && is_version "$local_version" "$expected"; then
    row "$name" "$local_version" test-server - - - - >"$work/$name.row"
    echo "$name: $("$local_server" --version): make test-server tests this one"
    continue
  fi
  if ! server=$(build/fetch-server.sh "$name"); then
    [ "$kind" = moving ] || die "$name is required and could not be had."
    row "$name" - 'NOT TESTED' - - - - >"$work/$name.row"
    continue
  fi
  echo "$name: $("$server" --version)"
  testers+=("$name $server")
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
row server version result passed failed skipped seconds
while read -r name _ _ _ expected kind; do
  [ -e "$work/$name.row" ] || row "$name" - FAILED - - - - >"$work/$name.row"
  cat "$work/$name.row"
  read -r _ version result _ <"$work/$name.row"
  [ "$result" = FAILED ] || continue
  for package in tests throttle commands; do failures "$out/$name.$package.log"; done >>"$work/failures"
  if [ "$kind" = moving ] && ! is_version "$version" "$expected"; then
    echo "$name is newer than the $expected in build/servers.txt, so its failure does not count."
  else
    failed+=("$name")
  fi
done < <(server_rows)
[ ! -e "$work/failures" ] || cat "$work/failures"
[ ${#failed[@]} = 0 ] || die "test-servers: FAILED on ${failed[*]}: what failed is above, the logs are in build/out/servers."
echo 'test-servers: passed'
