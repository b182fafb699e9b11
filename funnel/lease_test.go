package funnel

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// leaseRules are the specification of Lease as steps on one set of slots:
//
//	now limit/ttl id -> limited remaining retry_after expires_after
//
// "now release id" gives a slot back.
var leaseRules = []struct{ rule, steps string }{
	{"A slot is held until it lapses, then another may have it", `
		0s         2/10s  a -> no   1  -    10s
		4s         2/10s  b -> no   0  -    10s
		5s         2/10s  c -> yes  0  5s   -
		9.999999s  2/10s  c -> yes  0  1us  -
		10s        2/10s  c -> no   0  -    10s
		10s        2/10s  a -> yes  0  4s   -
	`},
	{"The same id again renews its slot and takes no other", `
		0s   2/10s  a -> no   1  -   10s
		3s   2/10s  a -> no   1  -   10s
		4s   2/10s  b -> no   0  -   10s
		5s   2/60s  a -> no   0  -   60s
		6s   2/1s   b -> no   0  -   1s
		6s   2/10s  c -> yes  0  1s  -
		7s   2/10s  c -> no   0  -   10s
		7s   2/10s  b -> yes  0  10s -
	`},
	{"A slot that has lapsed is renewed only if there is one", `
		0s   1/10s  a -> no   0  -   10s
		10s  1/10s  b -> no   0  -   10s
		10s  1/10s  a -> yes  0  10s -
	`},
	{"A lowered limit takes no slot away; who waits, waits for enough of them", `
		0s   4/10s  a -> no   3  -    10s
		1s   4/10s  b -> no   2  -    10s
		2s   4/10s  c -> no   1  -    10s
		3s   4/10s  d -> no   0  -    10s
		4s   4/10s  e -> yes  0  6s   -
		4s   3/10s  e -> yes  0  7s   -
		4s   1/10s  e -> yes  0  9s   -
		4s   1/10s  a -> no   0  -    10s
		4s   1/10s  e -> yes  0  10s  -
		4s   5/10s  e -> no   0  -    10s
	`},
	{"A slot that is given back is free at once", `
		0s   1/10s  a -> no   0  -   10s
		1s   1/10s  b -> yes  0  9s  -
		1s   release a
		1s   1/10s  b -> no   0  -   10s
	`},
	{"A clock set back lets a slot be held for longer", `
		100s  1/10s  a -> no   0  -    10s
		40s   1/10s  b -> yes  0  70s  -
		40s   1/10s  a -> no   0  -    10s
		50s   1/10s  b -> no   0  -    10s
	`},
}

// slots are leases in memory, kept as commands/lease.go keeps them in a sorted set:
// when each id's lapses.
type slots map[string]int64

func TestLease_rules(t *testing.T) {
	for _, r := range leaseRules {
		t.Run(r.rule, func(t *testing.T) {
			s := slots{}
			for line := range strings.Lines(r.steps) {
				line = strings.TrimSpace(line)
				f := strings.Fields(line)
				if len(f) == 0 {
					continue
				}
				if f[1] == "release" {
					delete(s, f[2])
					continue
				}
				now := originMicros + duration(t, f[0])/micro
				limit, ttl, _ := strings.Cut(f[1], "/")
				v, retry := s.lease(t, now, number(t, limit), duration(t, ttl)/micro, f[2])
				got := []string{"no", fmt.Sprint(v.Remaining), "-", "-"}
				if v.Limited {
					got[0], got[2] = "yes", time.Duration(retry*micro).String()
				}
				if v.Lapse > 0 {
					got[3] = time.Duration((v.Lapse - now) * micro).String()
				}
				for i := 6; i <= 7; i++ {
					if f[i] != "-" {
						f[i] = time.Duration(duration(t, f[i])).String()
					}
				}
				if !slices.Equal(got, f[4:]) {
					t.Errorf("%s\n got %s", strings.Join(f, " "), strings.Join(got, " "))
				}
			}
		})
	}
}

