package funnel_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"gothrottle/funnel"
)

const (
	// origin is the instant that the step tables call 0.
	origin funnel.Nanos = 1_700_000_000_000_000_000
	// originMicros is origin in the unit of windows, quotas and leases.
	originMicros = funnel.Micros(origin / funnel.Microsecond)

	maxPeriodMicros = funnel.Micros(funnel.MaxPeriod / funnel.Microsecond)
)

// verdictText writes a verdict as the right side of a step.
func verdictText(v funnel.Verdict) string {
	limited, retry := "no", time.Duration(v.RetryAfter).String()
	if v.Limited {
		limited = "yes"
	}
	switch v.RetryAfter {
	case 0:
		retry = "-"
	case funnel.Never:
		retry = "never"
	}
	change := map[funnel.Change]string{funnel.Keep: "keep", funnel.Store: "store", funnel.Forget: "forget"}[v.Change]
	return fmt.Sprint(limited, " ", v.Remaining, " ", retry, " ", time.Duration(v.ResetAfter), " ", v.Granted, " ", change)
}

// columns writes the right side of a step as verdictText would.
func columns(t *testing.T, want string) string {
	t.Helper()
	f := strings.Fields(want)
	for i := 2; i <= 3; i++ {
		if f[i] != "-" && f[i] != "never" {
			f[i] = time.Duration(duration(t, f[i])).String()
		}
	}
	return strings.Join(f, " ")
}

func duration(t *testing.T, text string) funnel.Nanos {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return funnel.Nanos(d)
}

func number(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// partial reports whether a call with UPTO got a part of its quantity.
func partial(quantity int64, v funnel.Verdict) bool {
	return v.Granted > 0 && v.Granted < quantity
}

// inRange checks what holds for every verdict on a call with limit and quantity. anyQuantity says
// that the call has UPTO or FORCE, so that no quantity is too large for ever.
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
