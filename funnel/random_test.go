package funnel_test

// Tests of random numbers, which no transcript holds, share this.

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gothrottle/funnel"
)

// origin is the instant of the first call, unless a test says otherwise.
const origin funnel.Nanos = 1_700_000_000_000_000_000

// sample returns n, or in short runs a quarter of it.
func sample(n int) int {
	if testing.Short() {
		n /= 4
	}
	return n
}

// eachSeed runs f with a sample of n reproducible sources of random numbers. A failure's name has the seed.
func eachSeed(t *testing.T, n int, f func(*testing.T, *rand.Rand)) {
	for seed := range uint64(sample(n)) {
		r := rand.New(rand.NewPCG(seed, 0))
		if !t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { f(t, r) }) {
			return
		}
	}
}

// logUniform returns 1 to top, each order of magnitude equally often.
func logUniform[N ~int64](r *rand.Rand, top N) N {
	n := N(math.Exp(r.Float64() * math.Log(float64(top))))
	return min(max(n, 1), top)
}

// partial reports whether a call with UPTO got a part of its quantity.
func partial(quantity int64, v funnel.Verdict) bool {
	return v.Granted > 0 && v.Granted < quantity
}

// inRange checks what holds for every verdict on a call with limit and quantity. anyQuantity says
// that the call has UPTO or FORCE, so that no quantity is too large forever.
func inRange(t testing.TB, limit, quantity int64, anyQuantity bool, v funnel.Verdict) {
	t.Helper()
	wait := v.RetryAfter > 0
	never := quantity > limit && !anyQuantity
	switch {
	case v.Remaining < 0 || v.Remaining > limit || v.ResetAfter < 0 || v.RetryAfter < funnel.Never,
		(v.RetryAfter == funnel.Never) != never || never && !v.Limited,
		wait != (v.Limited && !never || partial(quantity, v)),
		v.Limited && v.Granted != 0, partial(quantity, v) && (!anyQuantity || v.Remaining != 0):
		t.Fatalf("out of range with limit %d, quantity %d, UPTO or FORCE %v: %+v", limit, quantity, anyQuantity, v)
	}
}

// agree reports whether a verdict is what the oracle wants. Of a call with TooMuch only
// that it changes nothing is compared.
func agree(v, want funnel.Verdict) bool {
	if v.TooMuch && want.TooMuch {
		return v.Change == funnel.Keep && v.Granted == 0 && !v.Limited
	}
	return v == want
}
