package funnel_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"gothrottle/funnel"
)

func TestRate_Drain(t *testing.T) {
	eachSeed(t, 400, func(t *testing.T, r *rand.Rand) {
		for range 10 {
			rate := funnel.Rate{logUniform(r, funnel.MaxPeriod), logUniform[int64](r, funnel.MaxLimit)}
			units := logUniform[int64](r, math.MaxInt64)
			// Rounded up, in whole numbers.
			exact := new(big.Int).Mul(big.NewInt(units), big.NewInt(int64(rate.Period)))
			exact.Add(exact, big.NewInt(rate.Count-1)).Div(exact, big.NewInt(rate.Count))
			want := funnel.Nanos(math.MaxInt64)
			if exact.IsInt64() {
				want = funnel.Nanos(exact.Int64())
			}
			if got := rate.Drain(units); got != want {
				t.Fatalf("%v.Drain(%d) = %d, want %d", rate, units, got, want)
			}
			limit := min(units, funnel.MaxLimit)
			drain := new(big.Rat).Mul(whole(limit), big.NewRat(int64(rate.Period), rate.Count))
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
		{funnel.Rate{funnel.MaxPeriod - 1, 3}, 3, true},
		{funnel.Rate{funnel.MaxPeriod - 1, 3}, 4, false},
		{funnel.Rate{1_351_542_857_142_857_143, 3}, 7, false}, // a third of 1 ns too long
		{funnel.Rate{3, 2}, funnel.MaxLimit, true},
	} {
		if got := c.rate.Fits(c.limit); got != c.want {
			t.Errorf("%v.Fits(%d) = %v", c.rate, c.limit, got)
		}
	}
}

func TestRate_Reduced(t *testing.T) {
	for _, c := range []struct{ rate, want funnel.Rate }{
		{funnel.Rate{1, 1}, funnel.Rate{1, 1}},
		{funnel.Rate{60e9, 30}, funnel.Rate{2e9, 1}},
		{funnel.Rate{60e9, 7}, funnel.Rate{60e9, 7}},
		{funnel.Rate{6, 60e9}, funnel.Rate{1, 10e9}},
		{funnel.Rate{funnel.MaxPeriod, funnel.MaxLimit}, funnel.Rate{3153600, 1}},
	} {
		if got := c.rate.Reduced(); got != c.want {
			t.Errorf("%v.Reduced() = %v, want %v", c.rate, got, c.want)
		}
	}
}
