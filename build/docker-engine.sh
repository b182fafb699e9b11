#!/bin/bash
# docker-engine.sh CMD ...  runs CMD with a Docker engine. If none answers, one is started here and stopped afterwards.
. "$(dirname "$0")/lib.sh"

answers() { "$DOCKER" version >/dev/null 2>&1; }

# A killed engine leaves a pid file, and another process may have that pid by now. dockerd would then refuse to start.
remove_stale() {
  local file=$1 name=$2
  if [ -f "$file" ] && [ "$(cat "/proc/$(cat "$file")/comm" 2>/dev/null)" != "$name" ]; then rm -f "$file"; fi
}

stop() {
  # A second signal must not leave the engine behind.
  trap '' INT TERM
  kill "$pid" 2>/dev/null || true
  timeout 30 tail --pid="$pid" -f /dev/null || kill -9 "$pid" 2>/dev/null || true
  rm -f "$log"
}

start() {
  [ "$(id -u)" = 0 ] || die 'no Docker engine answers, and only root can start one.'
  need dockerd docker.io iptables
  [ -x /usr/bin/docker ] && DOCKER=/usr/bin/docker
  remove_stale /var/run/docker.pid dockerd
  remove_stale /var/run/docker/containerd/containerd.pid containerd
  log=$(mktemp)
  # --ip: a port published without an address stays on this machine. --mtu: packets fit into networks that are tunnels.
  dockerd --ip 127.0.0.1 --mtu 1400 >"$log" 2>&1 </dev/null &
  pid=$!
  trap stop EXIT
  for _ in {1..120}; do
    if answers; then return; fi
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.5
  done
  tail -n 20 "$log" >&2
  die 'dockerd does not start: its last lines are above.'
}

answers || start
export DOCKER
"$@"
