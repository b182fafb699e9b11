#!/bin/bash
# Prints the path of a redis-server or valkey-server, installing the distribution's package if there is none and we may.
# GOTHROTTLE_SERVER names one to use instead. Exit 1 and no word: there is none.
. "$(dirname "$0")/lib.sh"

find_server() { command -v "${GOTHROTTLE_SERVER:-redis-server}" || command -v valkey-server; }

find_server && exit
can_install || exit 1
apt_install redis-server || apt_install valkey-server || exit 1
# apt_install kept the package's service down for now; this keeps it down at the next boot.
if [ -d /run/systemd/system ]; then
  systemctl disable --now --quiet redis-server valkey-server >&2 || true
fi
find_server
