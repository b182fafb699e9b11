// Package examples shows how package throttle fits into other libraries. Each file stands alone: copy the one you need.
package examples
