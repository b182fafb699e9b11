#!/bin/bash
# The exporter script, Prometheus' rules and the dashboard, with a real server, exporter and Prometheus.
# Arguments are passed on to the test.
. "$(dirname "$0")/lib.sh"
need 'prometheus promtool prometheus-redis-exporter curl redis-cli' prometheus prometheus-redis-exporter curl redis-tools
need_server
go -C deploy test -count=1 -timeout 30m ./monitoring/ "$@"
