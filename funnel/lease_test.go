package funnel_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gothrottle/funnel"
	"gothrottle/funnel/oracle"
)

// leaseRules are the specification of Lease as steps on one set of slots:
//
//	now limit/ttl id -> limited remaining retry_after reset_after renewed expires_after
//
// expires_after is when the caller's slot lapses, "-" if the caller has none. "now release id"
// gives a slot back.
var leaseRules = []struct{ rule, steps string }{
	{"A slot is held until it lapses, then another may have it", `
		0s         2/10s  a -> no   1  -    10s  no  10s
		4s         2/10s  b -> no   0  -    10s  no  10s
		5s         2/10s  c -> yes  0  5s   9s   no  -
		9.999999s  2/10s  c -> yes  0  1us  4.000001s  no  -
		10s        2/10s  c -> no   0  -    10s  no  10s
		10s        2/10s  a -> yes  0  4s   10s  no  -
	`},
	{"The same id again renews its slot and takes no other", `
		0s   2/10s  a -> no   1  -   10s  no   10s
		3s   2/10s  a -> no   1  -   10s  yes  10s
		4s   2/10s  b -> no   0  -   10s  no   10s
		5s   2/60s  a -> no   0  -   60s  yes  60s
		6s   2/1s   b -> no   0  -   59s  yes  1s
		6s   2/10s  c -> yes  0  1s  59s  no   -
		7s   2/10s  c -> no   0  -   58s  no   10s
		7s   2/10s  b -> yes  0  10s 58s  no   -
	`},
	{"A renewal with a shorter TTL brings the end of the last slot forward", `
		0s   2/60s  a -> no   1  -   60s  no   60s
		0s   2/10s  a -> no   1  -   10s  yes  10s
		1s   2/30s  b -> no   0  -   30s  no   30s
		2s   2/10s  b -> no   0  -   10s  yes  10s
		3s   2/1s   b -> no   0  -   7s   yes  1s
	`},
	{"A slot that has lapsed is renewed only if there is one", `
		0s   1/10s  a -> no   0  -   10s  no  10s
		10s  1/10s  b -> no   0  -   10s  no  10s
		10s  1/10s  a -> yes  0  10s 10s  no  -
		20s  1/10s  b -> no   0  -   10s  no  10s
	`},
	{"A lowered limit takes no slot away; who waits, waits for enough of them", `
		0s   4/10s  a -> no   3  -    10s  no   10s
		1s   4/10s  b -> no   2  -    10s  no   10s
		2s   4/10s  c -> no   1  -    10s  no   10s
		3s   4/10s  d -> no   0  -    10s  no   10s
		4s   4/10s  e -> yes  0  6s   9s   no   -
		4s   3/10s  e -> yes  0  7s   9s   no   -
		4s   1/10s  e -> yes  0  9s   9s   no   -
		4s   1/10s  a -> no   0  -    10s  yes  10s
		4s   1/10s  e -> yes  0  10s  10s  no   -
		4s   5/10s  e -> no   0  -    10s  no   10s
	`},
	{"A slot that is given back is free at once", `
		0s   1/10s  a -> no   0  -   10s  no  10s
		1s   1/10s  b -> yes  0  9s  9s   no  -
		1s   release a
		1s   1/10s  b -> no   0  -   10s  no  10s
	`},
	{"A holder that gave its slot back does not renew it", `
		0s   2/10s  a -> no   1  -   10s  no  10s
		1s   release a
		1s   2/10s  a -> no   1  -   10s  no  10s
	`},
	{"A clock set back lets a slot be held for longer", `
		100s  1/10s  a -> no   0  -    10s  no   10s
		40s   1/10s  b -> yes  0  70s  70s  no   -
		40s   1/10s  a -> no   0  -    10s  yes  10s
		50s   1/10s  b -> no   0  -    10s  no   10s
	`},
}

