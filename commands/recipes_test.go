package commands_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"gothrottle/tests/corpus"
)

// A recipe is a limiter that people build themselves, as a small model: docs/migrating.md. It is asked for n units at a
// time in µs, and returns what is left then.
type recipe func(now, n int64) (admitted bool, left int64)

// Random calls, against models: a command decides as the recipe that it replaces, and has the same left. The gaps are
// multiples of grain below most x grain, the quantities 1 to quantity. %d in a command is the quantity.
func TestRecipes_alike(t *testing.T) {
	slow := &springBucket{rate: 3, burst: 180}
	for _, row := range []struct {
		take           recipe
		command        string
		grain          time.Duration
		most, quantity int64
	}{
		{(&zsetLog{limit: 5, period: 60_000}).take, "GO.WINDOW k 5 60 %d", time.Millisecond, 20_000, 2},
		{(&zsetLog{limit: 120, period: 60_000}).take, "GO.WINDOW k 120 60 %d", time.Millisecond, 1000, 4},
		{(&zsetLog{limit: 500, period: 60_000}).take, "GO.WINDOW k 500 60 %d EXACT", time.Millisecond, 200, 9},
		// Requests above the capacity never fit. With a clock of seconds, calls are at whole seconds.
		{(&springBucket{rate: 10, burst: 20}).take, "GO.THROTTLE k 19 10 1 %d", 125 * time.Millisecond, 4, 5},
		{(&springBucket{rate: 10, burst: 20}).take, "GO.THROTTLE k 19 10 1 %d", time.Second, 4, 22},
		{(&springBucket{rate: 10, burst: 20, seconds: true}).take, "GO.THROTTLE k 19 10 1 %d", time.Second, 4, 22},
		// A rate below one per second: 3 per minute as 60 tokens of 180 a call.
		{func(now, n int64) (bool, int64) {
			admitted, left := slow.take(now, 60*n)
			return admitted, left / 60
		}, "GO.THROTTLE k 2 3 60 %d", 5 * time.Second, 9, 2},
	} {
		random, counts, now := rand.New(rand.NewPCG(1, 2)), map[bool]int{}, int64(corpus.Epoch)
		h := corpus.NewMemory()
		h.Begin(now)
		for i := range 500 {
			n := 1 + random.Int64N(row.quantity)
			h.Clock(now)
			admitted, left := row.take(now, n)
			reply := integersOf(t, h, fmt.Sprintf(row.command, n))
			if admitted != (reply[0] == 0) || left != reply[2] {
				t.Fatalf("%s, call %d, quantity %d: the recipe says %v with %d left, ours %v", row.command, i, n, admitted, left, reply)
			}
			counts[admitted]++
			now += random.Int64N(row.most) * row.grain.Microseconds()
		}
		if min(counts[true], counts[false]) < 50 {
			t.Errorf("%s: the schedule tests little: %v", row.command, counts)
		}
	}
}

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

func integersOf(t *testing.T, h *corpus.Memory, line string) (all []int64) {
	t.Helper()
	reply, _ := h.Call(strings.Fields(line))
	elements, ok := reply.([]any)
	if !ok {
		t.Fatalf("%s: %v", line, reply)
	}
	for _, element := range elements {
		all = append(all, element.(int64))
	}
	return all
}
