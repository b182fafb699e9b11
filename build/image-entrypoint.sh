#!/bin/sh
# Adds the module to the server's arguments and runs the base image's own entrypoint. The module is added here and not
# in CMD, so that the server loads it whatever arguments or configuration file the user gives.
set -eu
module=/usr/lib/redis/modules/gothrottle.so

server=redis-server
command -v "$server" >/dev/null || server=valkey-server
case ${1-} in '' | -* | *.conf) set -- "$server" "$@" ;; esac

case $1 in redis-server | valkey-server)
  case "$*" in
  # The user named the module, to give load arguments, or the server is a sentinel, which loads no modules.
  *"$module"* | *--sentinel*) ;;
  *) set -- "$@" --loadmodule "$module" ;;
  esac
  ;;
esac
exec docker-entrypoint.sh "$@"
