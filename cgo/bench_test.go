package cgo_test

import (
	"fmt"
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
)

// steady are calls that do the same work each time, as long as the clock stands still.
var steady = []struct {
	name, before, line, reply string
}{
	// A unit drains in 1 ns, so the expiry stays good for a billion calls.
	{"throttle/admitted", "GO.THROTTLE k 999999999999 1000000000 1", "GO.THROTTLE k 999999999999 1000000000 1", "[0 "},
	{"throttle/admitted_fraction", "GO.THROTTLE k 999999999999 700000001 1", "GO.THROTTLE k 999999999999 700000001 1", "[0 "},
	{"throttle/upto", "GO.THROTTLE k 999999999999 1000000000 1", "GO.THROTTLE k 999999999999 1000000000 1 UPTO", "[0 "},
	{"throttle/denied", "GO.THROTTLE k 15 30 60 16", "GO.THROTTLE k 15 30 60", "[1 16 0 2 32]"},
	{"throttle/peek", "GO.THROTTLE k 15 30 60", "GO.THROTTLE k 15 30 60 0", "[0 16 15 -1 2]"},
	{"throttle/force", "GO.THROTTLE k 999999999999 1000000000 1", "GO.THROTTLE k 0 1000000000 1 1 FORCE", "[0 "},
	{"throttle/reserve", "GO.THROTTLE k 999999999999 1000000000 1", "GO.THROTTLE k 0 1000000000 1 1 RESERVE 1000", "[0 "},
	{"throttle/no_slot", "GO.THROTTLE k 15 30 60 16", "GO.THROTTLE k 15 30 60 1 RESERVE 1", "[1 16 0 1 32 -1]"},
	{"throttle/locked", "LOCK", "GO.THROTTLE k 15 30 60 1 LOCKOUT 60", "[1 16 0 60 60]"},
	{"throttle/ro", "GO.THROTTLE k 15 30 60", "GO.THROTTLE_RO k 15 30 60", "[0 16 14 -1 4]"},
	{"throttle/error", "GO.THROTTLE k 15 30 60", "GO.THROTTLE k 15 30 60 1x", "ERR "},
	{"throttle/foreign", "", "GO.THROTTLE list 15 30 60", "WRONGTYPE "},
	{"throttle/arity", "", "CL.THROTTLE k 15 30 60 1 1", "ERR "},

	{"window/admitted", "GO.WINDOW k 1000000000000 60", "GO.WINDOW k 1000000000000 60", "[0 "},
	{"window/denied", "GO.WINDOW k 10 60 10", "GO.WINDOW k 10 60", "[1 10 0 60 60]"},
	{"window/denied_100", "FILL", "GO.WINDOW k 100 60", "[1 100 0 60 60]"},
	{"window/denied_100_bisected", "FILL", "GO.WINDOW k 100 60 50", "[1 100 0 60 60]"},
	{"window/force", "GO.WINDOW k 10 60 10", "GO.WINDOW k 10 60 1 FORCE", "[0 10 0 -1 60]"},
	{"window/ro", "FILL", "GO.WINDOW_RO k 101 60", "[0 101 0 -1 60]"},
	{"window/error", "", "GO.WINDOW k 10 60 1x", "ERR "},
	{"window/foreign", "", "GO.WINDOW list 10 60", "WRONGTYPE "},

	{"quota/admitted", "GO.QUOTA k 1000000000000 60", "GO.QUOTA k 1000000000000 60", "[0 "},
	{"quota/denied", "GO.QUOTA k 10 60 10", "GO.QUOTA k 10 60", "[1 10 0 60 60]"},
	{"quota/force", "GO.QUOTA k 10 60 10", "GO.QUOTA k 10 60 1 FORCE", "[0 10 0 -1 60]"},
	{"quota/ro", "GO.QUOTA k 10 60", "GO.QUOTA_RO k 10 60", "[0 10 8 -1 60]"},
	{"quota/error", "", "GO.QUOTA k 10 60 ALIGN", "ERR "},
	{"quota/foreign", "", "GO.QUOTA list 10 60", "WRONGTYPE "},

	{"lease/renewed", "GO.LEASE k 10 60 a", "GO.LEASE k 10 60 a", "[0 10 9 -1 60 1]"},
	{"lease/denied", "GO.LEASE k 1 60 a", "GO.LEASE k 1 60 b", "[1 1 0 60 60 0]"},
	{"lease/ro", "GO.LEASE k 1 60 a", "GO.LEASE_RO k 1 60 b", "[1 1 0 60 60 0]"},
	{"lease/error", "", "GO.LEASE k 1 60 b x", "ERR "},
	{"lease/foreign", "", "GO.LEASE list 1 60 b", "WRONGTYPE "},
	{"release/none", "GO.LEASE k 1 60 a", "GO.RELEASE k b", "0"},
	{"release/absent", "", "GO.RELEASE k b", "0"},
	{"release/foreign", "", "GO.RELEASE list b", "WRONGTYPE "},

	{"policy/denied", "GO.POLICY sample:k 2", "GO.POLICY sample:k", "[1 2 0 3600 7200 1 "},
	{"policy/peek", "", "GO.POLICY sample:k 0 MS", "[0 2 2 -1 0 1 "},
	{"policy/ro", "", "GO.POLICY_RO sample:k", "[0 2 1 -1 3600 1 "},
	{"policy/none", "", "GO.POLICY k", "ERR the key"},

	{"all_2/admitted", "", "GO.ALL k" + fast + fast, "[0 "},
	{"all_2/denied", "GO.THROTTLE k 15 30 60 16", "GO.ALL k THROTTLE 15 30 60 KEY l THROTTLE 15 30 60", "[1 "},
	{"all_2/error", "", "GO.ALL k THROTTLE 15 30 60 KEY l THROTTLE 15 30 x", "ERR "},
	{"all_2/foreign", "", "GO.ALL k THROTTLE 15 30 60 KEY list QUOTA 1 1", "WRONGTYPE "},
	{"all_2/arity", "", "GO.ALL k THROTTLE 15 30 60 KEY l", "ERR "},
	{"all_2/unknown", "", "GO.ALL k THROTTLE 15 30 60 KEY l LIMIT 1 1", "ERR "},
	{"all_4/mixed", "", mixed, "[0 "},
	{"all_4/mixed_denied", "GO.QUOTA q 10 60 10", mixed, "[0 "},
	{"all_4/mixed_ro", "", "GO.ALL_RO" + strings.TrimPrefix(mixed, "GO.ALL"), "[0 "},
	{"all_4/force", "", strings.Replace(mixed, " KEY l LEASE 10 60 a", " FORCE", 1), "[0 "},
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
	h.PutOther("list", "list")
	switch before {
	case "":
	case "LOCK":
		deny("60", 0)(h)
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