func TestLease_rules(t *testing.T) {
	for _, r := range leaseRules {
		t.Run(r.rule, func(t *testing.T) {
			s := newSlots()
			for line := range strings.Lines(r.steps) {
				if f := strings.Fields(line); len(f) > 0 && f[1] == "release" {
					s.release(t, originMicros+duration(t, f[0]).Micros(), f[2])
				} else if len(f) > 0 {
					s.step(t, f)
				}
			}
		})
	}
}

// step runs one line of leaseRules, cut into its words.
func (s *slots) step(t *testing.T, f []string) {
	t.Helper()
	now := originMicros + duration(t, f[0]).Micros()
	limit, ttl, _ := strings.Cut(f[1], "/")
	v := s.call(t, now, f[2], funnel.LeaseParams{Limit: number(t, limit), TTL: duration(t, ttl).Micros()})
	words := map[bool]string{false: "no", true: "yes"}
	got := []string{
		words[v.Limited], fmt.Sprint(v.Remaining), "-", time.Duration(v.ResetAfter).String(), words[v.Renewed], "-",
	}
	if v.RetryAfter != 0 {
		got[2] = time.Duration(v.RetryAfter).String()
	}
	if v.Lapse > 0 {
		got[5] = time.Duration((v.Lapse - now).Nanos()).String()
	}
	for _, i := range []int{6, 7, 9} {
		if f[i] != "-" {
			f[i] = time.Duration(duration(t, f[i])).String()
		}
	}
	if !slices.Equal(got, f[4:]) {
		t.Errorf("%s\n got %s", strings.Join(f, " "), strings.Join(got, " "))
	}
}

// slots are leases in memory, kept by the verdicts as a server's sorted set is. After every
// call they must agree with their oracle.
type slots struct {
	lapses map[string]funnel.Micros
	oracle *oracle.Lease
}

func newSlots() *slots { return &slots{map[string]funnel.Micros{}, new(oracle.Lease)} }

// decide asks for a slot without taking it. RetryAfter is set.
func (s *slots) decide(t testing.TB, now funnel.Micros, id string, p funnel.LeaseParams) funnel.LeaseVerdict {
	t.Helper()
	var state funnel.LeaseState
	var lapses []funnel.Micros
	for holder, lapse := range s.lapses {
		switch {
		case lapse <= now:
			continue
		case holder == id:
			state.Own = lapse
		default:
			state.Latest = max(state.Latest, lapse)
		}
		lapses = append(lapses, lapse)
	}
	state.Used = int64(len(lapses))
	v := funnel.Lease(now, state, p)
	if v.Limited {
		slices.Sort(lapses)
		if v.Await < 1 || v.Await > state.Used {
			t.Fatalf("awaits %d of %d slots", v.Await, state.Used)
		}
		v.RetryAfter = (lapses[v.Await-1] - now).Nanos()
	}
	return v
}

// call asks for a slot, compares the verdict with the oracle's and checks RetryAfter.
func (s *slots) call(t testing.TB, now funnel.Micros, id string, p funnel.LeaseParams) funnel.LeaseVerdict {
	t.Helper()
	v := s.decide(t, now, id, p)
	if want := s.oracle.Call(now, id, p); v != want {
		t.Fatalf("%d: %s calls %+v: %+v, want %+v", now, id, p, v, want)
	}
	inRange(t, p.Limit, 1, false, v.Verdict)
	if !v.Limited {
		for holder, lapse := range s.lapses {
			if lapse <= now {
				delete(s.lapses, holder)
			}
		}
		s.lapses[id] = v.Lapse
		return v
	}
	at := now + v.RetryAfter.Micros()
	if v := s.decide(t, at, id, p); v.Limited {
		t.Fatalf("waited %v after %d, and %+v", v.RetryAfter, now, v)
	}
	if v := s.decide(t, at-1, id, p); !v.Limited {
		t.Fatalf("waited %v after %d, and was let in 1 us early", v.RetryAfter, now)
	}
	return v
}

