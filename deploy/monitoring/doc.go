// Package monitoring holds what Prometheus, redis_exporter and Grafana load, and the tests that run it: a server with the
// module, an exporter and Prometheus, all on 127.0.0.1.
package monitoring
