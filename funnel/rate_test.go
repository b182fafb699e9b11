package funnel_test

// No reply shows a rate's arithmetic alone: it is compared with whole numbers and fractions of any size.

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"gothrottle/funnel"
)

// PerMillis returns the same rate, with the shortest period of whole ms. That is the rate as it was
// given, in lowest terms, so neither number is larger than the one given.
func TestRate_PerMillis(t *testing.T) {
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
}
