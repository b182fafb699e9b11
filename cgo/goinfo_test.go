package cgo_test

import (
	"fmt"
	"testing"

	"gothrottle/cgo/fakehost"
)

const (
	foreignZset = "ERR the sorted set at this key is not a rate limiter"
	foreignText = "ERR the string at this key is not a rate limiter"
)

// A transcript cannot rename commands. GO.INFO reads strings by GET, so the server keeps the encoding even of strings that are
// ours. An administrator may have renamed GET: then the strings are read where they are.
func TestGoInfo_strings(t *testing.T) {
	for _, renamed := range []bool{false, true} {
		h := loaded(t)
		h.PutString("cell", tat(h, 7_000_000_001))
		h.PutString("quota", "3@"+tat(h, 60_000_000_000))
		if renamed {
			h.RenameAway("GET")
		}
		wantReply(t, h, "GO.INFO cell", "[kind throttle expires_in_ms -1 cells [[in_use (nil) count (nil) period_ms (nil) empty_in_ms 7001 locked_for_ms 0]]]")
		wantReply(t, h, "GO.INFO quota", "[kind quota expires_in_ms -1 used 3 ends_in_ms 60000]")
		if !renamed && (h.Encoding("cell") != "int" || h.Encoding("quota") != "embstr") {
			t.Errorf("encodings %s, %s", h.Encoding("cell"), h.Encoding("quota"))
		}
	}
}

// The cost of GO.INFO is bounded, whatever it meets. A cell costs at most 12 API calls to read and 26 to tell:
// 11 items, and for each name in them its string is made and freed. A holder costs at most 10.
func TestGoInfo_cost(t *testing.T) {
	const most = 60 + 32*(12+26) + 128*10
	for _, s := range append(hostiles,
		hostile{name: "32 cells", make: func(h *fakehost.Host, _ int) { cells(32)(h) }, size: 10},
		hostile{name: "100 lapsed and 10,000 live leases", make: func(h *fakehost.Host, size int) {
			h.FillZset("k", size, func(i int) member {
				return scored(-float64(h.Now()+1000-int64(i)*1100/int64(size)), fmt.Sprint("\x02", i))
			})
		}, size: 10_000},
	) {
		for _, key := range []string{"k", "key1"} {
			small, fewSteps := costOf(t, &s, "GO.INFO "+key, s.size/10)
			large, steps := costOf(t, &s, "GO.INFO "+key, s.size)
			if large > small+12 || steps > fewSteps+12 {
				t.Errorf("%s: %d API calls and %d steps, %d and %d in a state of a tenth of the size", s.name, large, steps, small, fewSteps)
			}
			if large > most || steps > 500 {
				t.Errorf("%s: %d API calls and %d steps", s.name, large, steps)
			}
		}
	}
}
