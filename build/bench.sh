#!/bin/bash
# bench.sh [WHAT]  measures what calls of the module cost and how many instructions they take: docs/benchmarks.md and its
# chart. WHAT can be: costs, instructions, latency or holds, one of them alone; client, what the clients in Go, for docs/go.md,
# Node and Python cost; quick, a table of few rows in a minute, which QUICK=1 alone prints, too;
# check, which counts instructions again and fails if they are more than those in bench/results.
# The samples of all rounds go into build/out/bench, in the Go benchmark format, which benchstat reads; their medians and
# spreads go into bench/results.
# SERVER= names servers: rows of build/servers.txt, or programs. ROUNDS=5 is the number of rounds. PEER=, PEER_CMD= and
# PEER_DENIED_CMD= add another module. QUICK=1 (shorter, less exact) and ONLY= (a pattern of go test -bench, with _ for a
# space, such as 'CPU/row=GO.QUOTA') write all of it into build/out/bench.
. "$(dirname "$0")/lib.sh"
all='costs latency instructions holds' quick='SET_PX|GO.THROTTLE|GO.THROTTLE_denied|GO.THROTTLE_15_30_60|GO.WINDOW_100|GCRA_in_Lua|CL.THROTTLE.*'
what=${1:-${QUICK:+quick}} && what=${what:-$all} rounds=${ROUNDS:-5} out=build/out/bench docs=docs results=bench/results measured=()
case $what in
client | holds | quick) default=redis-server ;;
costs | latency | instructions | "$all" | check) default='redis86 valkey91 redis70' ;;
*) die "'$what' is not one of: costs, latency, instructions, holds, client, quick, check." ;;
esac
read -ra wanted <<<"${SERVER:-$default}"
servers=()
for name in "${wanted[@]}"; do
  # A server of a suite that changes may be away: then the others are checked.
  server=$(server_path "$name") || [ "$what" = check ] || die "SERVER: there is no '$name'."
  servers+=(${server:+"$server"})
done
build/module.sh
need 'redis-benchmark taskset valgrind' redis-tools util-linux valgrind

mkdir -p "$out"
if [[ -n ${QUICK:-}${ONLY:-} || $what = quick ]]; then
  docs=$out results=$out/results
  mkdir -p "$results"
  cp docs/benchmarks.md docs/go.md "$out"
fi
[ -z "${PEER:-}" ] || PEER=$(realpath -e "$PEER") || die 'PEER: there is no such module.'
export SERVERS="${servers[*]}" PLAIN=$PWD/$out/plain.so PEER=${PEER:-}
${CC:-$(go env CC)} -O2 -shared -fPIC -o "$PLAIN" bench/plain/plain.c cgo/api.c
[ "$what" != check ] || CHECK=${CHECK:-few} exec go -C bench test -count=1 -timeout 0 -v -run '^TestCachegrind_bounds$' .
go -C bench test -c -o "../$out/test" .

# begin FILE  writes the head of a file of samples.
begin() {
  local name words
  {
    printf 'command: build/bench.sh %s' "$what"
    for name in SERVER ROUNDS QUICK ONLY PEER PEER_CMD PEER_DENIED_CMD; do
      read -ra words <<<"${!name:-}"
      [ -z "${words[*]}" ] || printf " %s='%s'" "$name" "${words[*]##*/}"
    done
    printf '\ndate: %s\nload: %s\n' "$(date -u +%F)" "$(cut -d' ' -f1 /proc/loadavg)"
    printf 'machine: %s%s x %s, %s, Linux %s, %s\n' "$(grep -q ' hypervisor' /proc/cpuinfo && echo 'Virtual machine with ')" "$(nproc)" \
      "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)" "$(. /etc/os-release && echo "$PRETTY_NAME")" "$(uname -r)" "$(go env GOVERSION)"
  } >"$out/$1.txt"
}
# measure FILE ROUNDS PATTERN  adds samples to a file.
measure() {
  for ((round = 1; round <= $2; round++)); do
    echo "$1: round $round of $2"
    (cd bench && "../$out/test" -test.run '^$' -test.bench "$3" -test.benchtime 1x -test.timeout 0) |
      grep --line-buffered -Ev '^(goos|goarch|pkg|cpu): |^PASS' | tee -a "$out/$1.txt" || die "$1: round $round failed, or ONLY fits no row."
  done
}

# measure_in LANGUAGE PROGRAM ...  adds samples of a client in another language and others, on a server of their own.
measure_in() {
  local language=$1 pid
  begin "$language"
  measured+=("$language")
  "${servers[0]}" --port 0 --unixsocket "$PWD/$out/clients.sock" --save '' --loadmodule "$PWD/build/out/gothrottle.so" >"$out/clients.log" &
  pid=$!
  trap 'kill $pid' EXIT
  for ((round = 1; round <= rounds; round++)); do
    echo "$language: round $round of $rounds"
    SOCKET=$PWD/$out/clients.sock MS=${QUICK:+500} "${@:2}" | tee -a "$out/$language.txt"
  done
  kill $pid
  trap - EXIT
}

for name in $what; do
  begin "$name"
  measured+=("$name")
  case ${ONLY:+only}$name in
  only*)
    measure "$name" "$rounds" "$ONLY"
    break
    ;;
  costs)
    measure costs "$rounds" 'CPU|OneCPU'
    measure costs 1 'Memory|File' # these hardly vary
    ;;
  latency) measure latency "$rounds" Latency ;;
  instructions) measure instructions "${ROUNDS:-3}" Cachegrind ;;
  quick) QUICK='' measure quick "${ROUNDS:-3}" "^Benchmark(CPU|Latency)\$/^row=($quick)\$" ;;
  client)
    measure client "$rounds" Client
    need npm nodejs npm
    node_modules
    npm --prefix build/out/node --no-audit --no-fund --loglevel=error install --no-save --offline "$PWD/$(build/package-node.sh build/out)"
    cp bench/node.mjs build/out/node/
    measure_in node build/out/node/node_modules/.bin/node build/out/node/node.mjs
    need_packages python3-limits
    python_venv
    measure_in python build/out/venv/bin/python bench/python.py
    ;;
  holds) measure holds "$rounds" Holds ;;
  esac
done
go -C bench run . "$PWD/$out" "$PWD/$results" "$PWD/$docs" "${measured[@]}"
[ "$what" = quick ] || echo "The samples are in $out, the figures in $results, the pages in $docs."
