#!/bin/sh
# Adds the module to the server's arguments and runs the base image's own entrypoint. The module is added here and not
# in CMD, so that the server loads it whatever arguments or configuration file the user gives.
set -eu
module=/usr/lib/redis/modules/gothrottle.so

server=redis-server
command -v "$server" >/dev/null || server=valkey-server
case ${1-} in '' | -* | *.conf) set -- "$server" "$@" ;; esac

# CONFIG REWRITE writes a loadmodule line into the configuration file. The server does not start if it is told twice to
# load the module. Only the file itself is searched: a loadmodule line in a file that it includes is not found.
configuration_loads() {
  case ${1-} in '' | -*) return 1 ;; esac
  grep -Eiqs '^[[:space:]]*"?loadmodule"?[[:space:]].*gothrottle\.so' "$1"
}

case $1 in redis-server | valkey-server)
  case "$*" in
  # The user named the module, to give load arguments, or the server is a sentinel, which loads no modules.
  *"$module"* | *--sentinel*) ;;
  *) configuration_loads "${2-}" || set -- "$@" --loadmodule "$module" ;;
  esac
  ;;
esac
exec docker-entrypoint.sh "$@"
