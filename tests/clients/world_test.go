package clients

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	exact "gothrottle/tests/world"
)

var (
	seeds = flag.Uint64("seeds", 60, "how many random worlds TestWorlds explores; with -short, a tenth")
	first = flag.Uint64("seed", 1, "the seed of the first of them")
)

// knownFault is a fault of the client that is not fixed yet. Worlds avoid it, and one world that it shows in is kept: whoever
// fixes the fault deletes the row.
type knownFault struct {
	property string
	seed     uint64
	avoid    func(*world)
	add      func(*rand.Rand, *world)
}

var knownFaults = map[string]knownFault{
	"a limiter with a time limit below the round trip switches off the others": {
		property: "a working server decides",
		seed:     9,
		avoid:    func(*world) {},
		add: func(r *rand.Rand, w *world) {
			w.Far, w.Faults = 20*time.Millisecond, nil
			for i := range w.Limits {
				w.Limits[i].Timeout = 500 * time.Millisecond
			}
			w.Limits[0].Timeout, w.Hopeless = 10*time.Millisecond, 1
		},
	},
	"All and SettleAll have the client's time limit, not their limiters'": {
		property: "a working server decides",
		seed:     1,
		avoid: func(w *world) {
			for i := range w.Steps {
				if s := &w.Steps[i]; 8*w.Far > clientTimeout && (s.Verb == "All" || s.Verb == "SettleAll") {
					s.Verb, s.N = "Allow", 1
				}
			}
		},
		add: func(r *rand.Rand, w *world) { w.Far, w.Faults = 80*time.Millisecond, nil; w.patient() },
	},
	"closed connections open the circuit": {
		property: "a cut connection costs its own calls",
		seed:     29,
		avoid:    func(w *world) { w.LongCuts = true },
		add: func(r *rand.Rand, w *world) {
			w.TLS, w.Faults = true, []fault{{At: micros(r, time.Second), Name: "cut"}}
		},
	},
	"a limiter with a long time limit holds up one with a short one": {
		property: "a limiter recovers as it would alone",
		seed:     8,
		avoid:    func(w *world) { w.HeldUp = true },
		add: func(r *rand.Rand, w *world) {
			w.Faults, w.Steps = []fault{{At: time.Second + micros(r, time.Second), Name: "half-open"}}, nil
			for i := range w.Limits {
				w.Limits[i].Timeout = []time.Duration{max(50*time.Millisecond, 8*w.Far), 2 * time.Second}[i%2]
				w.addSteps(r, i, 6*time.Second)
			}
		},
	},
	"a lease that was lost has a token": {
		property: "a lost lease is lost",
		seed:     12,
		avoid:    func(w *world) { w.LooseLeases = true },
		add: func(r *rand.Rand, w *world) {
			w.Limits[0] = limit{Kind: "slots", Units: 1, Period: time.Second, Timeout: max(50*time.Millisecond, 8*w.Far)}
			w.Steps, w.Limits = nil, w.Limits[:1]
			for key := range 3 {
				w.Steps = append(w.Steps, step{At: micros(r, time.Second), Key: key, Verb: "Lease", N: 1, Hold: 5 * time.Second})
			}
			w.Faults = []fault{{At: time.Second + micros(r, time.Second), For: 1200 * time.Millisecond, Name: "silent"}}
		},
	},
	"an ended context is ignored where the server isn't asked": {
		property: "an ended context ends the call",
		seed:     1,
		avoid: func(w *world) {
			for i := range w.Steps {
				s := &w.Steps[i]
				l := w.Limits[s.Limit]
				if s.Deadline < 0 && (l.Kind == "unlimited" || l.Kind == "suspended" || l.Budget > 0 || l.Denies || s.both(w)) {
					s.Deadline = time.Second
				}
			}
		},
	},
}

// patient makes time limits so long that the server can decide.
func (w *world) patient() {
	for i := range w.Limits {
		w.Limits[i].Timeout = max(w.Limits[i].Timeout, 8*w.Far)
	}
}

// Random worlds have all properties. The first one that does not is shortened, and its seed repeats it.
func TestWorlds(t *testing.T) {
	n := *seeds
	if testing.Short() {
		n /= 10
	}
	calls, faults := 0, 0
	for seed := *first; seed < *first+n && !t.Failed(); seed++ {
		w := generate(seed, "")
		calls, faults = calls+len(w.Steps), faults+len(w.Faults)
		for name, wrong := range play(t, w).broken() {
			t.Errorf("seed %d: %s: %s", seed, name, wrong)
			report(t, w, name)
		}
	}
	t.Logf("calls %d", calls)
	t.Logf("faults %d", faults)
}

// A fault that is not fixed yet is still found.
func TestKnownFaults(t *testing.T) {
	for name, fault := range knownFaults {
		if play(t, generate(fault.seed, name)).broken()[fault.property] == "" {
			t.Errorf("seed %d no longer shows it: %s", fault.seed, name)
		}
	}
}

var find = flag.Bool("find", false, "look for seeds that show the known faults")

// With -find, it looks for seeds that show the known faults.
func TestKnownFaults_find(t *testing.T) {
	for name, fault := range knownFaults {
		for seed := uint64(1); *find; seed++ {
			w := generate(seed, name)
			if r := play(t, w); r.broken()[fault.property] != "" {
				t.Logf("%s: seed %d, %d calls: %s", name, seed, len(w.Steps), r.broken()[fault.property])
				report(t, w, fault.property)
				break
			}
		}
	}
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
