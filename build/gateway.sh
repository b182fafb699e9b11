#!/bin/bash
# Builds the gateway: build/out/gothrottle-gateway. With "run" it starts a server with the module and the gateway on
# 127.0.0.1, until Ctrl-C. PORT=6379 is the server's port, HTTP=8080, GRPC=8081 and DEBUG=6070 are the gateway's. CONFIG
# names a file of rules or a folder. PROGRAM is where the program is put.
. "$(dirname "$0")/lib.sh"
need_go
program=${PROGRAM:-$PWD/build/out/gothrottle-gateway}
[ -x "$program" ] || echo 'building the gateway: the first time takes minutes'
CGO_ENABLED=0 go -C gateway build -buildvcs=false -trimpath -ldflags=-s -o "$program" .
[ "${1:-}" = run ] || exit 0

port=${PORT:-6379} HTTP=${HTTP:-8080} GRPC=${GRPC:-8081} DEBUG=${DEBUG:-6070}
connect() { exec 3<>"/dev/tcp/127.0.0.1/$1"; } 2>/dev/null
for pair in PORT="$port" HTTP="$HTTP" GRPC="$GRPC" DEBUG="$DEBUG"; do
  if (connect "${pair#*=}"); then die "port ${pair#*=} on 127.0.0.1 is taken: choose another one, as in 'make gateway ${pair%=*}=7080'."; fi
done
PORT=$port build/run.sh &
server=$!
trap 'kill "$server" 2>/dev/null; wait "$server"' EXIT
until (connect "$port"); do
  kill -0 "$server" 2>/dev/null || exit 1
  sleep 0.1
done
export HOST=127.0.0.1 GRPC_HOST=127.0.0.1 DEBUG_HOST=127.0.0.1 REDIS_URL=127.0.0.1:$port
export PORT=$HTTP GRPC_PORT=$GRPC DEBUG_PORT=$DEBUG CONFIG=${CONFIG:-deploy/gateway/rules.yaml}
echo "The gateway starts. In another terminal, three times:  curl -i http://127.0.0.1:$PORT/check"
# Ctrl-C ends the program without an error.
"$program"
