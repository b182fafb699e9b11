package funnel_test

// No reply shows a rate's arithmetic alone: it is compared with whole numbers and fractions of any size.

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"gothrottle/funnel"
)

func TestRate_Drain(t *testing.T) {
	eachSeed(t, 200, func(t *testing.T, r *rand.Rand) {
		for range 20 {
			rate, units := randomRate(r), logUniform[int64](r, math.MaxInt64)
			drain := new(big.Rat).Quo(whole(units), perNano(rate))
			if got, want := rate.Drain(units), ceil(drain); int64(got) != want {
				t.Fatalf("%v.Drain(%d) = %d, want %d", rate, units, got, want)
			}
			limit := min(units, funnel.MaxLimit)
			drain.Quo(whole(limit), perNano(rate))
			if got, want := rate.Fits(limit), drain.Cmp(whole(funnel.MaxPeriod)) <= 0; got != want {
				t.Fatalf("%v.Fits(%d) = %v", rate, limit, got)
			}
		}
	})
	for _, c := range []struct {
		rate  funnel.Rate
		limit int64
		want  bool
	}{
		{funnel.Rate{funnel.MaxPeriod, 1}, 1, true},
		{funnel.Rate{funnel.MaxPeriod, 1}, 2, false},
		{funnel.Rate{funnel.MaxPeriod, funnel.MaxLimit}, funnel.MaxLimit, true},
		{funnel.Rate{funnel.MaxPeriod, funnel.MaxLimit - 1}, funnel.MaxLimit, false},
		{funnel.Rate{1_351_542_857_142_857_143, 3}, 7, false}, // a third of 1 ns too long
	} {
		if got := c.rate.Fits(c.limit); got != c.want {
			t.Errorf("%v.Fits(%d) = %v", c.rate, c.limit, got)
		}
	}
}

// PerMillis returns the same rate, with the shortest period of whole ms. That is the rate as it was
// given, in lowest terms, so neither number is larger than the one given.
func TestRate_PerMillis(t *testing.T) {
	for _, c := range []struct {
		rate          funnel.Rate
		count, millis int64
	}{
		{funnel.Rate{1000, 1}, 1000, 1},
		{funnel.Rate{1, funnel.MaxLimit}, 1e18, 1},
		{funnel.Rate{7, 3}, 3_000_000, 7}, // of no period of whole ms that a call can give
		{funnel.Rate{funnel.MaxPeriod, 1}, 1, int64(funnel.MaxPeriod / funnel.Millisecond)},
	} {
		if count, millis := c.rate.PerMillis(); count != c.count || millis != c.millis {
			t.Errorf("%v: %d per %d ms, want %d per %d ms", c.rate, count, millis, c.count, c.millis)
		}
	}
	eachSeed(t, 200, func(t *testing.T, r *rand.Rand) {
		for range 50 {
			count, period := logUniform[int64](r, funnel.MaxLimit), logUniform[int64](r, int64(funnel.MaxPeriod/funnel.Millisecond))
			rate := funnel.Rate{funnel.Nanos(period) * funnel.Millisecond, count}
			want := big.NewRat(count, period) // in lowest terms, so no shorter period of whole ms will do
			for _, rate := range []funnel.Rate{rate, rate.Reduced()} {
				if c, millis := rate.PerMillis(); c != want.Num().Int64() || millis != want.Denom().Int64() {
					t.Fatalf("%d per %d ms, stored as %v, is %d per %d ms, want %v", count, period, rate, c, millis, want)
				}
			}
			if got, want := rate.Reduced(), perNano(rate); got.Count != want.Num().Int64() || int64(got.Period) != want.Denom().Int64() {
				t.Fatalf("%v.Reduced() = %v, want %v", rate, got, want)
			}
		}
	})
}

func TestMicros_Nanos(t *testing.T) {
	const last = math.MaxInt64 / 1000
	for micros, nanos := range map[funnel.Micros]funnel.Nanos{
		0: 0, 1: 1000, last: last * 1000, last + 1: math.MaxInt64, math.MaxInt64: math.MaxInt64,
	} {
		if got := micros.Nanos(); got != nanos {
			t.Errorf("%d us are %d ns, want %d", micros, got, nanos)
		}
	}
	for nanos, micros := range map[funnel.Nanos]funnel.Micros{0: 0, 999: 0, 1000: 1, 1999: 1, -999: 0, math.MaxInt64: last} {
		if got := nanos.Micros(); got != micros {
			t.Errorf("%d ns are %d us, want %d", nanos, got, micros)
		}
	}
}
