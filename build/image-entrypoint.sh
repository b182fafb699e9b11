#!/bin/sh
# Adds the module to the server's arguments and hands over to the base image's own entrypoint. Added here and not in
# CMD, so that it is loaded whatever arguments or configuration file the user gives.
set -eu
module=/usr/lib/redis/modules/gothrottle.so

server=redis-server
command -v "$server" >/dev/null || server=valkey-server
case ${1-} in '' | -* | *.conf) set -- "$server" "$@" ;; esac

case $1 in redis-server | valkey-server)
  case "$*" in
  # Named by the user, for its load arguments, or a sentinel, which loads no modules.
  *"$module"* | *--sentinel*) ;;
  *) set -- "$@" --loadmodule "$module" ;;
  esac
  ;;
esac
exec docker-entrypoint.sh "$@"
