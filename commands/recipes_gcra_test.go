package commands

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"gothrottle/funnel"
)

// Lengths of time in ns, as plain integers: the models compute with them.
const (
	second      = int64(funnel.Second)
	millisecond = int64(funnel.Millisecond)
	microsecond = int64(funnel.Microsecond)
)

// redisCell is redis-cell 0.5.0: a TAT in ns, the key's expiry cut to ms.
type redisCell struct {
	maxBurst, count, period int64
	tat, expire             int64
}

func (c *redisCell) call(now, n int64) (reply []int64, failed bool) {
	if c.expire < now/1000 {
		c.tat = 0
	}
	now *= 1000
	interval := c.period * second / c.count
	if interval == 0 {
		return nil, true
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
		c.tat, c.expire = ends, now/millisecond+(ends-now)/millisecond
		if failed = ends < now; failed {
			c.expire = math.MaxInt64 // written, but setting the expiry failed
			return nil, true
		}
	}
	if room := tolerance - (ends - now); room > -interval {
		room /= microsecond
		if micros := interval / microsecond; micros > 0 {
			room /= micros
		} else if room > 0 {
			room = math.MaxInt64 // a division by 0
		}
		reply[2] = room
	}
	reply[4] = cellSeconds(ends - now)
	return reply, false
}

// cellSeconds drops what is below a millisecond.
func cellSeconds(ns int64) int64 {
	s := ns / second
	if ns%second/millisecond > 0 {
		s++
	}
	return s
}

func (c *redisCell) take(now, n int64) (bool, int64) {
	reply, _ := c.call(now, n)
	return reply[0] == 0, reply[2]
}

