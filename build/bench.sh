#!/bin/bash
# bench.sh [client]  measures what calls of the module cost (docs/benchmarks.md and its charts), or what the Go client costs
# (docs/go.md). The samples go into bench/results, in the Go benchmark format: benchstat reads them.
# SERVER= names servers: rows of build/servers.txt, or programs. ROUNDS=5 is the number of rounds. PEER=, PEER_CMD= and
# PEER_DENIED_CMD= add another module. QUICK=1 (shorter, less exact) and ONLY= (a pattern of row names, _ for a space) leave
# docs/ and the results alone. PHASE= (a pattern: CPU, OneCPU, Worst, Memory, File, Cachegrind) measures less.
# CHECK=1 counts instructions and cache misses again, and compares them with those in bench/results.
. "$(dirname "$0")/lib.sh"
build/module.sh
for tool in redis-benchmark:redis-tools taskset:util-linux valgrind:valgrind; do
  have "${tool%:*}" || ! can_install || apt_install "${tool#*:}" || true
  have "${tool%:*}" || die "${tool%:*} is needed: please install ${tool#*:}."
done

if [ "${1:-}" = client ]; then
  wanted=("${SERVER:-redis-server}")
else
  read -ra wanted <<<"${SERVER:-redis86 valkey91 redis70}"
fi
servers=()
for name in "${wanted[@]}"; do
  if server_rows | grep -q "^$name "; then
    servers+=("$(build/fetch-server.sh "$name" | tail -n 1)")
  else
    servers+=("$(command -v "$name")") || die "SERVER: '$name' is neither a program nor a row of build/servers.txt."
  fi
done

out=build/out/bench samples=bench/results docs=docs
mkdir -p "$out"
if [ -n "${QUICK:-}${ONLY:-}${PHASE:-}" ]; then
  samples=$out docs=$out
  cp docs/benchmarks.md docs/go.md "$out"
fi
export SERVERS="${servers[*]}" PLAIN=$PWD/$out/plain.so PEER=${PEER:+$(realpath "$PEER")}
${CC:-$(go env CC)} -O2 -shared -fPIC -o "$PLAIN" bench/plain/plain.c cgo/api.c
if [ -n "${CHECK:-}" ]; then
  exec go -C bench test -count=1 -timeout 0 -v -run '^TestCachegrind_bounds$' .
fi

file=$PWD/$samples/${1:-bench}.txt
{
  printf 'command: make bench%s' "${1:+-$1}"
  for name in SERVER ROUNDS QUICK ONLY PHASE PEER PEER_CMD PEER_DENIED_CMD; do
    [ -z "${!name:-}" ] || printf " %s='%s'" "$name" "$(sed 's|[^ ]*/||g' <<<"${!name}")"
  done
  printf '\ndate: %s\nload: %s\n' "$(date -u +%F)" "$(cut -d' ' -f1 /proc/loadavg)"
  printf 'machine: %s%s x %s, %s, Linux %s, %s\n' "$(grep -q ' hypervisor' /proc/cpuinfo && echo 'Virtual machine with ')" "$(nproc)" \
    "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)" "$(. /etc/os-release && echo "$PRETTY_NAME")" "$(uname -r)" "$(go env GOVERSION)"
} >"$file"
go -C bench test -c -o "../$out/test" .
phases=${PHASE:-CPU|OneCPU|Worst|Memory|File|Cachegrind} later=${PHASE:-CPU|OneCPU|Worst} # the others hardly vary
[ "${1:-}" != client ] || phases=Client later=Client ONLY=
for ((round = 1; round <= ${ROUNDS:-5}; round++)); do
  echo "round $round"
  (cd bench && "../$out/test" -test.run '^$' -test.bench "($phases)/${ONLY:-}" -test.benchtime 1x -test.timeout 0) | tee -a "$file"
  phases=$later
done
go -C bench run . "$(dirname "$file")" "$PWD/$docs"
echo "The samples are in $samples, the page is in $docs."
