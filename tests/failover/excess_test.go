// Package failover kills, stops and cuts off masters under load. It counts what clients are granted, and holds the counts
// against the bound that docs/operating.md states.
package failover

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"
)

// admission is units that a client was granted, and when the client knew.
type admission struct {
	at    time.Duration // since the start of the test
	units int64
	by    *caller
}

// pace is the limit of a key: burst units at once, and perSecond units in each second.
type pace struct {
	burst     int64
	perSecond float64
}

// excess returns by how many units the admissions of the worst span of time exceed burst + perSecond x span. It returns 0
// if no span does. The list is sorted by time here.
//
// A bucket without an upper end gets all admissions and leaks at the rate. Its highest level is the largest sum of a span
// minus what leaks in that span.
func (p pace) excess(list []admission) float64 {
	slices.SortFunc(list, func(a, b admission) int { return cmp.Compare(a.at, b.at) })
	var level, highest float64
	var last time.Duration
	for _, a := range list {
		level = max(0, level-p.perSecond*(a.at-last).Seconds()) + float64(a.units)
		last, highest = a.at, max(highest, level)
	}
	return max(0, highest-float64(p.burst))
}

// TestExcess compares the scan with a search over all spans.
func TestExcess(t *testing.T) {
	for seed := range 200 {
		p := pace{burst: int64(seed % 7), perSecond: float64(seed%5) * 0.7}
		var list []admission
		for i := range 1 + seed%20 {
			list = append(list, admission{at: time.Duration((i*i*(seed+3))%97) * 100 * time.Millisecond, units: int64((i + seed) % 4)})
		}
		got, want := p.excess(slices.Clone(list)), 0.0
		for _, from := range list {
			for _, to := range list {
				var sum float64
				for _, a := range list {
					if a.at >= from.at && a.at <= to.at {
						sum += float64(a.units)
					}
				}
				want = max(want, sum-float64(p.burst)-p.perSecond*max(0, to.at-from.at).Seconds())
			}
		}
		if math.Abs(got-want) > 1e-6 {
			t.Errorf("seed %d: the scan returns %v, the search %v", seed, got, want)
		}
	}
}
