#!/bin/bash
# Builds the playground, a folder of static files for any web server: build/out/playground.
. "$(dirname "$0")/lib.sh"
need_go

out=build/out/playground
rm -rf "$out"
mkdir -p "$out"
GOOS=js GOARCH=wasm go -C playground build -buildvcs=false -trimpath -ldflags='-s -w' -o "../$out/gothrottle.wasm" .
cp playground/page/* "$(go env GOROOT)/lib/wasm/wasm_exec.js" "$out/"
