#!/bin/bash
# Measures what calls of the module cost, on servers that it starts: docs/benchmarks.md and the plots beside it.
# SERVER= names one or more servers, newer ones first. ROUNDS= sets the number of rounds. PEER=, PEER_CMD= and
# PEER_DENIED_CMD= add another module. QUICK=1 (shorter, less exact) and ONLY= (a pattern of row names) leave docs/ alone.
# SCALING=1 measures clusters and I/O threads instead: docs/scaling.md and bench/scaling.jsonl.
# CLIENT=1 measures the Go client instead: docs/go.md and bench/client.jsonl.
. "$(dirname "$0")/lib.sh"
build/module.sh

servers=()
list=${SERVER:-}
read -ra wanted <<<"${list//,/ }"
for name in "${wanted[@]}"; do
  servers+=("$(command -v "$name")") || die "SERVER: '$name' is not a program that can be run."
done
if [ ${#servers[@]} = 0 ]; then
  servers=("$(build/server.sh)") || die 'no server to measure: please install redis-server (7.0 or newer) or valkey-server.'
fi

out=build/out/bench
mkdir -p "$out"
${CC:-$(go env CC)} -O2 -shared -fPIC -o "$out/plain.so" bench/plain/plain.c cgo/api.c
go build -C bench -buildvcs=false -trimpath -o "../$out/bench" .
go test -run '^$' -bench Call -benchtime 1000x -benchmem ./cgo/... >"$out/allocs.txt" || die "$(cat "$out/allocs.txt")"

# The report names the command line without the folders of this machine.
args=(-allocs "$out/allocs.txt") call='make bench'
if [ "${SCALING:-}" = 1 ]; then
  call='make bench-scaling'
elif [ "${CLIENT:-}" = 1 ]; then
  call='make bench-client'
fi
if [ ${#wanted[@]} -gt 0 ]; then
  call+=" SERVER='${wanted[*]##*/}'"
fi
if [ -n "${ROUNDS:-}" ]; then
  args+=(-rounds "$ROUNDS")
  call+=" ROUNDS=$ROUNDS"
fi
folder=docs
if [ "${QUICK:-}" = 1 ]; then
  args+=(-quick)
  call+=' QUICK=1'
  folder=$out
fi
if [ -n "${ONLY:-}" ]; then
  args+=(-only "$ONLY")
  call+=" ONLY='$ONLY'"
  folder=$out
fi
if [ -n "${PEER:-}" ]; then
  [ -x "$PEER" ] || die "PEER must be a module that may be executed, and '$PEER' is not."
  args+=(-peer "$(realpath "$PEER")")
  call+=" PEER=${PEER##*/}"
  if [ -n "${PEER_CMD:-}" ]; then
    args+=(-peer-cmd "$PEER_CMD")
    call+=" PEER_CMD='$PEER_CMD'"
  fi
  if [ -n "${PEER_DENIED_CMD:-}" ]; then
    args+=(-peer-denied-cmd "$PEER_DENIED_CMD")
    call+=" PEER_DENIED_CMD='$PEER_DENIED_CMD'"
  fi
fi
if [ "${SCALING:-}" = 1 ]; then
  if [ "$folder" != docs ]; then
    cp docs/scaling.md "$folder"
  fi
  args+=(-scaling "$folder/scaling.md")
elif [ "${CLIENT:-}" = 1 ]; then
  if [ "$folder" != docs ]; then
    cp docs/go.md "$folder"
  fi
  args+=(-client "$folder/go.md")
fi
# A comma between the servers, because a folder may have a space in its name.
exec "$out/bench" -servers "$(IFS=,; echo "${servers[*]}")" -module "$PWD/build/out/gothrottle.so" \
  -plain "$PWD/$out/plain.so" -out "$folder" -command "$call" "${args[@]}"