func TestRecipe_redisCell(t *testing.T) {
	// All five integers are the same; also a live limiter's when it is taken over halfway.
	for _, cell := range []*redisCell{
		{maxBurst: 15, count: 30, period: 60}, {count: 1, period: 5}, {maxBurst: 9, count: 10, period: 1},
	} {
		s := newStore(t)
		for i := range int64(400) {
			n := i * 7 % 4
			want, _ := cell.call(int64(s.now), n)
			line := fmt.Sprintf("CL.THROTTLE k %d %d %d %d", cell.maxBurst, cell.count, cell.period, n)
			if got := s.must(line); !slices.Equal(got, want) {
				t.Fatalf("call %d, %s: %v, redis-cell says %v", i, line, got, want)
			}
			if s.now += funnel.Micros(i * 131 % 977 * 1000); i == 200 {
				s.keys["k"] = &value{kind: KindString, text: fmt.Sprint(cell.tat), expire: cell.expire}
			}
		}
	}

	compare(t, (&redisCell{count: 5000, period: 1}).take, "CL.THROTTLE k 0 5000 1 %d", []burst{
		{900 * time.Microsecond, 1, 1, 1, 1},
		// An expiry cut to whole ms is over before the 200 µs are.
		{1000 * time.Microsecond, 1, 1, 1, 0},
		{1100 * time.Microsecond, 1, 1, 0, 1},
	})

	for _, row := range []struct {
		why    string
		cell   redisCell
		calls  []int64 // quantities, all at once
		theirs []int64 // the last reply; nil: an error
		ours   []int64
	}{
		{"a wait below a millisecond is dropped", redisCell{maxBurst: 1, count: 5000, period: 1}, []int64{2, 1},
			[]int64{1, 2, 0, 0, 0}, []int64{1, 2, 0, 1, 1}},
		{"an interval below a microsecond counts as none", redisCell{maxBurst: 99, count: 10_000_000, period: 1}, []int64{1},
			[]int64{0, 100, math.MaxInt64, -1, 0}, []int64{0, 100, 99, -1, 1}},
		{"a refund of more than is used is an error, and the key has no expiry",
			redisCell{maxBurst: 9, count: 1, period: 1}, []int64{1, -2}, nil, []int64{0, 10, 10, -1, 0}},
	} {
		s := newStore(t)
		var theirs, ours []int64
		for _, n := range row.calls {
			theirs, _ = row.cell.call(int64(s.now), n)
			ours = s.must(fmt.Sprintf("CL.THROTTLE k %d %d %d %d", row.cell.maxBurst, row.cell.count, row.cell.period, n))
		}
		if !slices.Equal(theirs, row.theirs) || !slices.Equal(ours, row.ours) {
			t.Errorf("%s: redis-cell says %v, ours %v; want %v, %v", row.why, theirs, ours, row.theirs, row.ours)
		}
		if row.theirs == nil && (row.cell.expire != math.MaxInt64 || len(s.keys) != 0) {
			t.Errorf("%s: theirs expires at %d, ours holds %v", row.why, row.cell.expire, s.keys)
		}
	}

	// An interval below a nanosecond is refused under redis-cell's name, as it does.
	s := newStore(t)
	_, failed := (&redisCell{maxBurst: 9, count: 2_000_000_000, period: 1}).call(int64(s.now), 1)
	_, err := s.do("CL.THROTTLE k 9 2000000000 1")
	if reply := s.must("GO.THROTTLE k 9 2000000000 1"); !failed || err == NoError || reply[2] != 9 {
		t.Errorf("2 per nanosecond: %v, %q, %v", failed, err.Text(), reply)
	}

	// A raised rate: redis-cell's TAT is a time and stays an hour away; ours carries over
	// in units, so what the new rate admits is admitted.
	cell := &redisCell{maxBurst: 9, count: 10, period: 3600}
	cell.call(nowMicros, 10)
	cell.period = 10
	if reply, _ := cell.call(nowMicros+1_000_000, 1); reply[0] != 1 || reply[3] != 3590 {
		t.Errorf("redis-cell after a raised rate: %v", reply)
	}
	converse(t, []step{
		{0, "CL.THROTTLE k 9 10 3600 10", "0 10 0 -1 3600"},
		{0, "CL.THROTTLE k 9 10 10", "1 10 0 1 10"},
		{1000, "CL.THROTTLE k 9 10 10", "0 10 0 -1 10"},
	})
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

func TestRecipe_redisRate(t *testing.T) {
	perSecond := func(n float64) *redisRate { return &redisRate{rate: n, burst: n, period: 1} }
	// With intervals that are exact in binary, such as 1/8 s, it is the same.
	agree(t, perSecond(8).take, "GO.THROTTLE k 7 8 1 %d", 62_500*time.Microsecond, 4, 4)
	agree(t, perSecond(8).takeAtMost, "GO.THROTTLE k 7 8 1 %d UPTO", 125*time.Millisecond, 4, 5)
	agree(t, perSecond(8).takeAtMost, "GO.THROTTLE k 7 8 1000 %d MS UPTO", 125*time.Millisecond, 4, 5)

	compare(t, perSecond(10).take, "GO.THROTTLE k 9 10 1 %d", []burst{
		// With 0.1 s the doubles deny the last unit of a burst; ours are integers.
		{0, 10, 1, 9, 10},
	})
	compare(t, perSecond(8).takeAtMost, "GO.THROTTLE k 7 8 1 %d UPTO", []burst{
		{0, 1, 8, 1, 1},
		// 2.5 units are free. Asked for 5, both say 2; the recipe takes the half as well.
		{312_500 * time.Microsecond, 1, 5, 1, 1},
		{375_000 * time.Microsecond, 1, 1, 0, 1},
	})
	compare(t, perSecond(8).take, "GO.THROTTLE k 7 8 1 %d", []burst{
		{0, 1, 3, 1, 1},
		// A refund of more than is used ends before now, and the script stores no such time.
		{0, 1, -8, 1, 1},
		{0, 8, 1, 5, 8},
	})

	// What the replies differ in.
	r := perSecond(8)
	r.allowN(nowMicros, 6)
	_, remaining, retry := r.allowN(nowMicros, 3)
	if remaining != 0 || retry != 0.125 {
		t.Errorf("denied: %d remaining, retry after %v s", remaining, retry)
	}
	// More than the burst: told to wait, and denied again after it; ours is told never.
	for _, now := range []int64{nowMicros, nowMicros + 125_000} {
		if allowed, _, retry := perSecond(8).allowN(now, 9); allowed != 0 || retry != 0.125 {
			t.Errorf("more than the burst: %d allowed, retry after %v s", allowed, retry)
		}
	}
	converse(t, []step{
		{0, "GO.THROTTLE k 7 8 1000 6 MS", "0 8 2 -1 750"},
		{0, "GO.THROTTLE k 7 8 1000 3 MS", "1 8 2 125 750"},
		{125, "GO.THROTTLE k 7 8 1000 3 MS", "0 8 0 -1 1000"},
		{1000, "GO.THROTTLE k 7 8 1000 9 MS", "1 8 8 -1 0"},
	})

	// A raised rate: its TAT is a time, as redis-cell's is.
	r = &redisRate{rate: 10, burst: 10, period: 3600}
	r.allowN(nowMicros, 10)
	r.period = 10
	if allowed, _, retry := r.allowN(nowMicros+1_000_000, 1); allowed != 0 || retry != 3590 {
		t.Errorf("after a raised rate: %d allowed, retry after %v s", allowed, retry)
	}
	converse(t, []step{
		{0, "GO.THROTTLE k 9 10 3600 10", "0 10 0 -1 3600"},
		{0, "GO.THROTTLE k 9 10 10", "1 10 0 1 10"},
		{1000, "GO.THROTTLE k 9 10 10", "0 10 0 -1 10"},
	})
}
