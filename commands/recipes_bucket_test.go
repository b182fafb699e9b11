package commands

import (
	"math"
	"testing"
	"time"
)

// inProcess is the funnel of textbooks, an object in the memory of one process.
type inProcess struct {
	capacity, rate float64 // rate: units per second
	whole          bool    // counts in whole units, as an integer version does
	left           float64
	since          int64
}

func newFunnel(capacity, rate float64, whole bool) *inProcess {
	return &inProcess{capacity: capacity, rate: rate, whole: whole, left: capacity, since: nowMicros}
}

func (f *inProcess) take(now, n int64) (bool, int64) {
	leaked := float64(now-f.since) / 1e6 * f.rate
	if f.whole {
		leaked = math.Floor(leaked)
	}
	if leaked >= 1 {
		f.left, f.since = min(f.capacity, f.left+leaked), now
	}
	if f.left < float64(n) {
		return false, int64(f.left)
	}
	f.left -= float64(n)
	return true, int64(f.left)
}

func TestRecipe_funnel(t *testing.T) {
	// Looked at whenever whole units have leaked, it is the same.
	for _, whole := range []bool{false, true} {
		agree(t, newFunnel(15, 0.5, whole).take, "GO.THROTTLE k 14 1 2 %d", 2*time.Second, 4, 4)
		agree(t, newFunnel(15, 500, whole).take, "GO.THROTTLE k 14 1 2 %d MS", 2*time.Millisecond, 4, 4)
	}
	compare(t, newFunnel(2, 1, false).take, "GO.THROTTLE k 1 1 1 %d", []burst{
		{0, 2, 1, 2, 2},
		{1500 * time.Millisecond, 1, 1, 1, 1},
		// One unit is free, but the recipe does not see less than a unit since it last looked.
		{2000 * time.Millisecond, 1, 1, 0, 1},
		{2500 * time.Millisecond, 1, 1, 1, 0},
	})
	compare(t, newFunnel(2, 1, true).take, "GO.THROTTLE k 1 1 1 %d", []burst{
		{0, 2, 1, 2, 2},
		// With integers, what leaked beyond a whole unit is lost at each look.
		{1900 * time.Millisecond, 2, 1, 1, 1},
		{3800 * time.Millisecond, 2, 1, 1, 2},
	})

	// Two processes have two funnels, and a restarted one has an empty one.
	funnels := []*inProcess{newFunnel(15, 0.5, false), newFunnel(15, 0.5, false)}
	turn := 0
	compare(t, func(now, n int64) (bool, int64) {
		if turn++; turn == 50 {
			funnels[0] = newFunnel(15, 0.5, false)
		}
		return funnels[turn%2].take(now, n)
	}, "GO.THROTTLE k 14 1 2 %d", []burst{
		{0, 49, 1, 30, 15},
		{0, 49, 1, 15, 0},
	})
}

// springBucket is Spring Cloud Gateway's script: tokens and a timestamp, in two keys.
type springBucket struct {
	replenishRate, burstCapacity float64
	seconds                      bool // the clock counts whole seconds
	known                        bool // the keys exist; they outlive the time to fill up
	tokens, timestamp            float64
}

func (b *springBucket) take(micros, n int64) (bool, int64) {
	now := float64(micros) / 1e6
	if b.seconds {
		now = math.Floor(now)
	}
	if !b.known {
		b.known, b.tokens, b.timestamp = true, b.burstCapacity, 0
	}
	b.tokens = min(b.burstCapacity, b.tokens+max(0, now-b.timestamp)*b.replenishRate)
	b.timestamp = now // written by a denied call as well
	admitted := b.tokens >= float64(n)
	if admitted {
		b.tokens -= float64(n)
	}
	return admitted, int64(b.tokens)
}