// release gives a slot back and reports whether it was held at now.
func (s *slots) release(t testing.TB, now funnel.Micros, id string) bool {
	t.Helper()
	held := s.lapses[id] > now
	delete(s.lapses, id)
	if got := s.oracle.Release(now, id); got != held {
		t.Fatalf("%d: the oracle says of %s: held: %v", now, id, got)
	}
	return held
}

// However ids come, renew, lapse and are given back, every reply is the oracle's and no new id
// goes over the limit.
func TestLease_agreesWithOracle(t *testing.T) {
	limited, renewed, lapsed := 0, 0, 0
	eachSchedule(t, 400, func(t *testing.T, w *schedule) {
		s := newSlots()
		var retry funnel.Micros
		for range 100 {
			if w.IntN(10) == 0 {
				w.newPeriod()
			}
			if w.IntN(5) == 0 {
				w.limit = w.Int64N(8) + 1
			}
			w.now += []funnel.Micros{
				0, 0, 1, retry, max(retry-1, 0), w.below(w.period), w.below(w.period)/8 + 1,
			}[w.IntN(7)]
			if w.IntN(30) == 0 {
				w.now -= logUniform(w.Rand, w.period)
			}
			if w.now > 1<<52 {
				break
			}
			id := string(rune('a' + w.IntN(12)))
			if w.IntN(8) == 0 {
				s.release(t, w.now, id)
				continue
			}
			before := len(s.lapses)
			v := s.call(t, w.now, id, funnel.LeaseParams{Limit: w.limit, TTL: w.period})
			retry = v.RetryAfter.Micros()
			switch {
			case v.Limited:
				limited++
			case v.Renewed:
				renewed++
			case int64(len(s.lapses)) > w.limit:
				t.Fatalf("%d of %d slots are held after %+v", len(s.lapses), w.limit, v)
			}
			if len(s.lapses) <= before && !v.Limited && !v.Renewed {
				lapsed++
			}
		}
	})
	if !t.Failed() && (min(limited, renewed) < 2000 || lapsed < 1000) {
		t.Errorf("%d limited, %d renewed and %d in place of lapsed ones prove nothing", limited, renewed, lapsed)
	}
}

// FuzzLease makes calls for slots: of each step's three bytes, the first says who calls and
// how, the second how much later and the third the limit or the TTL.
func FuzzLease(f *testing.F) {
	f.Add(int64(10e6), []byte{0, 0, 2, 1, 8, 2, 2, 9, 2, 0x42, 0, 0, 0x82, 0, 0, 0xc1, 0, 0})
	f.Add(int64(1000), []byte{0, 0, 1, 0, 1, 1, 0x40, 1, 9, 0x81, 3, 3, 0xc0, 7, 200, 3, 1, 1})
	f.Fuzz(func(t *testing.T, ttl int64, steps []byte) {
		s, now := newSlots(), originMicros
		p := funnel.LeaseParams{Limit: 1, TTL: within(funnel.Micros(ttl), 1000, maxPeriodMicros)}
		var retry funnel.Micros
		for steps = steps[:min(len(steps), 300)]; len(steps) >= 3; steps = steps[3:] {
			id, how, later := string('a'+rune(steps[0]&15)), steps[0]>>4, funnel.Micros(steps[1])
			d := []funnel.Micros{later * p.TTL / 64, later, retry, -later * p.TTL / 256}[how&3]
			if at := now + d; at >= 0 && at <= 1<<52 {
				now = at
			}
			switch how >> 2 {
			case 1:
				s.release(t, now, id)
				continue
			case 2:
				p.TTL = within(funnel.Micros(steps[2])*p.TTL/64, 1000, maxPeriodMicros)
			default:
				p.Limit = 1 + int64(steps[2]%16)
			}
			retry = s.call(t, now, id, p).RetryAfter.Micros()
		}
	})
}
