package cgo_test

// A transcript's clock only goes forward. TestRandom sets it back and compares replies; this is what INFO shows.

import (
	"testing"
	"time"

	"gothrottle/cgo/fakehost"
)

// INFO shows the lead that the next call has: with and without traffic, while the server's clock is
// set back and forth, and however often INFO is read.
func TestClock_lead(t *testing.T) {
	h := loaded(t)
	call(h, "GO.THROTTLE_RO k 1 1 1")
	for _, step := range []struct {
		what string
		move func()
		lead int64 // µs
	}{
		{"no lead", func() {}, 0},
		{"a second without traffic", func() { h.Advance(second) }, 0},
		{"set back by an hour without traffic", func() { h.SetNow(h.Now() - 3600*second) }, 3599 * second},
		{"a call", func() { call(h, "GO.THROTTLE_RO k 1 1 1") }, 3599 * second},
		{"10 s without traffic", func() { h.Advance(10 * second) }, 3594 * second},
		{"10 s more without traffic", func() { h.Advance(10 * second) }, 3589 * second},
		{"a call again", func() { call(h, "GO.THROTTLE_RO k 1 1 1") }, 3589 * second},
		{"set back by 100 s more", func() { h.SetNow(h.Now() - 100*second) }, 3689 * second},
		{"set forward by half an hour", func() { h.SetNow(h.Now() + 1800*second) }, 1889 * second},
		{"long enough without traffic", func() { h.Advance(3779 * second) }, 0},
	} {
		step.move()
		for range 2 {
			if got := number(t, h, "clock_lead_us"); got != int(step.lead) {
				t.Errorf("%s: a lead of %d µs, want %d", step.what, got, step.lead)
			}
		}
	}
}

// On a server without CachedMicroseconds the module takes the system's time.
func TestClock_system(t *testing.T) {
	h := loaded(t)
	call(h, "GO.THROTTLE k 1 1 1")
	last := h.Now()
	h = newHost(t)
	h.Add(fakehost.Hidden, "CachedMicroseconds")
	h.Load()
	wantReply(t, h, "GO.THROTTLE k 1 1 1 0", "[0 2 2 -1 0]")
	lead := int64(number(t, h, "clock_lead_us"))
	if got := time.UnixMicro(last - lead); time.Since(got).Abs() > time.Minute {
		t.Errorf("by its lead of %d µs the module thinks it is %v", lead, got)
	}
}
