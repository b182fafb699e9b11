#!/bin/bash
# Builds the gateway: build/out/gothrottle-gateway. With "run" it starts a server with the module and the gateway on
# 127.0.0.1, until Ctrl-C. PORT=6379 is the server's port, HTTP=8080, GRPC=8081 and DEBUG=6070 are the gateway's. CONFIG
# names a file of rules or a folder.
. "$(dirname "$0")/lib.sh"
need_go
program=$PWD/build/out/gothrottle-gateway
CGO_ENABLED=0 go -C gateway build -buildvcs=false -trimpath -ldflags=-s -o "$program" .
[ "${1:-}" = run ] || exit 0

port=${PORT:-6379}
PORT=$port build/run.sh &
server=$!
trap 'kill "$server" 2>/dev/null; wait "$server"' EXIT
until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do
  kill -0 "$server" 2>/dev/null || exit 1
  sleep 0.1
done
export HOST=127.0.0.1 GRPC_HOST=127.0.0.1 DEBUG_HOST=127.0.0.1 REDIS_URL=127.0.0.1:$port
export PORT=${HTTP:-8080} GRPC_PORT=${GRPC:-8081} DEBUG_PORT=${DEBUG:-6070} CONFIG=${CONFIG:-deploy/gateway/rules.yaml}
echo "The gateway starts. In another terminal, three times:  curl -i http://127.0.0.1:$PORT/check"
"$program" || true
