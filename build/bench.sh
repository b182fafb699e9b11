#!/bin/bash
# Compares what the module costs with other ways, on servers of its own: docs/benchmarks.md and the plots beside it.
# QUICK=1 is shorter and rougher, and leaves docs/ alone. PEER=, PEER_CMD= and PEER_DENIED_CMD= add another module.
. "$(dirname "$0")/lib.sh"
build/module.sh
server=$(build/server.sh) || die 'no server to measure: please install redis-server (7.0 or newer) or valkey-server.'

out=build/out/bench
mkdir -p "$out"
${CC:-$(go env CC)} -O2 -shared -fPIC -o "$out/plain.so" bench/plain/plain.c cgo/api.c
go build -C bench -buildvcs=false -trimpath -o "../$out/bench" .
go test -run '^$' -bench Call -benchtime 1000x -benchmem ./cgo >"$out/allocs.txt" || die "$(cat "$out/allocs.txt")"

# The report names the call as the user would repeat it, without the folders of this machine.
args=(-allocs "$out/allocs.txt") call='make bench'
if [ "${QUICK:-}" = 1 ]; then
  args+=(-quick -out "$out")
  call+=' QUICK=1'
else
  args+=(-out docs)
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
exec "$out/bench" -server "$server" -module "$PWD/build/out/gothrottle.so" -plain "$PWD/$out/plain.so" -command "$call" "${args[@]}"
