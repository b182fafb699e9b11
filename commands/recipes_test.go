package commands_test

import (
	"fmt"
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
	slow := springBucket(3, 180, time.Microsecond)
	for _, row := range []struct {
		take           recipe
		command        string
		grain          time.Duration
		most, quantity int64
	}{
		{zsetLog(5, 60_000), "GO.WINDOW k 5 60 %d", time.Millisecond, 20_000, 2},
		{zsetLog(120, 60_000), "GO.WINDOW k 120 60 %d", time.Millisecond, 1000, 4},
		{zsetLog(500, 60_000), "GO.WINDOW k 500 60 %d EXACT", time.Millisecond, 200, 9},
		// Requests above the capacity never fit. With a clock of seconds, calls are at whole seconds.
		{springBucket(10, 20, time.Microsecond), "GO.THROTTLE k 19 10 1 %d", 125 * time.Millisecond, 4, 5},
		{springBucket(10, 20, time.Microsecond), "GO.THROTTLE k 19 10 1 %d", time.Second, 4, 22},
		{springBucket(10, 20, time.Second), "GO.THROTTLE k 19 10 1 %d", time.Second, 4, 22},
		// A rate below one per second: 3 per minute as 60 tokens of 180 a call.
		{func(now, n int64) (bool, int64) {
			admitted, left := slow(now, 60*n)
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
			reply, _ := h.Call(strings.Fields(fmt.Sprintf(row.command, n)))
			if ours, ok := reply.([]any); !ok || (ours[0] == int64(0)) != admitted || ours[2] != left {
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
// ZCARD without their faults. The period is in ms.
func zsetLog(limit, period int64) recipe {
	var scores []int64
	return func(now, n int64) (bool, int64) {
		now /= 1000
		for len(scores) > 0 && scores[0] <= now-period {
			scores = scores[1:]
		}
		left := limit - int64(len(scores))
		if n > left {
			return false, left
		}
		for range n {
			scores = append(scores, now)
		}
		return true, left - n
	}
}

// springBucket is Spring Cloud Gateway's script: tokens and a timestamp, in two keys that outlive the time to fill up. The
// clock counts in steps of tick.
func springBucket(rate, burst float64, tick time.Duration) recipe {
	tokens, timestamp := burst, 0.0
	return func(micros, n int64) (bool, int64) {
		now := float64(micros-micros%tick.Microseconds()) / 1e6
		tokens = min(burst, tokens+max(0, now-timestamp)*rate)
		timestamp = now // written by a denied call as well
		admitted := tokens >= float64(n)
		if admitted {
			tokens -= float64(n)
		}
		return admitted, int64(tokens)
	}
}
