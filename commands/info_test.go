package commands_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gothrottle/commands/memory"
	"gothrottle/funnel"
	"gothrottle/tests/corpus"
)

// A transcript would have 128 names in a line: GO.INFO lists at most 128 holders, those whose slots lapse last, and counts all.
func TestInfo_manyLeases(t *testing.T) {
	s, now := memory.NewServer(), funnel.Micros(corpus.Epoch)
	for i := range 300 {
		s.Do(now, "GO.LEASE", "k", "1000", fmt.Sprint(100+i), fmt.Sprint("id", i))
	}
	for _, row := range []struct {
		wait  funnel.Micros
		held  int64
		names int
	}{{0, 300, 128}, {271, 128, 128}, {1, 127, 127}, {127, 0, 0}} {
		now += row.wait * 1_000_000
		reply, _ := s.Do(now, "GO.INFO", "k")
		pairs := reply.(memory.Map)
		holders := pairs[7].(memory.Map)
		if pairs[5] != row.held || len(holders) != 2*row.names || row.names > 0 && holders[0] != "id299" {
			t.Errorf("%+v: %v", row, pairs)
		}
		if row.names == 128 && slices.Contains(holders, any("id171")) {
			t.Errorf("%+v: it has a holder that lapses before others that it has not: %v", row, pairs)
		}
	}
}

// A transcript has no times after 2262.
func TestInfo_lateExpiry(t *testing.T) {
	const now = funnel.Micros(corpus.Epoch)
	s := memory.NewServer()
	s.Do(now, "GO.QUOTA", "k", "10", "60")
	v := s.Get("k").Clone()
	v.Expire = 1 << 62
	s.Put("k", v)
	want := fmt.Sprintf("[kind quota expires_in_ms %d used 1 ends_in_ms 60000]", math.MaxInt64/1_000_000-int64(now/1000))
	if got, _ := s.Do(now, "GO.INFO", "k"); fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
}
