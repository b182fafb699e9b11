// Package sim simulates a master, its replicas and their clients in one process. The servers are those of package
// commands/memory, which run the module's handlers. The clients are those of package throttle, and simpler ones. A seed
// decides all that happens, so each run can be repeated.
package sim

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// stepsOfWorld is how many steps a world has. Then the next one begins, with other limiters and clients.
const stepsOfWorld = 20_000

// seedOf returns the seed, and the number of the only world that is to run: -1 for all. SEED is "7" or "7/12", or "0" for
// a random one. Without it everybody runs the same worlds.
func seedOf(t *testing.T) (seed uint64, only int64) {
	text := cmp.Or(os.Getenv("SEED"), "1")
	if text == "0" {
		return rand.Uint64N(1_000_000_000), -1
	}
	only = -1
	if n, _ := fmt.Sscanf(text, "%d/%d", &seed, &only); n == 0 {
		t.Fatalf("SEED is %q, and must be a number, or two with a slash between", text)
	}
	return seed, only
}

// simulate runs one world and returns it, with a line for each event from a step on.
func simulate(t *testing.T, seed, index uint64, p *planted, traced int) (w *world) {
	synctest.Test(t, func(*testing.T) {
		w = newWorld(seed, index, p)
		w.traced = traced
		w.run(stepsOfWorld)
	})
	return w
}

// In no order of events is an invariant violated.
func TestSim(t *testing.T) {
	seed, only := seedOf(t)
	fmt.Printf("simulation: SEED=%d\n", seed)
	wanted, err := strconv.Atoi(cmp.Or(os.Getenv("STEPS"), "200000"))
	if err != nil {
		t.Fatal(err)
	}
	first, end := uint64(0), uint64(max(wanted/stepsOfWorld, 1))
	if only >= 0 {
		first, end = uint64(only), uint64(only)+1
	}
	steps, sum, began := 0, map[string]int64{}, time.Now()
	for index := first; index < end; index++ {
		w := simulate(t, seed, index, &planted{}, never)
		steps += w.step
		for _, thing := range things {
			sum[thing] += w.seen[thing]
		}
		if w.broken != "" {
			w = simulate(t, seed, index, &planted{}, w.step-history)
			t.Fatalf("SEED=%d/%d, step %d: %s", seed, index, w.step, w.report())
		}
	}
	if steps >= 2_000_000 && slices.Min(slices.Collect(maps.Values(sum))) < 10 {
		t.Errorf("SEED=%d: the worlds were too tame: %v", seed, sum)
	}
	took := time.Since(began)
	fmt.Printf("simulation: %d steps in %.1f s: %.1f million a minute\n%v\n", steps, took.Seconds(), float64(steps)/took.Minutes()/1e6, sum)
}

// The same seed brings about the same events.
func TestSim_repeats(t *testing.T) {
	seed, _ := seedOf(t)
	different := map[uint64]bool{}
	for index := range uint64(5) {
		a, b := simulate(t, seed, index, &planted{}, never), simulate(t, seed, index, &planted{}, never)
		if a.digest != b.digest || !maps.Equal(a.seen, b.seen) || a.now-trueTime == 0 {
			t.Errorf("SEED=%d/%d: %d and %d: %+v, then %+v", seed, index, a.digest, b.digest, a.seen, b.seen)
		}
		different[a.digest] = true
	}
	if len(different) != 5 {
		t.Errorf("SEED=%d: five worlds have %d digests", seed, len(different))
	}
}

// mostSteps is within how many steps a planted fault must be found: those of half a minute.
const mostSteps = 5_000_000

// Each planted fault is found.
func TestSim_findsPlantedFaults(t *testing.T) {
	seed, _ := seedOf(t)
	for i := range faults {
		p := &faults[i]
		t.Run(p.name, func(t *testing.T) {
			steps := 0
			for index := uint64(0); steps < mostSteps; index++ {
				w := simulate(t, seed, index, p, never)
				if steps += w.step; w.broken != "" {
					what, _, _ := strings.Cut(w.broken, "\n")
					t.Logf("found after %d steps: %s", steps, what)
					return
				}
			}
			t.Errorf("SEED=%d: not found in %d steps", seed, steps)
		})
	}
}
