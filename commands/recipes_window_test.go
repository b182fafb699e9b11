package commands

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// zsetLog is the pipeline of ZADD, ZREMRANGEBYSCORE and ZCARD on a sorted set.
type zsetLog struct {
	limit, period int64           // of the clock's unit
	micros        bool            // the client's clock counts µs, not ms
	mended        bool            // unique members, and checked before recorded, in one step
	members       map[int64]int64 // and their scores
	serial        int64
}

func (z *zsetLog) add(now int64) {
	if z.members == nil {
		z.members = map[int64]int64{}
	}
	member := now
	if z.mended {
		z.serial++
		member = z.serial
	}
	z.members[member] = now
}

// card is ZREMRANGEBYSCORE 0 now-period and ZCARD.
func (z *zsetLog) card(now int64) int64 {
	for member, score := range z.members {
		if score <= now-z.period {
			delete(z.members, member)
		}
	}
	return int64(len(z.members))
}

func (z *zsetLog) take(now, n int64) (bool, int64) {
	if !z.micros {
		now /= 1000
	}
	if !z.mended {
		z.add(now)
		used := z.card(now)
		return used <= z.limit, max(z.limit-used, 0)
	}
	left := z.limit - z.card(now)
	if n > left {
		return false, left
	}
	for range n {
		z.add(now)
	}
	return true, left - n
}

// With its four faults mended, which takes a script, the pipeline decides as GO.WINDOW does.
func TestRecipe_zset(t *testing.T) {
	log := func(limit int64) recipe {
		return (&zsetLog{limit: limit, period: 60_000, mended: true}).take
	}
	agree(t, log(5), "GO.WINDOW k 5 60 %d", time.Millisecond, 20_000, 2)
	agree(t, log(5), "GO.WINDOW k 5 60000 %d MS", time.Millisecond, 20_000, 2)
	agree(t, log(120), "GO.WINDOW k 120 60 %d", time.Millisecond, 1000, 4)
	agree(t, log(500), "GO.WINDOW k 500 60 %d EXACT", time.Millisecond, 200, 9)

	compare(t, log(240), "GO.WINDOW k 240 60 %d", []burst{
		// Above 120, calls in the same 120th part of the period, here 0.5 s, share an entry.
		{0, 1, 1, 1, 1},
		{400 * time.Millisecond, 239, 1, 239, 239},
		// It leaves with the newest of them: up to 0.5 s later, never too early.
		{60 * time.Second, 1, 1, 1, 0},
		{60_399 * time.Millisecond, 1, 1, 0, 0},
		{60_400 * time.Millisecond, 240, 1, 239, 240},
	})

	// The pipeline's own sorted set is not taken for a window, and stays.
	s := newStore(t)
	old := &value{kind: KindZset, set: []Entry{{Time: nowMicros / 1000, Member: fmt.Sprint(nowMicros / 1000)}}}
	s.keys["k"] = old
	if _, err := s.do("GO.WINDOW k 5 60"); err != ErrForeignWindow || s.keys["k"] != old || len(old.set) != 1 {
		t.Errorf("on the pipeline's key: %q", err.Text())
	}
}

// Fault 1: the time is the member, so calls at one time are one member and count once.
func TestZsetFault_sameInstant(t *testing.T) {
	compare(t, (&zsetLog{limit: 2, period: 60_000}).take, "GO.WINDOW k 2 60 %d", []burst{
		// In one millisecond, at different microseconds.
		{100 * time.Microsecond, 1, 1, 1, 1},
		{200 * time.Microsecond, 1, 1, 1, 1},
		{300 * time.Microsecond, 1, 1, 1, 0},
		{999 * time.Microsecond, 7, 1, 7, 0},
	})
	// A clock of microseconds makes it rarer: it does not end it.
	s := compare(t, (&zsetLog{limit: 2, period: 60_000_000, micros: true}).take, "GO.WINDOW k 2 60 %d", []burst{
		{0, 10, 1, 10, 2},
	})
	if got := s.must("GO.WINDOW k 10 60 0")[2]; got != 8 {
		t.Errorf("two calls in one microsecond leave %d of 10", got)
	}
}