// lapses returns when the slots held at now lapse, the first first.
func (s slots) lapses(now int64) (times []int64) {
	for _, lapse := range s {
		if lapse > now {
			times = append(times, lapse)
		}
	}
	slices.Sort(times)
	return times
}

// decide asks for a slot without taking it.
func (s slots) decide(now, limit, ttl int64, id string) LeaseVerdict {
	state := LeaseState{Used: int64(len(s.lapses(now)))}
	if s[id] > now {
		state.Held = s[id]
	}
	return Lease(now, state, limit, ttl)
}

// lease asks for a slot and returns how long until there is one.
func (s slots) lease(t testing.TB, now, limit, ttl int64, id string) (v LeaseVerdict, retry int64) {
	t.Helper()
	v = s.decide(now, limit, ttl, id)
	if v.Limited {
		lapses := s.lapses(now)
		if v.Await < 1 || v.Await > int64(len(lapses)) {
			t.Fatalf("awaits %d of %d slots", v.Await, len(lapses))
		}
		return v, lapses[v.Await-1] - now
	}
	s[id] = v.Lapse
	return v, 0
}

// However ids come, renew, lapse and are given back, no new one goes over the limit.
func TestLease_agreesWithModel(t *testing.T) {
	limited, renewed, lapsed := 0, 0, 0
	eachSchedule(t, 400, func(t *testing.T, w *schedule) {
		type holder struct {
			id    string
			lapse int64
		}
		var model []holder // in no order
		s := slots{}
		retry := int64(0)
		for range 100 {
			if w.IntN(10) == 0 {
				w.newPeriod()
			}
			if w.IntN(5) == 0 {
				w.limit = w.Int64N(8) + 1
			}
			w.now += []int64{0, 0, 1, retry, max(retry-1, 0), w.Int64N(w.period), w.Int64N(w.period)/8 + 1}[w.IntN(7)]
			if w.IntN(30) == 0 {
				w.now -= w.logUniform(w.period)
			}
			if w.now > 1<<52 {
				break
			}
			id := string(rune('a' + w.IntN(12)))
			if w.IntN(8) == 0 {
				model = slices.DeleteFunc(model, func(h holder) bool { return h.id == id })
				delete(s, id)
				continue
			}
			before := len(model)
			others := slices.DeleteFunc(slices.Clone(model), func(h holder) bool { return h.lapse <= w.now })
			lapsed += before - len(others)
			mine := slices.ContainsFunc(others, func(h holder) bool { return h.id == id })
			if mine {
				renewed++
				others = slices.DeleteFunc(others, func(h holder) bool { return h.id == id })
			}
			want := LeaseVerdict{Limited: true}
			if mine || int64(len(others)) < w.limit {
				want = LeaseVerdict{Remaining: max(w.limit-int64(len(others))-1, 0), Lapse: w.now + w.period}
				model = slices.DeleteFunc(model, func(h holder) bool { return h.id == id })
				model = append(model, holder{id, want.Lapse})
			}
			var v LeaseVerdict
			v, retry = s.lease(t, w.now, w.limit, w.period, id)
			await := v.Await
			if v.Await = 0; v != want || v.Limited != (await > 0) {
				t.Fatalf("%d: %s for %d of %d, awaits %d: %+v, want %+v", w.now, id, w.period, w.limit, await, v, want)
			}
			if !v.Limited {
				continue
			}
			limited++
			if v := s.decide(w.now+retry, w.limit, w.period, id); v.Limited {
				t.Fatalf("waited %d after %d, and %+v", retry, w.now, v)
			}
			if v := s.decide(w.now+retry-1, w.limit, w.period, id); !v.Limited {
				t.Fatalf("waited %d after %d, and was let in 1 us early", retry, w.now)
			}
		}
	})
	if !t.Failed() && min(limited, renewed, lapsed) < 2000 {
		t.Errorf("%d limited, %d renewed and %d lapsed prove nothing", limited, renewed, lapsed)
	}
}
