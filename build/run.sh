#!/bin/bash
# Starts a server with the module in the foreground, on 127.0.0.1 only. Its files are removed at the end. With SCRIPT=1 the
# server has no module, and the line to type calls the script.
. "$(dirname "$0")/lib.sh"

port=${PORT:-6379}
{ [[ $port =~ ^[1-9][0-9]{0,4}$ ]] && ((port <= 65535)); } || die "PORT must be a number from 1 to 65535, not '$port'."
connect() { exec 3<>"/dev/tcp/127.0.0.1/$port"; } 2>/dev/null
pong() { connect && printf 'PING\r\n' >&3 && read -r -t 1 line <&3 && [[ $line == +PONG* ]]; }
if (connect); then die "port $port on 127.0.0.1 is taken: choose another one, as in 'make run PORT=$((port % 65535 + 1))'."; fi

# The server writes into its working folder, which must not be the repository.
dir=$(mktemp -d) pid=
trap '{ kill $pid && wait $pid; } 2>/dev/null || true; rm -rf "$dir"' EXIT
trap 'exit 0' INT TERM
line='GO.THROTTLE user:42 15 30 60' load=(--loadmodule "$PWD/build/out/gothrottle.so")
if server=$(find_server); then
  if [ -n "${SCRIPT:-}" ]; then
    line='EVAL "$(cat script/gothrottle.lua)" 1 user:42 GO.THROTTLE 15 30 60' load=()
  else
    build/module.sh
  fi
  "$server" --bind 127.0.0.1 --port "$port" --dir "$dir" --save '' "${load[@]}" &
  cli=$(command -v redis-cli || command -v valkey-cli || echo redis-cli)
  call="${cli##*/} -p $port"
elif [ -z "${SCRIPT:-}" ] && "$DOCKER" info >/dev/null 2>&1; then
  echo 'no redis-server or valkey-server here: building and running the Docker image'
  build/image.sh
  "$DOCKER" run --rm --name "gothrottle-run-$port" --publish "127.0.0.1:$port:6379" "$IMAGE" --save '' &
  call="docker exec gothrottle-run-$port redis-cli"
else
  die 'there is no server: please install redis-server (7.0 or newer), valkey-server or Docker.'
fi

pid=$!
until (pong); do
  kill -0 "$pid" 2>/dev/null || die 'the server did not start: its last lines above say why.'
  sleep 0.1
done
echo
echo "ready, Ctrl-C stops it. In another terminal:  $call $line"
echo
wait $pid
