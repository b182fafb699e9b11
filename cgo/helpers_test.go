package cgo_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"gothrottle/cgo"
	"gothrottle/cgo/fakehost"
	"gothrottle/tests/corpus"
)

func init() { cgo.Version = "1.20.3" }

const second = 1_000_000 // µs

// newHost returns a server that has not loaded the module. Its configuration has the policies of the
// samples. The test fails if the server has
// noticed a fault by the end.
func newHost(t testing.TB) *fakehost.Host {
	t.Helper()
	h := fakehost.New()
	cgo.ForgetPanics()
	h.Configure("gothrottle.policies", corpus.SamplePolicies)
	if _, test := t.(*testing.T); test { // a benchmark would measure it
		h.PoisonStack()
	}
	t.Cleanup(func() {
		for _, fault := range h.Faults() {
			t.Error("fault: ", fault)
		}
		h.Close()
	})
	return h
}

// loaded returns a server with the module.
func loaded(t testing.TB, args ...string) *fakehost.Host {
	t.Helper()
	h := newHost(t)
	h.Configure("gothrottle.top-keys", "1000")
	if !h.Load(args...) {
		t.Fatalf("load refused: %q", h.Log())
	}
	return h
}

// call runs a command line.
func call(h *fakehost.Host, line string) fakehost.Reply { return h.Call(strings.Fields(line)...) }

// wantReply runs a command line and compares its reply.
func wantReply(t *testing.T, h *fakehost.Host, line, want string) {
	t.Helper()
	if got := call(h, line).String(); got != want {
		t.Errorf("%s: reply %s, want %s", line, got, want)
	}
}

// tat returns the TAT that lies this many ns after now, as text.
func tat(h *fakehost.Host, nanos int64) string { return strconv.FormatInt(h.Now()*1000+nanos, 10) }

// wantNothing checks that the latest call left the keyspace as it was before, and that it caused
// no effect, no event and no signal.
func wantNothing(t *testing.T, h *fakehost.Host, what string, before []string) {
	t.Helper()
	if after := h.Dump(); !slices.Equal(before, after) {
		t.Errorf("%s: the keyspace was %q, is %q", what, before, after)
	}
	if h.Effects() != nil || h.Events() != nil || h.Signals() != nil {
		t.Errorf("%s: effects %q, events %v, signals %q", what, h.Effects(), h.Events(), h.Signals())
	}
}

// wantUntouched checks that each of these calls replies want and changes nothing.
func wantUntouched(t *testing.T, h *fakehost.Host, want string, lines ...string) {
	t.Helper()
	before := h.Dump()
	for _, line := range lines {
		got := call(h, line).String()
		if got != want {
			t.Errorf("%s on %q: reply %s, want %s", line, before, got, want)
		}
		wantNothing(t, h, line, before)
	}
}

// run makes these calls and then lets pause µs pass.
func run(pause int64, lines ...string) func(*fakehost.Host) {
	return func(h *fakehost.Host) {
		for _, line := range lines {
			if got := call(h, line); got.Err != "" {
				panic(line + ": " + got.Err)
			}
		}
		h.Advance(pause)
	}
}
