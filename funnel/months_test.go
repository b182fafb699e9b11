package funnel_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"gothrottle/funnel"
	"gothrottle/funnel/oracle"
)

// A transcript can't walk through 292 years: around the begin of each month, a window ends where the standard library says.
func TestQuota_monthsAreTheCalendars(t *testing.T) {
	for month := range int64((2262-1970)*12 + 1) {
		begin := time.Date(1970, time.Month(month+1), 1, 0, 0, 0, 0, time.UTC).UnixMicro()
		for _, now := range []int64{begin, begin + 1, max(begin-1, 0)} {
			checkMonths(t, now, 1, 0)
		}
	}
}

// Random numbers of months and offsets, at random instants.
func TestQuota_monthsWithOffset(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		now := r.Int64N(time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro())
		offset := r.Int64N((28+31)*86_400_000_000-1) - 28*86_400_000_000 + 1
		checkMonths(t, now, 1+r.IntN(funnel.MaxMonths), offset)
	}
}

// checkMonths compares a call with the exact model, whose calendar is the standard library's.
func checkMonths(t *testing.T, now int64, n int, offset int64) {
	t.Helper()
	p := funnel.QuotaParams{Limit: 1, Months: int16(n), Quantity: 1, Align: true, Offset: funnel.Micros(offset)}
	_, v := funnel.Quota(funnel.Micros(now), funnel.QuotaState{}, p)
	if want := new(oracle.Quota).Call(funnel.Micros(now), p); v != want {
		t.Fatalf("%d, %+v: %+v, want %+v", now, p, v, want)
	}
}
