#!/bin/bash
# Serves the playground's page on 127.0.0.1, with a server of its own for the page to play with. Both end with Ctrl-C.
# ADDR=host:port  only watches that server, and reads from it. LISTEN=127.0.0.1:8080 is where the page is served. Arguments
# and the words of ARGS are passed on to the program: --tls, --user and so on.
. "$(dirname "$0")/lib.sh"
need_go

read -r -a words <<<"${ARGS:-}"
set -- "$@" "${words[@]}"
work=$(mktemp -d)
server_pid='' page_pid=''
stop() {
  trap - INT TERM
  [ -z "$page_pid" ] || { kill "$page_pid" 2>/dev/null && wait "$page_pid"; } || true
  [ -z "$server_pid" ] || { kill "$server_pid" 2>/dev/null && wait "$server_pid"; } || true
  rm -rf "$work"
}
trap stop EXIT
trap 'exit 0' INT TERM
CGO_ENABLED=0 go -C playground build -buildvcs=false -o "$work/playground" .

listen=${LISTEN:-127.0.0.1:8080}
if [ -n "${ADDR:-}" ]; then
  "$work/playground" --addr "$ADDR" --listen "$listen" "$@" &
else
  server=$(build/server.sh) || die 'there is no server to load the module into: please install redis-server (7.0 or newer) or valkey-server.'
  build/module.sh >&2
  port=${PORT:-6399}
  if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then die "port $port on 127.0.0.1 is taken: choose another one, as in 'make playground PORT=$((port + 1))'."; fi
  mkdir "$work/data"
  "$server" --bind 127.0.0.1 --port "$port" --dir "$work/data" --save '' --maxmemory 64mb --maxmemory-policy noeviction \
    --loadmodule "$PWD/build/out/gothrottle.so" --gothrottle.top-keys 1000 --gothrottle.policies \
    'playground-api THROTTLE 4 5 1s, THROTTLE 29 30 1m; playground-login THROTTLE 4 5 1m LOCKOUT 10s; playground-day QUOTA 20 20s; playground-trial SHADOW WINDOW 5 5s' \
    >"$work/log" 2>&1 &
  server_pid=$!
  until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do
    kill -0 "$server_pid" 2>/dev/null || { tail -n 5 "$work/log" >&2; die 'the server did not start: its last lines are above.'; }
    sleep 0.1
  done
  "$work/playground" --addr "127.0.0.1:$port" --play --listen "$listen" "$@" &
fi
page_pid=$!
status=0
wait "$page_pid" || status=$?
page_pid=''
exit "$status"
