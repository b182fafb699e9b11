#!/bin/bash
# The gateway: its rules, decisions and answers on a local server, beside envoyproxy/ratelimit, and behind nginx, Caddy and
# HAProxy, before apps of Express and gunicorn. Traefik takes part if it is on PATH. Arguments are passed on to the tests.
. "$(dirname "$0")/lib.sh"

export PATH=$PATH:/usr/sbin
need 'nginx caddy haproxy gunicorn' nginx-light caddy haproxy gunicorn
need 'node npm' nodejs npm
node_modules
need_server
GOTHROTTLE_RATELIMIT=$(upstream_gateway)
export GOTHROTTLE_RATELIMIT
lint_module gateway
go -C gateway test -count=1 -timeout 10m ./... "$@"
