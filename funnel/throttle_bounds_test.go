package funnel_test

// A server has no state and no clock at these bounds of numbers, so no transcript has them. An exact model is the judge.

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"gothrottle/funnel"
)

// The corners of every parameter: nothing wraps where a sum or a product is largest. Some instants lie after 2162.
func TestThrottle_saturates(t *testing.T) {
	const most = funnel.MaxPeriod
	rates := []funnel.Rate{
		{1, 1}, {1, funnel.MaxLimit}, {most, 1}, {most, funnel.MaxLimit}, {most - 1, funnel.MaxLimit - 1}, {60e9, 7},
	}
	var calls []funnel.ThrottleParams
	for _, rate := range rates {
		for _, limit := range []int64{1, funnel.MaxLimit} {
			for _, quantity := range []int64{-funnel.MaxLimit - 1, -1, 0, 1, funnel.MaxLimit, funnel.MaxLimit + 1} {
				if fits(rate, limit) {
					calls = append(calls, options(funnel.ThrottleParams{Limit: limit, Rate: rate, Quantity: quantity}, most)...)
				}
			}
		}
	}
	for _, now := range []funnel.Nanos{1, origin, lastNow, math.MaxInt64 - 1, math.MaxInt64} {
		for _, tat := range []funnel.Nanos{0, now, now/2 + math.MaxInt64/2, math.MaxInt64 - 1, math.MaxInt64} {
			for _, old := range append(rates, funnel.Rate{}) {
				old = reducedOrZero(old)
				for _, frac := range slices.Compact([]int64{0, max(old.Count-1, 0)}) {
					for _, p := range calls {
						limiterOf(funnel.ThrottleState{TAT: tat, Frac: frac, Rate: old}).call(t, now, p)
					}
				}
			}
		}
	}
}

// seam is a state and a call at an edge of the words that the arithmetic computes with. Random calls do not find them.
type seam struct {
	name  string
	now   funnel.Nanos
	state funnel.ThrottleState
	limit int64
	rate  funnel.Rate
}

const hour = 3600 * funnel.Second

var seams = []seam{
	{"The fraction carries into the high word of the units' product",
		origin, funnel.ThrottleState{TAT: origin + 18446744, Frac: funnel.MaxLimit - 1, Rate: funnel.Rate{1_000_000_007, funnel.MaxLimit}},
		funnel.MaxLimit, funnel.Rate{1_000_000_009, funnel.MaxLimit}},
	{"Units' product just below and just above one word",
		origin, funnel.ThrottleState{TAT: origin + 18446744, Rate: funnel.Rate{1_000_000_007, funnel.MaxLimit}},
		funnel.MaxLimit, funnel.Rate{1_000_000_009, funnel.MaxLimit}},
	{"More than 2^63 units in use",
		origin, funnel.ThrottleState{TAT: origin + 27670116, Rate: funnel.Rate{2, funnel.MaxLimit - 1}}, funnel.MaxLimit, funnel.Rate{1, funnel.MaxLimit}},
	{"More than 2^63 units in use, and their product is one word",
		origin, funnel.ThrottleState{TAT: origin + 5e18, Rate: funnel.Rate{1, 2}}, funnel.MaxLimit, funnel.Rate{1, 4}},
	{"2^63 - 1 units and a half in use",
		origin, funnel.ThrottleState{TAT: origin + 6148914691236517205, Rate: funnel.Rate{2, 3}}, 1, funnel.Rate{2, 3}},
	{"Rates of which the products differ by 2^64",
		origin, funnel.ThrottleState{TAT: origin + 60e9, Rate: funnel.Rate{60e9, 7}}, 16, funnel.Rate{12327206912, 307445736}},
	{"Nearly six units at one in 100 years are nearly 2^64 ns and a part",
		origin, funnel.ThrottleState{TAT: origin + 6*hour - 1, Rate: funnel.Rate{hour, 1}}, 1, funnel.Rate{funnel.MaxPeriod, 1}},
	{"Nearly twelve units at two in 100 years, by way of the 128-bit quotient",
		origin, funnel.ThrottleState{TAT: origin + 12*hour - 1, Rate: funnel.Rate{hour, 1}}, 1, funnel.Rate{funnel.MaxPeriod - 1, 2}},
	{"Rounding up carries out of a quotient of 2^128 - 1",
		origin, funnel.ThrottleState{TAT: origin + 454039755230539, Frac: 102350745290, Rate: funnel.Rate{4, funnel.MaxLimit - 1}},
		1, funnel.Rate{2997820019073, 1}},
	{"Rounding up carries out of a low word of 2^64 - 1",
		origin, funnel.ThrottleState{TAT: origin + 145440584142, Frac: 253, Rate: funnel.Rate{2, 999}},
		1_000_003, funnel.Rate{253921, 1_000_003}},
	{"The middle words of the 192-bit product add up to more than one word",
		origin, funnel.ThrottleState{TAT: origin + 1400756654617924230, Rate: funnel.Rate{funnel.MaxPeriod - 1, funnel.MaxLimit - 1}},
		funnel.MaxLimit - 11, funnel.Rate{funnel.MaxPeriod - 7, funnel.MaxLimit - 11}},
	{"A charge of five units at one in 100 years is nearly 2^64 ns, and more with what is in use",
		origin, funnel.ThrottleState{TAT: origin + funnel.MaxPeriod, Rate: funnel.Rate{funnel.MaxPeriod, 1}}, 1, funnel.Rate{funnel.MaxPeriod, 1}},
	{"2^63 - 1 ns and a fraction, rounded up",
		0, funnel.ThrottleState{TAT: math.MaxInt64, Frac: 6, Rate: funnel.Rate{60e9, 7}}, 1, funnel.Rate{60e9, 7}},
}

func init() {
	for d := range funnel.Nanos(3) {
		now := math.MaxInt64 - 2*hour - 1 + d
		seams = append(seams,
			seam{"Usage at a new rate drains about the last instant", now,
				funnel.ThrottleState{TAT: now + 2e9, Rate: funnel.Rate{1e9, 1}}, 1, funnel.Rate{hour, 1}},
			seam{"The largest debt, in thirds of a nanosecond", origin,
				funnel.ThrottleState{TAT: origin + funnel.MaxPeriod - 1, Frac: int64(d), Rate: funnel.Rate{2, 3}}, 1, funnel.Rate{2, 3}})
		for frac := range int64(2) { // two units take 3 s - 1 ns
			seams = append(seams, seam{"A slot after which all drains about the last instant", math.MaxInt64 - funnel.MaxPeriod,
				funnel.ThrottleState{TAT: math.MaxInt64 - 3e9 + d, Frac: frac, Rate: funnel.Rate{3e9 - 1, 2}}, 3, funnel.Rate{3e9 - 1, 2}})
		}
	}
}

func TestThrottle_seams(t *testing.T) {
	for _, c := range seams {
		t.Run(c.name, func(t *testing.T) {
			for _, quantity := range []int64{0, 1, -1, 2, 5} {
				for _, p := range options(funnel.ThrottleParams{Limit: c.limit, Rate: c.rate, Quantity: quantity}, funnel.MaxPeriod) {
					limiterOf(c.state).call(t, c.now, p)
				}
			}
		})
	}
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