// Fault 2: a denied call is recorded, so a client that hammers is never admitted again.
func TestZsetFault_deniedRecorded(t *testing.T) {
	s := newStore(t)
	log := &zsetLog{limit: 5, period: 60_000}
	for minute := range 3 {
		recipe, ours := 0, 0
		for range 600 { // ten calls a second
			if admitted, _ := log.take(int64(s.now), 1); admitted {
				recipe++
			}
			var before []Entry
			if k := s.keys["k"]; k != nil {
				before = slices.Clone(k.set)
			}
			if s.must("GO.WINDOW k 5 60")[0] == 0 {
				ours++
			} else if !slices.Equal(before, s.keys["k"].set) {
				t.Fatal("a denied call left a trace")
			}
			s.now += 100_000
		}
		if want := []int{5, 0}[min(minute, 1)]; recipe != want || ours != 5 {
			t.Errorf("minute %d: the recipe admits %d, ours %d", minute, recipe, ours)
		}
	}
	if n, ours := len(log.members), len(s.keys["k"].set); n != 600 || ours != 5 {
		t.Errorf("at limit 5 the recipe keeps %d members, ours %d", n, ours)
	}
}

// Fault 3: a member per call: at 120 bytes each, 1,000,000 calls are about 120 MB a key.
func TestZsetFault_memory(t *testing.T) {
	log := &zsetLog{limit: 1_000_000, period: 60_000}
	for i := range int64(300) {
		if log.take(nowMicros+i*1000, 1); int64(len(log.members)) != i+1 {
			t.Fatalf("%d members after %d calls", len(log.members), i+1)
		}
	}
	s := newStore(t)
	units, most, bytes := int64(0), 0, 0
	for range 5000 { // two minutes at the full rate, 400 units every 24 ms
		units += 400 * (1 - s.must("GO.WINDOW k 1000000 60 400")[0])
		size := 0
		for _, e := range s.keys["k"].set {
			size += len(e.Member) + 8 // and its score
		}
		most, bytes = max(most, len(s.keys["k"].set)), max(bytes, size)
		s.now += 24_000
	}
	if most < 120 || most > 121 || bytes > 4096 {
		t.Errorf("up to %d entries, %d bytes", most, bytes)
	}
	// A shared entry leaves up to half a second late.
	if units < 1_990_000 || units > 2_000_000 {
		t.Errorf("%d units admitted", units)
	}
}

// Fault 4: the check and the record are two steps, and another client comes between.
func TestZsetFault_twoSteps(t *testing.T) {
	nearlyFull := func() *zsetLog {
		z := &zsetLog{limit: 5, period: 60_000}
		for now := range int64(4) {
			z.add(now)
		}
		return z
	}
	// Clients A and B, one place. Checked first: both find it free, and both take it.
	z := nearlyFull()
	a, b := z.card(10) < z.limit, z.card(11) < z.limit
	z.add(10)
	z.add(11)
	if !a || !b || z.card(12) != 6 {
		t.Errorf("checked first: %v, %v, %d of 5 in use", a, b, z.card(12))
	}
	// Recorded first, as in a pipeline: both find it taken, and nobody gets it.
	z = nearlyFull()
	z.add(10)
	z.add(11)
	if a, b = z.card(10) <= z.limit, z.card(11) <= z.limit; a || b {
		t.Errorf("recorded first: %v, %v", a, b)
	}
	// Ours is one step, so A and B come in one order or the other: the first one gets it.
	for _, order := range []string{"AB", "BA"} {
		s := newStore(t)
		s.must("GO.WINDOW k 5 60 4")
		won := ""
		for _, client := range order {
			s.now += 1000
			if s.must("GO.WINDOW k 5 60")[0] == 0 {
				won += string(client)
			}
		}
		if used := 100 - s.must("GO.WINDOW k 100 60 0")[2]; won != order[:1] || used != 5 {
			t.Errorf("order %s: %q admitted, %d in use", order, won, used)
		}
	}
}
