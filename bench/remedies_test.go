package main

import (
	"testing"

	"gothrottle/funnel"
)

// No remedy admits more than the limit allows, and each one saves or loses what the page says.
func TestRemedies(t *testing.T) {
	calm, over := arrivals(calmLoad), arrivals(overload)
	fits := hotLimit + hotLimit*int(simulated/funnel.Second)
	results := map[string][2]simulation{}
	for _, r := range remedies() {
		c, o := simulate(r, calm), simulate(r, over)
		results[r.name] = [2]simulation{c, o}
		if o.admitted > fits {
			t.Errorf("%s: %d admitted, %d fit", r.name, o.admitted, fits)
		}
		if c.admitted > c.requests || c.requests < 4000 || o.requests < 50_000 {
			t.Errorf("%s: %+v", r.name, c)
		}
	}
	one := results["one call for each request"]
	if one[0].admitted != one[0].requests || one[1].calls != one[1].requests || one[1].admitted < fits-1 {
		t.Errorf("one call for each request: %+v", one)
	}
	calls := func(name string, load int) int { return results[name][load].calls }
	if n := calls("batches of 10", 0); n > calls("one call for each request", 0)/5 {
		t.Errorf("batches need %d calls when it is calm", n)
	}
	if n := calls("batches of 10", 1); n < calls("one call for each request", 1)*9/10 {
		t.Errorf("batches save calls under overload: %d", n)
	}
	if n := calls("batches of 10, denials hold 100 ms", 1); n > calls("denials remembered", 1)/2 {
		t.Errorf("longer denials and batches need %d calls", n)
	}
	byUser, atRandom := results["split in 4, by user"][0], results["split in 4, at random"][0]
	if byUser.admitted >= atRandom.admitted {
		t.Errorf("a split by user admits %d, one at random %d", byUser.admitted, atRandom.admitted)
	}
	if many := results["split in 20, at random"][0]; many.admitted >= atRandom.admitted {
		t.Errorf("a split in 20 admits %d, one in 4 %d", many.admitted, atRandom.admitted)
	}
	if s := results["a tenth for each process, by lease"]; s[1].calls != 120 {
		t.Errorf("leases: %d calls", s[1].calls)
	}
}

// A process spends what it took, for a second, and calls again afterwards.
func TestBatches(t *testing.T) {
	calls := 0
	decide := batches(&calls, batchSize, forgotten)
	for i := range 12 {
		if !decide(arrival{at: startOfTimes + funnel.Nanos(i)}) {
			t.Errorf("request %d is denied", i)
		}
	}
	if calls != 2 {
		t.Errorf("%d calls for 12 requests", calls)
	}
	if decide(arrival{at: startOfTimes + funnel.Nanos(11) + batchKeeps}); calls != 3 {
		t.Errorf("%d calls after the units were lost", calls)
	}
	if decide(arrival{at: startOfTimes, process: 1}); calls != 4 {
		t.Error("two processes share their units")
	}
}

// A process that remembers a denial does not call before retry_after has passed. The requests come within 100 ms. 100
// units fit at first, and one more every 10 ms. Without a longer hold each of those takes a call, and so does the denial
// after it.
func TestBatches_hold(t *testing.T) {
	for hold, want := range map[funnel.Nanos]int{forgotten: 1000, untilRetry: 118, 100 * funnel.Millisecond: 102} {
		calls, denials := 0, 0
		decide := batches(&calls, 1, hold)
		for i := range 1000 {
			if !decide(arrival{at: startOfTimes + funnel.Nanos(i)*funnel.Millisecond/10}) {
				denials++
			}
		}
		if calls != want || denials < 890 {
			t.Errorf("hold %d: %d calls, want %d; %d denials", hold, calls, want, denials)
		}
	}
}
