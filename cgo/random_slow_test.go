//go:build race || asan

package cgo_test

func init() { fewer = 8 }
