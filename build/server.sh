#!/bin/bash
# Prints the path of a redis-server or valkey-server. If there is none, the distribution's package is installed where
# that is allowed. GOTHROTTLE_SERVER names another server to use. Exit status 1 without output means: there is no server.
. "$(dirname "$0")/lib.sh"

find_server() { command -v "${GOTHROTTLE_SERVER:-redis-server}" || command -v valkey-server; }

find_server && exit
can_install || exit 1
apt_install redis-server || apt_install valkey-server || exit 1
# apt_install kept the package's service from starting now. This keeps the service from starting at the next boot.
if [ -d /run/systemd/system ]; then
  systemctl disable --now --quiet redis-server valkey-server >&2 || true
fi
find_server
