#!/bin/bash
# redis-cli, 7.0 or newer: 5 units per user and minute. ADDR=127.0.0.1:6379 limit.sh bob [units]
# Prints "admitted" or "denied retry_after" and exits with 0 or 1; with 2 if there is no decision. WAIT=1 waits.
set -u
fail_open=yes # while the server is away: yes admits, no is no decision

stop() {
  echo "$1" >&2
  exit 2
}

# redis-cli has no time limit of its own for a reply. With -e an error reply is a failure. Each call is sent once.
call() { timeout 1 redis-cli -h "${ADDR%:*}" -p "${ADDR##*:}" -e "$@" 2>&1; }

# Stops after a fault of this script. After other errors the server is away, full, or a replica.
failed() {
  [[ $1 =~ ^(ERR|WRONG|NOAUTH|NOPERM|AUTH|timeout:) && $1 != *'max number'* ]] && stop "$1"
  [ $fail_open = yes ] || stop "${1:-no reply in time}"
  echo "${1:-no reply in time}" >&2
  echo admitted
  exit 0
}

info=$(call COMMAND INFO GO.THROTTLE) || failed "$info"
[ -n "$info" ] || stop 'the server does not know GO.THROTTLE: load the module gothrottle'

for ((tries = ${WAIT:+3} + 0; ; tries--)); do
  reply=$(call GO.THROTTLE "user:$1" 4 5 60 "${2:-1}") || failed "$reply"
  read -r limited _ _ retry_after _ <<<"${reply//$'\n'/ }"
  [ "$limited" = 1 ] || { echo admitted && exit 0; }
  if [ "$retry_after" -lt 0 ] || [ "$tries" -le 1 ]; then # -1: it never will be admitted
    echo "denied $retry_after"
    exit 1
  fi
  sleep "$retry_after.$((RANDOM % 90 + 10))" # up to a second longer, so that not all come at once
done
