#!/bin/bash
# The exporter script, Prometheus' rules and the dashboard, with a real server, exporter and Prometheus.
# Arguments are passed on to the test.
. "$(dirname "$0")/lib.sh"
need_go

have prometheus && have prometheus-redis-exporter && have promtool && have curl || ! can_install ||
  apt_install prometheus prometheus-redis-exporter curl
for program in prometheus promtool prometheus-redis-exporter curl redis-cli; do
  have "$program" || die "$program is needed: please install the packages prometheus, prometheus-redis-exporter, curl and redis-tools."
done
build/module.sh
server=$(build/server.sh) || die 'no server to test against: please install redis-server (7.0 or newer) or valkey-server.'
GOTHROTTLE_MONITORED=$PWD/build/out/gothrottle.so GOTHROTTLE_SERVER=$server \
  go -C deploy test -count=1 -timeout 30m ./monitoring/ "$@"
