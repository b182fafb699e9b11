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
			t.Errorf("docs/%s is not what the code draws (%v): run make pictures", name, err)
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
		want := fmt.Sprintf("Admitted: %d of the burst's %d calls, %d of the overload's %d.", burst, burstCalls, overload, overloadCalls)
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

// The quota admits twice its limit around an end, as the page says.
func TestQuota_twice(t *testing.T) {
	most := 0
	times := taken(quota().calls)
	for i, from := range times {
		n := 0
		for n < len(times)-i && times[i+n] < from+at(period) {
			n++
		}
		most = max(most, n)
	}
	if most != 2*limit {
		t.Errorf("at most %d within a period", most)
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
