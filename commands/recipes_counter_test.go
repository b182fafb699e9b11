package commands

import (
	"testing"
	"time"
)

// counter is INCR, and EXPIRE when that said 1. Redis ends a key in the ms after its expiry.
type counter struct {
	limit, period int64 // period: ms
	always        bool  // EXPIRE after each INCR
	value, expire int64 // expire: ms; 0: none
}

func (c *counter) incr(now, n int64) {
	if c.expire != 0 && now/1000 > c.expire {
		c.value, c.expire = 0, 0
	}
	c.value += n
}

func (c *counter) take(now, n int64) (bool, int64) {
	c.incr(now, n)
	if c.value == n || c.always {
		c.expire = now/1000 + c.period
	}
	return c.value <= c.limit, max(c.limit-c.value, 0)
}

// Times that are a multiple of prime never meet the end of a window.
const prime = 7 * time.Millisecond

// countDenied is where counting down or up by 10 in 60 s differs from GO.QUOTA.
var countDenied = []burst{
	{0, 1, 4, 1, 1},
	// A denied call counts, so a smaller one that fits is denied too.
	{0, 1, 8, 0, 0},
	{0, 3, 2, 0, 3},
	// At its last instant the key is still there; ours is over to the µs.
	{60 * time.Second, 1, 1, 0, 1},
	// That started our new window; the recipe's starts with its next call.
	{60_001 * time.Millisecond, 10, 1, 10, 9},
}

func TestRecipe_incr(t *testing.T) {
	agree(t, (&counter{limit: 5, period: 1000}).take, "GO.QUOTA k 5 1 %d", prime, 40, 1)
	agree(t, (&counter{limit: 5, period: 1000}).take, "GO.QUOTA k 5 1000 %d MS", prime, 40, 1)
	// A key per minute of the clock, with the minute in its name.
	perMinute, minute := &counter{limit: 5, period: 60_000}, int64(0)
	agree(t, func(now, n int64) (bool, int64) {
		if now/60_000_000 != minute {
			minute, perMinute.value = now/60_000_000, 0
		}
		return perMinute.take(now, n)
	}, "GO.QUOTA k 5 60 %d ALIGN 0", time.Second, 12, 1)

	compare(t, (&counter{limit: 10, period: 60_000}).take, "GO.QUOTA k 10 60 %d", countDenied)
	// EXPIRE after each call: under steady traffic the window never ends.
	compare(t, (&counter{limit: 2, period: 60_000, always: true}).take, "GO.QUOTA k 2 60 %d", []burst{
		{0, 1, 1, 1, 1},
		{50 * time.Second, 1, 1, 1, 1},
		{100 * time.Second, 1, 1, 0, 1},
		{150 * time.Second, 1, 1, 0, 1},
		{200 * time.Second, 1, 1, 0, 1},
	})

	// A client that dies between INCR and EXPIRE leaves a counter for ever.
	orphan := &counter{limit: 5, period: 60_000}
	orphan.incr(nowMicros, 1)
	s := compare(t, orphan.take, "GO.QUOTA k 5 60 %d", []burst{
		{0, 4, 1, 4, 4},
		{24 * time.Hour, 1, 1, 0, 1},
		{999 * 24 * time.Hour, 1, 1, 0, 1},
	})
	if s.keys["k"].expire == 0 {
		t.Error("ours has no expiry")
	}
	// The counter itself is not taken for a quota.
	s.keys["k"] = &value{kind: KindString, text: "5"}
	if _, err := s.do("GO.QUOTA k 5 60"); err != ErrForeignString || s.keys["k"].text != "5" {
		t.Errorf("on the recipe's key: %q", err.Text())
	}
}

// countdown is SET key limit EX period NX, and DECRBY.
type countdown struct {
	limit, period int64 // period: ms
	there         bool
	value, expire int64 // expire: ms; 0: none
}

func (c *countdown) set(now int64) {
	if c.there = c.there && (c.expire == 0 || now/1000 <= c.expire); !c.there {
		c.there, c.value, c.expire = true, c.limit, now/1000+c.period
	}
}

func (c *countdown) decr(now, n int64) int64 {
	if c.expire != 0 && now/1000 > c.expire {
		c.value, c.expire = 0, 0
	}
	c.there = true
	c.value -= n
	return c.value
}

func (c *countdown) take(now, n int64) (bool, int64) {
	c.set(now)
	left := c.decr(now, n)
	return left >= 0, max(left, 0)
}

func TestRecipe_countdown(t *testing.T) {
	agree(t, (&countdown{limit: 5, period: 1000}).take, "GO.QUOTA k 5 1 %d", prime, 40, 1)
	compare(t, (&countdown{limit: 10, period: 60_000}).take, "GO.QUOTA k 10 60 %d", countDenied)

	// The key may end between the two steps: DECR then makes one without an expiry, and
	// SET NX never sets it again.
	c := &countdown{limit: 5, period: 60_000}
	c.take(nowMicros, 1)
	c.set(nowMicros + 60_000_000)
	if left := c.decr(nowMicros+60_001_000, 1); left != -1 || c.expire != 0 {
		t.Errorf("%d left, expires at %d", left, c.expire)
	}
	compare(t, c.take, "GO.QUOTA k 5 60 %d", []burst{{24 * time.Hour, 1, 1, 0, 1}, {999 * 24 * time.Hour, 1, 1, 0, 1}})
	// Without NX, two clients that find no key both set it, and one call is forgotten.
	c = &countdown{limit: 5, period: 60_000}
	c.take(nowMicros, 1)
	c.there = false // B looked before A set
	if _, left := c.take(nowMicros, 1); left != 4 {
		t.Errorf("%d left", left)
	}
	converse(t, []step{{0, "GO.QUOTA k 5 60", "0 5 4 -1 60"}, {0, "GO.QUOTA k 5 60", "0 5 3 -1 60"}})

	// The limit stands in the key, so a new one takes effect with the next window.
	c = &countdown{limit: 5, period: 60_000}
	c.take(nowMicros, 5)
	c.limit = 8
	if admitted, _ := c.take(nowMicros, 1); admitted {
		t.Error("the raised limit took effect at once")
	}
	converse(t, []step{{0, "GO.QUOTA k 5 60 5", "0 5 0 -1 60"}, {0, "GO.QUOTA k 8 60", "0 8 2 -1 60"}})
}

