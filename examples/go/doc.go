// Package examples shows how package throttle fits into other libraries. Each file is complete: copy the one you need.
package examples