func TestRecipe_spring(t *testing.T) {
	bucket := func(seconds bool) recipe {
		return (&springBucket{replenishRate: 10, burstCapacity: 20, seconds: seconds}).take
	}
	// With a clock of microseconds it is the same; requests above the capacity never fit.
	agree(t, bucket(false), "GO.THROTTLE k 19 10 1 %d", 125*time.Millisecond, 4, 5)
	agree(t, bucket(false), "GO.THROTTLE k 19 10 1 %d", time.Second, 4, 22)
	// With one of seconds it is, for calls at whole seconds.
	agree(t, bucket(true), "GO.THROTTLE k 19 10 1 %d", time.Second, 4, 22)
	// A rate below one per second: 3 per minute as 60 tokens of 180 a call, or as what it is.
	slow := &springBucket{replenishRate: 3, burstCapacity: 180}
	agree(t, slow.take, "GO.THROTTLE k 179 3 1 %d", 5*time.Second, 5, 90)
	slow.known = false
	agree(t, func(now, n int64) (bool, int64) {
		admitted, left := slow.take(now, 60*n)
		return admitted, left / 60
	}, "GO.THROTTLE k 2 3 60 %d", 5*time.Second, 9, 2)

	full := func() recipe {
		return (&springBucket{replenishRate: 10, burstCapacity: 10, seconds: true}).take
	}
	compare(t, full(), "GO.THROTTLE k 9 10 1 %d", []burst{
		// A new second fills it, though a millisecond has passed; ours has drained 0.01 units.
		{999 * time.Millisecond, 10, 1, 10, 10},
		{1000 * time.Millisecond, 10, 1, 10, 0},
		// Within a second nothing comes back, where ours gives a unit every 100 ms.
		{1999 * time.Millisecond, 10, 1, 0, 10},
	})
	compare(t, full(), "GO.THROTTLE k 9 10 1 %d", []burst{
		{0, 10, 1, 10, 10},
		{100 * time.Millisecond, 1, 1, 0, 1},
		{999 * time.Millisecond, 9, 1, 0, 8},
		{1000 * time.Millisecond, 10, 1, 10, 1},
	})
}

// timerBucket holds tokens that a timer adds with INCRBY and calls take with DECRBY.
type timerBucket struct {
	capacity, refill, every int64 // every: µs
	timers                  int64 // how many processes run one
	tokens, next            int64
}

func newTimerBucket(capacity, refill int64, every time.Duration) *timerBucket {
	micros := every.Microseconds()
	return &timerBucket{capacity: capacity, refill: refill, every: micros, timers: 1,
		tokens: capacity, next: nowMicros + micros}
}

// tick lets the timers run up to now.
func (b *timerBucket) tick(now int64) {
	for ; b.next <= now; b.next += b.every {
		b.tokens = min(b.capacity, b.tokens+b.timers*b.refill)
	}
}

func (b *timerBucket) take(now, n int64) (bool, int64) {
	b.tick(now)
	if b.tokens -= n; b.tokens < 0 { // DECRBY
		b.tokens += n // and back
		return false, b.tokens
	}
	return true, b.tokens
}

func TestRecipe_timer(t *testing.T) {
	// At the timer's ticks the bucket is the same.
	agree(t, newTimerBucket(10, 3, time.Second).take, "GO.THROTTLE k 9 3 1 %d", time.Second, 3, 7)
	// One that each tick fills is a fixed window that ends with the clock, at any time.
	agree(t, newTimerBucket(10, 10, time.Second).take, "GO.QUOTA k 10 1 %d ALIGN 0", time.Millisecond, 300, 5)

	compare(t, newTimerBucket(10, 10, time.Second).take, "GO.THROTTLE k 9 10 1 %d", []burst{
		// Two fillings within a millisecond; ours drains all the time.
		{999 * time.Millisecond, 20, 1, 10, 10},
		{1000 * time.Millisecond, 20, 1, 10, 0},
		{1500 * time.Millisecond, 20, 1, 0, 5},
	})
	// Each process that runs the timer adds to the rate.
	two := newTimerBucket(10, 1, time.Second)
	two.timers = 2
	compare(t, two.take, "GO.THROTTLE k 9 1 1 %d", []burst{
		{0, 10, 1, 10, 10},
		{5 * time.Second, 20, 1, 10, 5},
	})
	// When it stops, the bucket dries up.
	stopped := newTimerBucket(10, 1, time.Second)
	stopped.timers = 0
	compare(t, stopped.take, "GO.THROTTLE k 9 1 1 %d", []burst{
		{0, 10, 1, 10, 10},
		{time.Hour, 10, 1, 0, 10},
	})

	// Taking and putting back are two steps: while A, who asked for too much, has not put
	// back, B is denied what is there.
	b := newTimerBucket(10, 1, time.Second)
	b.tokens -= 12 // A: DECRBY
	denied := b.tokens-1 < 0
	b.tokens += 12
	if !denied || b.tokens != 10 {
		t.Errorf("B denied: %v, %d left", denied, b.tokens)
	}
	converse(t, []step{
		{0, "GO.THROTTLE k 9 1 1 12", "1 10 10 -1 0"},
		{0, "GO.THROTTLE k 9 1 1 1", "0 10 9 -1 1"},
	})
}
