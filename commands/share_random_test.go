package commands_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"gothrottle/commands/memory"
	"gothrottle/funnel"
)

// Random tenants, in chains of up to four: a denied call is admitted after its retry_after if no call comes between, and not 1 ms
// sooner. No transcript shows that of any state.
func TestShare_promise(t *testing.T) {
	s := memory.NewServer()
	s.SetLag(1 << 60) // so that a look at a later time deletes nothing
	r, now, kept := rand.New(rand.NewPCG(1, 1)), funnel.Micros(1_700_000_000_000_000), 0
	first := func(at funnel.Micros, line string) (limited, wait int64) {
		reply, err := s.Do(at, strings.Fields(line)...)
		if err != nil {
			t.Fatal(line, err)
		}
		front := reply.([]any)
		return front[0].(int64), front[3].(int64)
	}
	for n := range 30_000 {
		quantity := r.IntN(4)
		line := fmt.Sprintf(" m%d THROTTLE %d %d 10s %d", r.IntN(3), 4+r.IntN(30), 5+r.IntN(20)*r.IntN(2), quantity)
		for level := range 1 + r.IntN(4) {
			kind := []string{"WINDOW 1000 9s", "WINDOW 20 9s", "QUOTA 1000 9s"}[r.IntN(3)]
			line += fmt.Sprintf(" KEY %c%d%d %s %d SHARE %d MS", kind[0], level, r.IntN(3), kind, quantity, 1+r.IntN(4))
			line = strings.Replace(line, " MS KEY", " KEY", 1)
		}
		if n%50 == 0 {
			now += funnel.Micros(r.IntN(30_000_000))
		}
		now += funnel.Micros(r.IntN(400_000))
		limited, wait := first(now, "GO.ALL"+line)
		if limited == 0 || wait < 0 {
			continue
		}
		kept++
		later := now + funnel.Micros(wait)*1000
		if limited, _ := first(later, "GO.ALL_RO"+line); limited != 0 {
			t.Fatalf("call %d: %s: after %d ms it is denied", n, line, wait)
		}
		if limited, _ := first(later-1000, "GO.ALL_RO"+line); limited == 0 {
			t.Fatalf("call %d: %s: 1 ms before %d ms it is admitted", n, line, wait)
		}
	}
	if kept < 5000 {
		t.Errorf("only %d waits", kept)
	}
	t.Log(kept, "waits")
}
