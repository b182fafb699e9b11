package cgo_test

// No transcript measures time or counts allocations.

import (
	"fmt"
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
)

// steady are calls that do the same work each time, as long as nobody moves the clock. The reply shows that a call took the path
// that its name says.
var steady = []struct {
	name, before, line, reply string
}{
	// A unit drains in 1 ns, so the expiry stays good for a billion calls.
	{"throttle/admitted", "GO.THROTTLE k 999999999999 1000000000 1", "GO.THROTTLE k 999999999999 1000000000 1", "[0 "},
	{"throttle/admitted_fraction", "GO.THROTTLE k 999999999999 700000001 1", "GO.THROTTLE k 999999999999 700000001 1", "[0 "},
	{"throttle/denied", "GO.THROTTLE k 15 30 60 16", "GO.THROTTLE k 15 30 60", "[1 16 0 2 32]"},
	{"throttle/locked", "LOCK", "GO.THROTTLE k 15 30 60 1 LOCKOUT 60", "[1 16 0 60 60]"},
	{"throttle/error", "GO.THROTTLE k 15 30 60", "GO.THROTTLE k 15 30 60 1x", "ERR "},
	{"window/admitted", "GO.WINDOW k 1000000000000 60", "GO.WINDOW k 1000000000000 60", "[0 "},
	{"window/denied", "GO.WINDOW k 10 60 10", "GO.WINDOW k 10 60", "[1 10 0 60 60]"},
	{"window/denied_100_bisected", "FILL", "GO.WINDOW k 100 60 50", "[1 100 0 60 60]"},
	{"quota/admitted", "GO.QUOTA k 1000000000000 60", "GO.QUOTA k 1000000000000 60", "[0 "},
	{"quota/denied", "GO.QUOTA k 10 60 10", "GO.QUOTA k 10 60", "[1 10 0 60 60]"},
	{"lease/renewed", "GO.LEASE k 10 60 a", "GO.LEASE k 10 60 a", "[0 10 9 -1 60 1]"},
	{"lease/denied", "GO.LEASE k 1 60 a", "GO.LEASE k 1 60 b", "[1 1 0 60 60 0]"},
	{"release/none", "GO.LEASE k 1 60 a", "GO.RELEASE k b", "0"},
	{"policy/denied", "GO.POLICY sample:k 2", "GO.POLICY sample:k", "[1 2 0 3600 7200 1 "},
	{"all_2/admitted", "", "GO.ALL k" + fast + fast, "[0 "},
	{"all_4/mixed", "", mixed, "[0 "},
	{"all_4/mixed_denied", "GO.QUOTA q 10 60 10", mixed, "[0 "},
	{"all_32/keys", "", "GO.ALL key0" + fast + manyKeys(1, 31, fast), "[0 "},
	{"all_32/cells", "", "GO.ALL k" + strings.Repeat(fast, 32), "[0 "},
}

const (
	fast  = " THROTTLE 999999999999 1000000000 1" // a unit drains in 1 ns
	mixed = "GO.ALL t" + fast + " KEY w WINDOW 1000000000000 60 KEY q QUOTA 1000000000000 60 KEY l LEASE 10 60 a"
)

// manyKeys returns the words of n further keys of GO.ALL, each with these clauses.
func manyKeys(first, n int, clauses string) (words string) {
	for i := range n {
		words += fmt.Sprint(" KEY key", first+i, clauses)
	}
	return words
}

func prepare(h *fakehost.Host, before, line string) fakehost.Prepared {
	h.Put("list", list)
	switch before {
	case "":
	case "LOCK":
		deny(h)
	case "FILL":
		for range 100 {
			call(h, "GO.WINDOW k 100 60")
			h.Advance(1)
		}
	default:
		call(h, before)
	}
	return h.Prepare(strings.Fields(line)...)
}

// BenchmarkCall measures whole calls: through C into Go and back. The time includes the fake
// host's own work.
func BenchmarkCall(b *testing.B) {
	for _, row := range steady {
		b.Run(row.name, func(b *testing.B) {
			h := loaded(b)
			p := prepare(h, row.before, row.line)
			defer p.Free()
			b.ReportAllocs()
			for b.Loop() {
				p.Run()
			}
			if got := h.Reply().String(); !strings.HasPrefix(got, row.reply) {
				b.Errorf("reply %s, want %s", got, row.reply)
			}
		})
	}
}

// BenchmarkCall_cycle measures pairs of calls that take and give back, or that a pause separates.
func BenchmarkCall_cycle(b *testing.B) {
	for _, row := range []struct {
		name, one, two string
		pause          int64 // µs
	}{
		{"window_exact_100_entries", "GO.WINDOW k 101 1", "", 10_000},
		{"window_121_entries", "GO.WINDOW k 1000000000 1", "", 8_334},
		{"quota_new_window", "GO.QUOTA k 10 1", "", second},
		{"lease_release", "GO.LEASE k 10 60 a", "GO.RELEASE k a", 0},
		{"throttle_refund", "GO.THROTTLE k 15 30 60", "GO.THROTTLE k 15 30 60 -1", 0},
	} {
		b.Run(row.name, func(b *testing.B) {
			h := loaded(b)
			one := h.Prepare(strings.Fields(row.one)...)
			defer one.Free()
			two := one
			if row.two != "" {
				two = h.Prepare(strings.Fields(row.two)...)
				defer two.Free()
			}
			b.ReportAllocs()
			for b.Loop() {
				one.Run()
				h.Advance(row.pause)
				two.Run()
				h.Advance(row.pause)
			}
		})
	}
}

// Go allocates no memory for any call, whether it is admitted, denied or an error, and whatever its key holds.
func TestAllocations(t *testing.T) {
	w := newWalk(t)
	for range rounds(200) {
		var calls []fakehost.Prepared
		var lines []string
		for range 50 {
			words := w.words()
			calls, lines = append(calls, w.h.Prepare(words...)), append(lines, strings.Join(words, " "))
		}
		w.meddle()
		allocations := func() float64 {
			return testing.AllocsPerRun(1, func() { // runs them twice
				for _, p := range calls {
					p.Run()
					w.h.Advance(9973)
				}
			})
		}
		n := allocations()
		for tries := 0; n != 0 && tries < 3; tries++ { // on a busy machine the runtime may make a thread meanwhile
			n = allocations()
		}
		if n != 0 {
			t.Fatalf("seed %d: %v allocations in the calls\n%s", w.seed, n, strings.Join(lines, "\n"))
		}
		for _, p := range calls {
			p.Free()
		}
	}
}

// BenchmarkCall_unknown measures the part of BenchmarkCall that the test spends on its own way
// into C: the host knows no such command and does nothing.
func BenchmarkCall_unknown(b *testing.B) {
	h := loaded(b)
	p := h.Prepare("GO.NOTHING")
	defer p.Free()
	b.ReportAllocs()
	for b.Loop() {
		p.Run()
	}
}
