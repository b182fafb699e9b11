package funnel_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"gothrottle/funnel"
)

// What Drain and InUse tell is exact, rounded up, whatever the state.
func TestThrottleState_usage(t *testing.T) {
	const now = 1_800_000_000_000_000_000
	check := func(t *testing.T, s funnel.ThrottleState) {
		t.Helper()
		left := new(big.Rat).SetFrac64(s.Frac, s.Rate.Count)
		left.Add(left, big.NewRat(int64(s.TAT)-now, 1)) // ns
		if left.Sign() < 0 {
			left.SetInt64(0)
		}
		units := new(big.Rat).Mul(left, big.NewRat(s.Rate.Count, int64(s.Rate.Period)))
		if got, want := s.Drain(now), ceil(left); int64(got) != want {
			t.Fatalf("%+v: drains in %d ns, want %d", s, got, want)
		}
		if got, want := s.InUse(now), ceil(units); got != want {
			t.Fatalf("%+v: %d units in use, want %d", s, got, want)
		}
	}
	for _, tat := range []funnel.Nanos{0, 1, now - 1, now, now + 1, now + 1_000_000_007, math.MaxInt64} {
		check(t, funnel.ThrottleState{TAT: tat, Rate: funnel.Rate{Period: 1, Count: funnel.MaxLimit}, Frac: 7})
		check(t, funnel.ThrottleState{TAT: tat, Rate: funnel.Rate{Period: funnel.Second, Count: 1}})
		check(t, funnel.ThrottleState{TAT: tat, Rate: funnel.Rate{Period: funnel.MaxPeriod, Count: 7}, Frac: 6})
	}
	// 2^63-1 units and a half.
	check(t, funnel.ThrottleState{TAT: now + math.MaxUint64/3, Rate: funnel.Rate{Period: 2, Count: 3}})
	eachSeed(t, 400, func(t *testing.T, r *rand.Rand) {
		for range 50 {
			s := funnel.ThrottleState{TAT: now + logUniform[funnel.Nanos](r, math.MaxInt64-now),
				Rate: funnel.Rate{Period: logUniform(r, funnel.MaxPeriod), Count: logUniform[int64](r, funnel.MaxLimit)}}
			s.Frac = r.Int64N(s.Rate.Count)
			check(t, s)
		}
	})
}

// ceil rounds up, saturating at 2^63-1.
func ceil(x *big.Rat) int64 {
	n, rest := new(big.Int).QuoRem(x.Num(), x.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		n.Add(n, big.NewInt(1))
	}
	if !n.IsInt64() {
		return math.MaxInt64
	}
	return n.Int64()
}

// PerMillis returns the same rate, with the shortest period of whole ms. That is the rate as it was
// given, in lowest terms, so neither number is larger than the one given.
func TestRate_PerMillis(t *testing.T) {
	for _, row := range []struct {
		rate          funnel.Rate
		count, millis int64
	}{
		{funnel.Rate{Period: 1000, Count: 1}, 1000, 1},
		{funnel.Rate{Period: 60 * funnel.Second, Count: 30}, 1, 2000},
		{funnel.Rate{Period: 60 * funnel.Second, Count: 40}, 1, 1500},
		{funnel.Rate{Period: 60 * funnel.Second, Count: 7}, 7, 60_000},
		{funnel.Rate{Period: 1, Count: funnel.MaxLimit}, 1e18, 1},
		{funnel.Rate{Period: funnel.Millisecond, Count: funnel.MaxLimit}, funnel.MaxLimit, 1},
		{funnel.Rate{Period: 7, Count: 3}, 3_000_000, 7}, // of no period of whole ms that a call can give
		{funnel.Rate{Period: funnel.MaxPeriod, Count: 1}, 1, int64(funnel.MaxPeriod / funnel.Millisecond)},
	} {
		if count, millis := row.rate.PerMillis(); count != row.count || millis != row.millis {
			t.Errorf("%v: %d per %d ms, want %d per %d ms", row.rate, count, millis, row.count, row.millis)
		}
	}
	eachSeed(t, 400, func(t *testing.T, r *rand.Rand) {
		for range 50 {
			count, period := logUniform[int64](r, funnel.MaxLimit), logUniform[int64](r, int64(funnel.MaxPeriod/funnel.Millisecond))
			rate := funnel.Rate{Period: funnel.Nanos(period) * funnel.Millisecond, Count: count}
			want := big.NewRat(count, period) // in lowest terms, so no shorter period of whole ms will do
			for _, rate := range []funnel.Rate{rate, rate.Reduced()} {
				if c, millis := rate.PerMillis(); c != want.Num().Int64() || millis != want.Denom().Int64() {
					t.Fatalf("%d per %d ms, stored as %v, is told as %d per %d ms, want %v", count, period, rate, c, millis, want)
				}
			}
		}
	})
}
