//go:build race || asan

package fakehost_test

func init() { fewer = 8 }
