#!/bin/bash
# The gateway: its rules, decisions and answers on a local server, beside envoyproxy/ratelimit, and behind nginx, Caddy and
# HAProxy. Arguments are passed on to the tests: after build/gateway.sh, '-v -run Load -load 5s' compares the speed, with
# h2load of the package nghttp2-client.
. "$(dirname "$0")/lib.sh"
need_go

missing=()
have nginx || [ -x /usr/sbin/nginx ] || missing+=(nginx-light)
have caddy || missing+=(caddy)
have haproxy || [ -x /usr/sbin/haproxy ] || missing+=(haproxy)
[ ${#missing[@]} = 0 ] || ! can_install || apt_install "${missing[@]}"
export PATH=$PATH:/usr/sbin
for program in nginx caddy haproxy; do
  have "$program" || die "$program is needed: please install the packages nginx-light, caddy and haproxy."
done
build/module.sh
server=$(build/server.sh) || die 'no server to test against: please install redis-server (7.0 or newer) or valkey-server.'
# The version is fixed, because the project has no releases.
ratelimit=$CACHE/ratelimit-3fb702589d36
[ -x "$ratelimit/service_cmd" ] ||
  GOBIN=$ratelimit go install github.com/envoyproxy/ratelimit/src/service_cmd@v1.4.1-0.20260122083618-3fb702589d36
export GOTHROTTLE_MODULE=$PWD/build/out/gothrottle.so GOTHROTTLE_SERVER=$server GOTHROTTLE_RATELIMIT=$ratelimit/service_cmd
lint_module gateway
go -C gateway test -count=1 -timeout 10m ./... "$@"
