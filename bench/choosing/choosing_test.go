package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gothrottle/funnel"
)

// The files in docs are what the code draws, and there are no others.
func TestPictures_committed(t *testing.T) {
	want := map[string][]byte{}
	for _, p := range pictures() {
		for _, th := range themes {
			want[p.file+"-"+th.suffix+".svg"] = p.draw(th)
		}
	}
	files, err := filepath.Glob("../../docs/choosing-*.svg")
	if err != nil || len(files) != len(want) {
		t.Errorf("docs has %d pictures, the code draws %d: %v", len(files), len(want), err)
	}
	for name, svg := range want {
		if got, err := os.ReadFile(filepath.Join("../../docs", name)); err != nil || !bytes.Equal(got, svg) {
			t.Errorf("docs/%s is not what the code draws (%v): run go -C bench run ./choosing ../docs", name, err)
		}
	}
}

// The page shows each picture in both themes, with a text for those who cannot see it.
func TestPage_showsThePictures(t *testing.T) {
	page := readPage(t)
	for _, p := range pictures() {
		for _, want := range []string{
			`srcset="` + p.file + `-dark.svg"`,
			`<img src="` + p.file + `-light.svg" alt="`,
		} {
			if strings.Count(page, want) != 1 {
				t.Errorf("the page does not have %s once", want)
			}
		}
	}
}

func readPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/choosing.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The page tells how many calls of the burst and of the overload each limiter admits.
func TestPage_counts(t *testing.T) {
	page := readPage(t)
	for _, p := range pictures() {
		burst, overload := 0, 0
		for _, c := range p.calls {
			switch {
			case c.outcome == denied:
			case column(c) == burstAt:
				burst++
			case column(c) >= overloadAt && column(c) < overloadEnds:
				overload++
			}
		}
		_, text, _ := strings.Cut(page, p.file+"-light.svg")
		text, _, _ = strings.Cut(text, "\n## ")
		want := fmt.Sprintf("Admitted: %d of the burst's %d calls, %d of the overload's %d.",
			burst, burstCalls, overload, overloadCalls)
		if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("%s: the page does not say %q", p.file, want)
		}
	}
}

// taken returns when units were taken, one entry for each unit: those of
// admitted calls.
func taken(events []event) (times []funnel.Nanos) {
	for _, e := range events {
		if e.outcome == admitted || e.outcome == delayed {
			times = append(times, e.at)
		}
	}
	slices.Sort(times)
	return times
}

// within fails the test if more units are taken in any length of time than bound allows.
func within(t *testing.T, name string, times []funnel.Nanos, bound func(length funnel.Nanos) float64) {
	t.Helper()
	if len(times) < 20 {
		t.Fatalf("%s: only %d units", name, len(times))
	}
	for i := range times {
		for j := i; j < len(times); j++ {
			if units, most := j-i+1, bound(times[j]-times[i]); float64(units) > most+1e-9 {
				t.Fatalf("%s: %d units from %v to %v, at most %v", name, units, times[i], times[j], most)
			}
		}
	}
}

func gcra(limit, period float64) func(funnel.Nanos) float64 {
	return func(length funnel.Nanos) float64 { return limit + inSeconds(length)*limit/period }
}

// What the pictures show keeps the bounds that the page tells.
func TestPictures_bounds(t *testing.T) {
	windows := func(most int) func(funnel.Nanos) float64 {
		return func(length funnel.Nanos) float64 {
			if length >= at(period) {
				return seconds
			}
			return float64(most)
		}
	}
	within(t, "throttle", taken(throttle().calls), gcra(limit, period))
	within(t, "window", taken(window().calls), windows(limit))
	within(t, "quota", taken(quota().calls), windows(2*limit))
	within(t, "reserve", taken(reserve().below), gcra(limit, period))
	within(t, "lockout", taken(lockout().calls), gcra(limit, period))
	within(t, "all", taken(all().calls), gcra(limit, period))
	within(t, "all, second limit", taken(all().calls), gcra(allLimit, allPeriod))
	for _, p := range pictures() {
		for _, m := range p.meters {
			if over := m.highest() > float64(m.limit); over != (p.over != admitted) {
				t.Errorf("%s: more than the limit in use: %v", p.file, over)
			}
		}
	}
}

