package cgo_test

import (
	"strconv"
	"testing"
	"time"
)

// The module's clock follows the server's clock. When the server's clock is set forward, the
// module's follows at once. When it is set back, the module's clock goes on at half the speed of
// the monotonic clock until the server's has caught up.
func TestClock(t *testing.T) {
	h := loaded(t)
	const inUse = 500_000 // ms
	wantReply(t, h, "GO.THROTTLE k 999999 1 1 500000 MS", "[0 1000000 500000 -1 500000]")
	start, mono := h.Now(), int64(0)
	for _, step := range []struct {
		what       string
		wall, mono int64 // µs since the start
		told       int64 // the module's clock, ms since the start
	}{
		{"a second passes", second, second, 1_000},
		{"set forward", 101 * second, second, 101_000},
		{"set back by 50 s", 51 * second, second, 101_000},
		{"4 s later", 55 * second, 5 * second, 103_000},
		{"set back again", 15 * second, 5 * second, 103_000},
		{"100 s later", 115 * second, 105 * second, 153_000},
		{"75 s later", 190 * second, 180 * second, 190_500},
		{"the two agree", 191 * second, 181 * second, 191_000},
		{"and go on together", 192 * second, 182 * second, 192_000},
		{"the monotonic clock means nothing then", 193 * second, 900 * second, 193_000},
	} {
		h.SetNow(start + step.wall)
		h.AdvanceMono(step.mono - mono)
		mono = step.mono
		if got := inUse - call(h, "GO.THROTTLE k 999999 1 1 0 MS").Ints()[4]; got != step.told {
			t.Errorf("%s: the module's clock is %d ms after the start, want %d", step.what, got, step.told)
		}
		lead := max(0, step.told*1000-step.wall)
		if got := field(t, h, "clock_lead_us"); got != strconv.FormatInt(lead, 10) {
			t.Errorf("%s: a lead of %s µs, want %d", step.what, got, lead)
		}
	}
}

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
	h.Hide("CachedMicroseconds")
	h.Load()
	wantReply(t, h, "GO.THROTTLE k 1 1 1 0", "[0 2 2 -1 0]")
	lead, err := strconv.ParseInt(field(t, h, "clock_lead_us"), 10, 64)
	if got := time.UnixMicro(last - lead); err != nil || time.Since(got).Abs() > time.Minute {
		t.Errorf("by its lead of %d µs the module thinks it is %v", lead, got)
	}
}

// All limiters work on a server whose clock starts in 1970.
func TestClock_before2001(t *testing.T) {
	h := loaded(t)
	h.SetNow(3600 * second)
	for _, row := range [][2]string{
		{"GO.THROTTLE k 9 10 60", "[0 10 9 -1 6]"}, {"GO.THROTTLE k 9 10 60", "[0 10 8 -1 12]"},
		{"GO.ALL m THROTTLE 9 10 60 THROTTLE 9 7 60", "[0 10 9 -1 6 0 [0 10 9 -1 6] [0 10 9 -1 9]]"},
		{"GO.ALL m THROTTLE 9 10 60 THROTTLE 9 7 60", "[0 10 8 -1 12 0 [0 10 8 -1 12] [0 10 8 -1 18]]"},
		{"GO.WINDOW w 9 10", "[0 9 8 -1 10]"}, {"GO.WINDOW w 9 10", "[0 9 7 -1 10]"},
		{"GO.QUOTA q 9 10", "[0 9 8 -1 10]"}, {"GO.QUOTA q 9 10", "[0 9 7 -1 10]"},
		{"GO.LEASE l 2 10 a", "[0 2 1 -1 10 0]"}, {"GO.LEASE l 2 10 b", "[0 2 0 -1 10 0]"},
	} {
		wantReply(t, h, row[0], row[1])
	}
}
