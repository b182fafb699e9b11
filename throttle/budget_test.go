package throttle

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A budget never asks for more than Units, and spends and gives back only units of the last reply that are not too old,
// each once. The clock may jump.
func TestBudget_spendsWhatWasGranted(t *testing.T) {
	o := struct {
		Units int64
		Hold  time.Duration
	}{7, 100 * time.Millisecond}
	most := int64(0)
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		var b budget
		var left int64 // units of the last reply that may still be spent
		var sent, now time.Duration
		for range 300 {
			now += time.Duration(random.Int64N(int64(o.Hold) / 10))
			if random.IntN(50) == 0 {
				now += time.Duration(random.Int64N(int64(4*o.Hold))) - 2*o.Hold
			}
			may := left
			if now < sent || now-sent > o.Hold {
				may = 0
			}
			n := 1 + random.Int64N(3)
			got := b.spend(now, n, o.Hold)
			require.Equal(t, min(n, may), got)
			if left -= got; got == n {
				continue
			}
			if random.IntN(20) == 0 {
				require.LessOrEqual(t, b.giveBack(now, o.Hold), may-got)
				left = 0
				continue
			}
			more := b.refill(now, o.Units, 1, o.Hold)
			require.LessOrEqual(t, more, o.Units)
			require.GreaterOrEqual(t, more, int64(0))
			most = max(most, more)
			if left = 0; random.IntN(10) == 0 {
				continue // the reply is lost
			}
			extra := random.Int64N(more + 1)
			r := Result{Allowed: true, Remaining: 1000}
			if extra < more {
				r.RetryAfter = 1
			}
			b.granted(now, extra, &r)
			left, sent = extra, now
			now += time.Duration(random.Int64N(int64(o.Hold) / 10)) // until the reply is there
		}
	}
	require.Equal(t, o.Units, most) // else the schedules were too tame to tell
}

// A budget that was idle for long asks for as much as a new one. So calls do not notice that idle limiters are dropped.
func TestBudget_forgetsItsRate(t *testing.T) {
	const units, hold = 100, time.Second
	var b budget
	now := time.Hour
	for range 10 {
		now += 10 * time.Millisecond
		b.granted(now, b.refill(now, units, 1, hold), &Result{Allowed: true, Remaining: 1000})
	}
	early, late, fresh := b, b, budget{}
	require.NotZero(t, early.refill(now+hold+rateKnown, units, 1, hold))
	now += hold + rateKnown + 1
	require.Equal(t, fresh.refill(now, units, 1, hold), late.refill(now, units, 1, hold))
	require.Equal(t, fresh, late)
}
