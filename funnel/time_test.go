package funnel_test

import (
	"math"
	"testing"

	"gothrottle/funnel"
)

func TestMicros_Nanos(t *testing.T) {
	const last = math.MaxInt64 / 1000
	for _, c := range []struct {
		micros funnel.Micros
		want   funnel.Nanos
	}{
		{0, 0},
		{1, 1000},
		{last, last * 1000},
		{last + 1, math.MaxInt64},
		{math.MaxInt64, math.MaxInt64},
	} {
		if got := c.micros.Nanos(); got != c.want {
			t.Errorf("%d us are %d ns, want %d", c.micros, got, c.want)
		}
	}
}

func TestNanos_Micros(t *testing.T) {
	for _, c := range []struct {
		nanos funnel.Nanos
		want  funnel.Micros
	}{
		{0, 0},
		{999, 0},
		{1000, 1},
		{1999, 1},
		{-999, 0},
		{math.MaxInt64, math.MaxInt64 / 1000},
	} {
		if got := c.nanos.Micros(); got != c.want {
			t.Errorf("%d ns are %d us, want %d", c.nanos, got, c.want)
		}
	}
}
