#!/bin/bash
# Builds the playground and serves it on this machine, until Ctrl-C. LISTEN=127.0.0.1:8080 is where.
. "$(dirname "$0")/lib.sh"
build/page.sh
CGO_ENABLED=0 go -C playground build -buildvcs=false -o ../build/out/playground-server .
exec build/out/playground-server "${LISTEN:-127.0.0.1:8080}" build/out/playground