// increx is INCREX key BYINT n UBOUND upper [LBOUND 0] [SATURATE] EX period [ENX].
type increx struct {
	upper, lower, period int64 // period: ms
	saturate, notENX     bool
	value, expire        int64 // expire: ms; 0: no key
}

func (k *increx) incr(now, n int64) (value, applied int64) {
	if now /= 1000; now > k.expire {
		k.value, k.expire = 0, 0
	}
	next := k.value + n
	if next < k.lower || next > k.upper {
		if !k.saturate {
			return k.value, 0
		}
		next = max(k.lower, min(k.upper, next))
	}
	if k.expire == 0 || k.notENX {
		k.expire = now + k.period
	}
	applied = next - k.value
	k.value = next
	return next, applied
}

func (k *increx) take(now, n int64) (bool, int64) {
	value, applied := k.incr(now, n)
	return applied != 0, k.upper - value
}

func TestRecipe_increx(t *testing.T) {
	agree(t, (&increx{upper: 20, period: 1000}).take, "GO.QUOTA k 20 1 %d", prime, 40, 6)
	agree(t, (&increx{upper: 20, period: 1000}).take, "GO.QUOTA k 20 1000 %d MS", prime, 40, 21)
	agree(t, (&increx{upper: 20, period: 1000, saturate: true}).take, "GO.QUOTA k 20 1 %d UPTO", prime, 40, 9)

	compare(t, (&increx{upper: 10, period: 60_000}).take, "GO.QUOTA k 10 60 %d", []burst{
		{0, 1, 4, 1, 1},
		// What does not fit is not recorded by either, and what fits is admitted.
		{0, 1, 8, 0, 0},
		{0, 4, 2, 3, 3},
		// At its last instant the key is still there.
		{60 * time.Second, 1, 1, 0, 1},
	})
	compare(t, (&increx{upper: 10, period: 60_000, notENX: true}).take, "GO.QUOTA k 10 60 %d", []burst{
		// Without ENX every admitted call moves the end of the window.
		{0, 1, 8, 1, 1},
		{50 * time.Second, 1, 2, 1, 1},
		{100 * time.Second, 1, 1, 0, 1},
	})
	compare(t, (&increx{upper: 10, period: 60_000}).take, "GO.QUOTA k 10 60 %d", []burst{
		{0, 1, 3, 1, 1},
		// More is given back than was taken: with LBOUND 0 none of it; ours what was used.
		{0, 1, -5, 0, 1},
		{0, 10, 1, 7, 10},
	})
	compare(t, (&increx{upper: 10, lower: -1 << 62, period: 60_000}).take, "GO.QUOTA k 10 60 %d", []burst{
		{0, 1, 3, 1, 1},
		// Without LBOUND a refund goes past full.
		{0, 1, -5, 1, 1},
		{0, 12, 1, 12, 10},
	})
	compare(t, (&increx{upper: 10, period: 60_000, saturate: true}).take, "GO.QUOTA k 10 60 %d UPTO", []burst{
		{0, 1, 3, 1, 1},
		// With LBOUND 0 and SATURATE it goes to full, as ours.
		{0, 1, -5, 1, 1},
		{0, 10, 1, 10, 10},
	})
	compare(t, (&increx{upper: 10, period: 60_000}).take, "GO.QUOTA k 10 60 %d", []burst{
		{0, 1, 3, 1, 1},
		// Given back in full, our key is gone, and a new window starts with the next call.
		{0, 1, -3, 1, 1},
		{20 * time.Second, 1, 9, 1, 1},
		{61 * time.Second, 1, 9, 1, 0},
		{80 * time.Second, 1, 9, 0, 1},
	})

	// A lowered limit. With SATURATE, what is used above it is forgotten.
	k := &increx{upper: 80, period: 60_000, saturate: true}
	k.incr(nowMicros, 80)
	k.upper = 50
	if value, applied := k.incr(nowMicros, 1); value != 50 || applied != -30 {
		t.Errorf("saturated to %d by %d", value, applied)
	}
	// Without, nothing can be given back until the window ends.
	k = &increx{upper: 80, period: 60_000}
	k.incr(nowMicros, 80)
	k.upper = 50
	if value, applied := k.incr(nowMicros, -10); value != 80 || applied != 0 {
		t.Errorf("%d after a refund of %d", value, applied)
	}
	converse(t, []step{
		{0, "GO.QUOTA k 80 60 80", "0 80 0 -1 60"},
		{0, "GO.QUOTA k 50 60 1 UPTO", "1 50 0 60 60 0"},
		{0, "GO.QUOTA k 50 60 -10", "0 50 0 -1 60"},
		{0, "GO.QUOTA k 80 60 10", "0 80 0 -1 60"},
	})
}
