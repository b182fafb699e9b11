package commands_test

import (
	"math"

	"gothrottle/tests/corpus"
)

// zsetLog is a sorted set with a member for each unit, checked before recorded in one step: ZADD, ZREMRANGEBYSCORE and
// ZCARD without their faults.
type zsetLog struct {
	limit, period int64 // period: ms
	scores        []int64
}

func (z *zsetLog) take(now, n int64) (bool, int64) {
	now /= 1000
	for len(z.scores) > 0 && z.scores[0] <= now-z.period {
		z.scores = z.scores[1:]
	}
	left := z.limit - int64(len(z.scores))
	if n > left {
		return false, left
	}
	for range n {
		z.scores = append(z.scores, now)
	}
	return true, left - n
}

// inProcess is the funnel of textbooks, an object in the memory of one process.
type inProcess struct {
	capacity, rate float64 // rate: units per second
	whole          bool    // counts in whole units, as an integer version does
	left           float64
	since          int64
}

func newFunnel(capacity, rate float64, whole bool) *inProcess {
	return &inProcess{capacity: capacity, rate: rate, whole: whole, left: capacity, since: corpus.Epoch}
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

// springBucket is Spring Cloud Gateway's script: tokens and a timestamp, in two keys that outlive the time to fill up.
type springBucket struct {
	rate, burst       float64
	seconds           bool // the clock counts whole seconds
	known             bool
	tokens, timestamp float64
}

func (b *springBucket) take(micros, n int64) (bool, int64) {
	now := float64(micros) / 1e6
	if b.seconds {
		now = math.Floor(now)
	}
	if !b.known {
		b.known, b.tokens, b.timestamp = true, b.burst, 0
	}
	b.tokens = min(b.burst, b.tokens+max(0, now-b.timestamp)*b.rate)
	b.timestamp = now // written by a denied call as well
	admitted := b.tokens >= float64(n)
	if admitted {
		b.tokens -= float64(n)
	}
	return admitted, int64(b.tokens)
}

// timerBucket holds tokens that timers add every second with INCRBY, and calls take with DECRBY.
type timerBucket struct {
	capacity, refill, timers int64
	tokens, next             int64
}

func newTimer(capacity, refill, timers int64) *timerBucket {
	return &timerBucket{capacity: capacity, refill: refill, timers: timers, tokens: capacity, next: corpus.Epoch + 1_000_000}
}

func (b *timerBucket) take(now, n int64) (bool, int64) {
	for ; b.next <= now; b.next += 1_000_000 {
		b.tokens = min(b.capacity, b.tokens+b.timers*b.refill)
	}
	if b.tokens < n {
		return false, b.tokens
	}
	b.tokens -= n
	return true, b.tokens
}

// counter is INCR, and EXPIRE when that said 1. Redis ends a key in the ms after its expiry.
type counter struct {
	limit, period int64 // period: ms
	always        bool  // EXPIRE after each INCR
	value, expire int64 // expire: ms; 0: none
}

func (c *counter) take(now, n int64) (bool, int64) {
	if c.expire != 0 && now/1000 > c.expire {
		c.value, c.expire = 0, 0
	}
	c.value += n
	if c.value == n || c.always {
		c.expire = now/1000 + c.period
	}
	return c.value <= c.limit, max(c.limit-c.value, 0)
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

// redisCell is redis-cell 0.5.0: a TAT in ns, the key's expiry cut to ms.
type redisCell struct {
	maxBurst, count, period int64
	tat, expire             int64
}

// call returns nil for an error.
func (c *redisCell) call(now, n int64) (reply []int64) {
	if c.expire < now/1000 {
		c.tat = 0
	}
	now *= 1000
	interval := c.period * 1e9 / c.count
	if interval == 0 {
		return nil
	}
	tolerance, increment := interval*(c.maxBurst+1), interval*n
	tat := max(c.tat, now)
	reply = []int64{0, c.maxBurst + 1, 0, -1, 0}
	ends := tat + increment
	if early := now - (ends - tolerance); early < 0 {
		reply[0] = 1
		if increment <= tolerance {
			reply[3] = cellSeconds(-early)
		}
		ends = tat
	} else {
		c.tat, c.expire = ends, now/1e6+(ends-now)/1e6
		if ends < now {
			c.expire = math.MaxInt64 // written, but setting the expiry failed
			return nil
		}
	}
	if room := tolerance - (ends - now); room > -interval {
		room /= 1000
		if micros := interval / 1000; micros > 0 {
			room /= micros
		} else if room > 0 {
			room = math.MaxInt64 // a division by 0
		}
		reply[2] = room
	}
	reply[4] = cellSeconds(ends - now)
	return reply
}

// cellSeconds drops what is below a millisecond.
func cellSeconds(ns int64) int64 {
	s := ns / 1e9
	if ns%1e9/1e6 > 0 {
		s++
	}
	return s
}

func (c *redisCell) take(now, n int64) (bool, int64) {
	reply := c.call(now, n)
	return reply[0] == 0, reply[2]
}

// redisRate is the script of redis_rate v10: GCRA with doubles, times in s.
type redisRate struct {
	rate, burst, period float64
	tat                 float64 // 0: no key
}

// seconds is the script's time: since the beginning of 2017.
func (r *redisRate) seconds(micros int64) float64 {
	return float64(micros/1_000_000-1_483_228_800) + float64(micros%1_000_000)/1e6
}

// allowN is AllowN. Allowed and remaining are cut to integers in the reply.
func (r *redisRate) allowN(micros, n int64) (allowed, remaining int64, retryAfter float64) {
	now, interval := r.seconds(micros), r.period/r.rate
	ends := max(r.tat, now) + float64(interval*float64(n))
	early := now - (ends - float64(interval*r.burst))
	if early/interval < 0 {
		return 0, 0, -early
	}
	r.store(now, ends)
	return n, int64(early / interval), -1
}

// allowAtMost is AllowAtMost. It takes what is left, fraction and all.
func (r *redisRate) allowAtMost(micros, n int64) (allowed, remaining int64) {
	now, interval := r.seconds(micros), r.period/r.rate
	tat := max(r.tat, now)
	free := (now - (tat - float64(interval*r.burst))) / interval
	if free < 1 {
		return 0, 0
	}
	cost := min(float64(n), free)
	r.store(now, tat+float64(interval*cost))
	return int64(cost), int64(free - cost)
}

// store is the script's SET, which leaves out a time that is over.
func (r *redisRate) store(now, ends float64) {
	if ends > now {
		r.tat = ends
	}
}

func (r *redisRate) take(now, n int64) (bool, int64) {
	allowed, remaining, _ := r.allowN(now, n)
	if allowed == 0 {
		return false, unknown // it says 0, whatever is left
	}
	return true, remaining
}

func (r *redisRate) takeAtMost(now, n int64) (bool, int64) {
	allowed, remaining := r.allowAtMost(now, n)
	return allowed > 0, remaining
}