// The quota admits twice its limit around an end, within 11 s as the page says.
func TestQuota_twice(t *testing.T) {
	times := slices.DeleteFunc(taken(quota().calls), func(now funnel.Nanos) bool { return now < at(overloadAt) })
	if took := times[2*limit-1] - times[0]; took > at(11) {
		t.Errorf("%d calls are admitted within %v s", 2*limit, inSeconds(took))
	}
}

// One slot of the lease's burst is held for a whole ttl, up to 44.5 s.
func TestLease_crash(t *testing.T) {
	held := map[funnel.Nanos]float64{}
	for _, l := range lease().meters[0].use {
		held[l.at] = l.units
	}
	if before, after := held[at(44.5)-step], held[at(44.5)]; before != 1 || after != 0 {
		t.Errorf("%v slots are held before, %v after", before, after)
	}
}

// In the picture of GO.ALL the first limit denies the burst's calls, the second one those after it.
func TestAll_deciders(t *testing.T) {
	p := all()
	for _, c := range p.calls {
		if c.outcome != denied {
			continue
		}
		for i, m := range p.meters {
			used := 0.0 // before the call, or after the calls at its instant
			for _, l := range m.use {
				if l.at <= c.at {
					used = l.units
				}
			}
			denies := used+1 > float64(m.limit)
			if first := c.at < at(overloadAt); denies != (first == (i == 0)) {
				t.Errorf("%v s: limit %d denies: %v, with %v in use", inSeconds(c.at), i, denies, used)
			}
		}
	}
}

// A batch with UPTO is granted what the burst's calls are granted.
func TestUpTo_grantsTheBurst(t *testing.T) {
	burst := at(burstAt + 0.5)
	before := slices.DeleteFunc(arrivals(), func(now funnel.Nanos) bool { return now >= burst })
	c := newCell(limit, period)
	l := &log{WindowParams: windowParams}
	var state funnel.QuotaState
	q := quotaParams
	for _, now := range before {
		c.take(now)
		l.take(now.Micros())
		state, _ = funnel.Quota(now.Micros(), state, q)
	}
	c.Quantity, c.UpTo = burstCalls, true
	l.Quantity, l.UpTo = burstCalls, true
	q.Quantity, q.UpTo = burstCalls, true
	_, byQuota := funnel.Quota(burst.Micros(), state, q)
	got := []int64{c.take(burst).Granted, l.take(burst.Micros()).Granted, byQuota.Granted}
	for i, p := range []*picture{throttle(), window(), quota()} {
		want := 0
		for _, now := range taken(p.calls) {
			if now == burst {
				want++
			}
		}
		if got[i] != int64(want) {
			t.Errorf("%s: %d granted, %d calls admitted", p.file, got[i], want)
		}
	}
}

// In any time the units that were taken, charged and given back keep the bound with debt.
func TestForce_bound(t *testing.T) {
	p := force()
	debtAt := map[funnel.Nanos]float64{}
	for _, l := range p.meters[0].use {
		debtAt[l.at] = max(l.units-limit, 0)
	}
	events := slices.Concat(p.calls, p.below)
	slices.SortStableFunc(events, func(a, b event) int { return int(a.at - b.at) })
	least := 1e9
	for i := range events {
		units := 0.0
		for j := i; j < len(events); j++ {
			switch events[j].outcome {
			case admitted, charged:
				units++
			case returned:
				units--
			}
			if j+1 < len(events) && events[j+1].at == events[j].at {
				continue
			}
			room := gcra(limit, period)(events[j].at-events[i].at) + debtAt[events[j].at] - units
			if least = min(least, room); room < -1e-6 {
				t.Fatalf("%v units from %v to %v", units, events[i].at, events[j].at)
			}
		}
	}
	if least > 1 {
		t.Errorf("the bound is never near: at least %v units remain", least)
	}
}

// Nothing is admitted while a lockout stands.
func TestLockout_bound(t *testing.T) {
	p := lockout()
	if len(p.locked) != 2 {
		t.Fatalf("%d lockouts", len(p.locked))
	}
	for _, s := range p.locked {
		if s.to-s.from != at(lockoutTime) {
			t.Errorf("a lockout lasts %v", s.to-s.from)
		}
		for _, c := range p.calls {
			if c.at > s.from && c.at < s.to && c.outcome != denied {
				t.Errorf("a call is admitted at %v", c.at)
			}
		}
	}
}
