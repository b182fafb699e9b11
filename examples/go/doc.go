// Package examples shows how package throttle fits into other libraries. Copy the file that you need.
// otel.go and prometheus.go also need outcome.go.
package examples
