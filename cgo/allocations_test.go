package cgo_test

import (
	"fmt"
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
)

// Go allocates no memory for a call, whether the call is admitted, denied or an error.
func TestAllocations(t *testing.T) {
	for _, row := range steady {
		h := loaded(t)
		p := prepare(h, row.before, row.line)
		if allocs := testing.AllocsPerRun(100, p.Run); allocs != 0 {
			t.Errorf("%s: %v allocations per call", row.name, allocs)
		}
		if got := h.Reply().String(); !strings.HasPrefix(got, row.reply) {
			t.Errorf("%s: reply %s, want %s", row.name, got, row.reply)
		}
		p.Free()
	}
}

// Go allocates no memory for calls that change their key in a new way each time: calls that add
// slots or entries, and calls that remove old ones.
func TestAllocations_changing(t *testing.T) {
	for _, line := range []string{"GO.WINDOW k 10 1", "GO.WINDOW k 1000 1 2 EXACT", "GO.WINDOW k 1000 1 -3", "GO.QUOTA k 10 1", "GO.QUOTA k 10 1 -1",
		"GO.THROTTLE k 9 7 1 3", "GO.THROTTLE k 9 7 1 -3", "GO.THROTTLE k 9 7 1 3 FORCE", "GO.THROTTLE k 9 7 1 3 RESERVE 1",
		"GO.THROTTLE k 9 7 1000 3 MS LOCKOUT 1", "GO.WINDOW k 10 1 3 FORCE", "GO.WINDOW k 10 1 3 EXACT FORCE", "GO.QUOTA k 10 1 3 FORCE",
		"GO.ALL k THROTTLE 9 7 1 THROTTLE 9 10 1 3 KEY w WINDOW 9 1 KEY q QUOTA 9 1 FORCE", "GO.LEASE k 5 1 ", "GO.RELEASE k ", "GO.ALL k THROTTLE 9 7 1 THROTTLE 9 10 1 -1 KEY w WINDOW 9 1 KEY q QUOTA 9 1 KEY l LEASE 9 1 a", "GO.ALL k WINDOW 10 1 KEY l LEASE 1 1 a", "GO.POLICY sample:k 1"} {
		h := loaded(t)
		var calls []fakehost.Prepared
		for i := range 1000 {
			if strings.HasSuffix(line, " ") {
				h.Call(strings.Fields(fmt.Sprint("GO.LEASE k 1000 100 ", i))...)
				calls = append(calls, h.Prepare(strings.Fields(fmt.Sprint(line, i))...))
			} else {
				calls = append(calls, h.Prepare(strings.Fields(line)...))
			}
		}
		i := 0
		allocs := testing.AllocsPerRun(len(calls)-1, func() {
			calls[i].Run()
			h.Advance(int64(i) * 97)
			i++
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations per call", line, allocs)
		}
		for _, p := range calls {
			p.Free()
		}
	}
}
