package fakehost_test

import (
	"strings"
	"testing"
)

// steady are calls that do the same however often they run at one instant.
var steady = []struct {
	name, before, line, reply string
}{
	// A ns per unit: the expiry stays good for a billion calls.
	{"admitted", "GO.THROTTLE k 999999999999 1000000000 1", "GO.THROTTLE k 999999999999 1000000000 1", "[0 "},
	{"admitted_fraction", "GO.THROTTLE k 999999999999 700000001 1", "GO.THROTTLE k 999999999999 700000001 1", "[0 "},
	{"denied", "GO.THROTTLE k 15 30 60 16", "GO.THROTTLE k 15 30 60", "[1 16 0 2 32]"},
	{"peek", "GO.THROTTLE k 15 30 60", "GO.THROTTLE k 15 30 60 0", "[0 16 15 -1 2]"},
	{"error", "GO.THROTTLE k 15 30 60", "GO.THROTTLE k 15 30 60 1x", "ERR "},
	{"foreign", "", "GO.THROTTLE list 15 30 60", "WRONGTYPE "},
	{"arity", "", "CL.THROTTLE k 15 30 60 1 1", "ERR "},
}

// Go allocates nothing for a call, however it ends.
func TestAllocations(t *testing.T) {
	for _, row := range steady {
		h := loaded(t)
		h.PutOther("list", "list")
		if row.before != "" {
			call(h, row.before)
		}
		p := h.Prepare(strings.Fields(row.line)...)
		defer p.Free()
		if allocs := testing.AllocsPerRun(1000, p.Run); allocs != 0 {
			t.Errorf("%s: %v allocations per call", row.name, allocs)
		}
		if got := h.Reply().String(); !strings.HasPrefix(got, row.reply) {
			t.Errorf("%s: reply %s, want %s", row.name, got, row.reply)
		}
	}
}

// From the server's side of the API through C and Go and back; the host's own work is in it.
func BenchmarkCall(b *testing.B) {
	for _, row := range steady {
		b.Run(row.name, func(b *testing.B) {
			h := loaded(b)
			h.PutOther("list", "list")
			if row.before != "" {
				call(h, row.before)
			}
			p := h.Prepare(strings.Fields(row.line)...)
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

// What of that is the way into C and back, before the host does anything.
func BenchmarkCall_unknown(b *testing.B) {
	h := loaded(b)
	p := h.Prepare("GO.NOTHING")
	defer p.Free()
	b.ReportAllocs()
	for b.Loop() {
		p.Run()
	}
}
