package main

import (
	"fmt"
	"iter"
	"time"
)

// Bounds of traffic.
const (
	maxCallsPerSecond = 200 // of a session, to all its limiters together
	maxBurst          = 100
	maxRun            = 10 * time.Minute
)

// Traffic says when calls are sent.
type Traffic struct {
	Pattern string  `json:"pattern"`         // steady, bursts, clients or boundary
	Rate    float64 `json:"rate"`            // calls per second, of steady and of the first of two clients
	Size    int64   `json:"size"`            // calls of one burst
	Every   int64   `json:"every"`           // ms from burst to burst
	Own     bool    `json:"own,omitempty"`   // each of two clients has a key of its own
	Until   int64   `json:"until,omitempty"` // ms after which the traffic ends; 0: when it is stopped
}

func (t *Traffic) check() error {
	switch t.Pattern {
	case "steady", "bursts", "clients", "boundary":
	default:
		return fmt.Errorf("there is no traffic of pattern %q", t.Pattern)
	}
	if !(t.Rate >= 0.1 && t.Rate <= 100) {
		return fmt.Errorf("the rate must be between 0.1 and 100 calls per second")
	}
	if err := between("the calls of a burst", t.Size, 1, maxBurst); err != nil {
		return err
	}
	if err := between("the time between bursts", t.Every, 200, maxPeriodMS); err != nil {
		return err
	}
	return between("the length", t.Until, 0, maxRun.Milliseconds())
}

// step is one call of a schedule.
type step struct {
	at     time.Duration // since the traffic began
	client int           // 0 or 1
}

// steps returns the schedule, in order of time. It ends at maxRun, or at Until. The limiter is the one that the boundary
// attack aims at.
func (t Traffic) steps(aim Spec) iter.Seq[step] {
	end := maxRun
	if t.Until > 0 {
		end = time.Duration(t.Until) * time.Millisecond
	}
	return func(yield func(step) bool) {
		for s := range t.endless(aim) {
			if s.at > end || !yield(s) {
				return
			}
		}
	}
}

func (t Traffic) endless(aim Spec) iter.Seq[step] {
	switch t.Pattern {
	case "steady":
		return steady(t.Rate)
	case "bursts":
		return bursts(t.Size, t.Every, 0)
	case "clients":
		return merge(steady(t.Rate), bursts(t.Size, t.Every, 1))
	}
	return boundary(aim)
}

func steady(rate float64) iter.Seq[step] {
	return func(yield func(step) bool) {
		for i := 0; yield(step{at: time.Duration(float64(i) / rate * float64(time.Second))}); i++ {
		}
	}
}

func bursts(size, every int64, client int) iter.Seq[step] {
	return func(yield func(step) bool) {
		for at := time.Duration(0); ; at += time.Duration(every) * time.Millisecond {
			for range size {
				if !yield(step{at, client}) {
					return
				}
			}
		}
	}
}

// merge returns the steps of both schedules in order of time.
func merge(a, b iter.Seq[step]) iter.Seq[step] {
	return func(yield func(step) bool) {
		next, stop := iter.Pull(b)
		defer stop()
		other, _ := next()
		for s := range a {
			for ; other.at < s.at; other, _ = next() {
				if !yield(other) {
					return
				}
			}
			if !yield(s) {
				return
			}
		}
	}
}

// aimOf returns the limiter that the attack on the boundary aims at: a fixed window, or else one whose period is known.
func aimOf(specs []Spec) Spec {
	aim := Spec{Limit: 10, Period: 5000}
	for _, s := range specs {
		for _, part := range append([]Spec{s}, s.Clauses...) {
			switch {
			case part.Kind == "quota":
				return part
			case part.Period > 0 && aim.Kind == "":
				aim = part
			}
		}
	}
	return aim
}

// boundary returns the attack on a fixed window: one call begins a window, the rest of the limit comes just before its
// end, and a whole limit just after it. Then all is quiet for a while, and the attack begins anew.
func boundary(aim Spec) iter.Seq[step] {
	period := time.Duration(aim.Period) * time.Millisecond
	calls := min(max(aim.Limit/max(aim.Quantity, 1), 1), maxBurst)
	margin := boundaryMargin(period)
	return func(yield func(step) bool) {
		for begin := time.Duration(0); ; begin += 3 * period {
			for i := range 2 * calls {
				at := begin
				switch {
				case i >= calls:
					at += period + margin
				case i > 0:
					at += period - margin
				}
				if !yield(step{at: at}) {
					return
				}
			}
		}
	}
}

// boundaryMargin is how far from the end of a window the attack keeps: far enough for a slow machine to be on time.
func boundaryMargin(period time.Duration) time.Duration {
	return min(max(period/25, 20*time.Millisecond), 250*time.Millisecond)
}

// beforeAttack returns how long to wait until the next window of an aligned quota begins; other limiters need no wait.
func beforeAttack(t Traffic, aim Spec, now time.Time) time.Duration {
	if t.Pattern != "boundary" || aim.Kind != "quota" || !aim.Align {
		return 0
	}
	return time.Duration(aim.Period-now.UnixMilli()%aim.Period) * time.Millisecond
}
