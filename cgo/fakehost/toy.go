package fakehost

// #include "fake.h"
import "C"

// newToy starts a server whose Load loads the toy module instead of gothrottle.
func newToy() *Host {
	h := New()
	C.fake_be_toy()
	return h
}
