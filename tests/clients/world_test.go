package clients

import (
	"flag"
	"testing"

	exact "gothrottle/tests/world"
)

var (
	seeds = flag.Uint64("seeds", 150, "how many random worlds TestWorlds explores; with -short, a tenth")
	first = flag.Uint64("seed", 1, "the seed of the first of them")
)

// Random worlds have all properties. The first one that does not is shortened, and its seed repeats it.
func TestWorlds(t *testing.T) {
	n := *seeds
	if testing.Short() {
		n /= 10
	}
	calls, faults := 0, 0
	for seed := *first; seed < *first+n && !t.Failed(); seed++ {
		w := generate(seed)
		calls, faults = calls+len(w.Steps), faults+len(w.Faults)
		for name, wrong := range play(t, w).broken() {
			t.Errorf("seed %d: %s: %s", seed, name, wrong)
			report(t, w, name)
		}
	}
	t.Logf("calls %d", calls)
	t.Logf("faults %d", faults)
}

// report logs the shortest world found in which a property does not hold.
func report(t *testing.T, w *world, property string) {
	fails := func(w *world) bool { return play(t, w).broken()[property] != "" }
	short, tries := *w, 0
	short.Faults = exact.Thin(w.Faults, func(faults []fault) bool {
		less := short
		less.Faults = faults
		return fails(&less)
	})
	short.Steps = exact.Thin(w.Steps, func(steps []step) bool {
		less := short
		less.Steps = steps
		tries++
		return tries < 300 && len(steps) > 0 && fails(&less)
	})
	t.Logf("%d calls are enough: %s, TLS %t, script %t, far %s, limits %+v, faults %+v", len(short.Steps), w.Kind, w.TLS, w.Script, w.Far, w.Limits, short.Faults)
	for _, s := range short.Steps[:min(len(short.Steps), 20)] {
		t.Log(s)
	}
	t.Log(play(t, &short).broken()[property])
}
