package commands

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gothrottle/funnel"
	"gothrottle/funnel/oracle"
)

// allModel is what the keys of GO.ALL hold, by the exact models of package oracle.
type allModel struct {
	cells  [4]oracle.Throttle // of the key "cells"
	window oracle.Window
	quota  oracle.Quota
	lease  oracle.Lease
}

// modelClause is one clause of a random call.
type modelClause struct {
	words string
	limit int64
	// call decides on a copy of the model and returns the verdict and the copy's commit. A
	// lease has renewed, others have -1.
	call func(m *allModel, now funnel.Micros) (v funnel.Verdict, renewed int64, commit func())
	// peek tells what is left and when nothing will be in use.
	peek func(m *allModel, now funnel.Micros) (remaining int64, resetAfter funnel.Nanos)
}

// A clause draws its own parameters. unit is a second or, with MS, a millisecond.

func randomThrottle(r *rand.Rand, cell int, unit funnel.Nanos, force bool) modelClause {
	p := funnel.ThrottleParams{Limit: 1 + r.Int64N(6), Quantity: randomQuantity(r), Force: force}
	count, period := 1+r.Int64N(9), 1+r.Int64N(9)
	p.Rate = funnel.Rate{Period: funnel.Nanos(period) * unit, Count: count}
	return modelClause{
		words: fmt.Sprintf("THROTTLE %d %d %d %d", p.Limit-1, count, period, p.Quantity),
		limit: p.Limit,
		call: func(m *allModel, now funnel.Micros) (funnel.Verdict, int64, func()) {
			next := m.cells[cell].Clone()
			v := next.Call(now.Nanos(), p)
			return v, -1, func() { m.cells[cell] = *next }
		},
		peek: func(m *allModel, now funnel.Micros) (int64, funnel.Nanos) {
			peek := p
			peek.Quantity = 0
			v := m.cells[cell].Clone().Call(now.Nanos(), peek)
			return v.Remaining, v.ResetAfter
		},
	}
}

// randomWindow always has a period of 3 s: a window's callers must agree on the period.
func randomWindow(r *rand.Rand, unit funnel.Nanos, force bool) modelClause {
	p := funnel.WindowParams{Limit: 1 + r.Int64N(6), Period: 3_000_000, Quantity: randomQuantity(r), Exact: r.IntN(3) == 0, Force: force}
	if r.IntN(4) == 0 {
		p.Limit += 120 // calls may then share entries
		p.Quantity *= 40
	}
	words := fmt.Sprintf("WINDOW %d %d %d", p.Limit, 3*funnel.Second/unit, p.Quantity)
	if p.Exact {
		words += " EXACT"
	}
	return modelClause{
		words: words,
		limit: p.Limit,
		call: func(m *allModel, now funnel.Micros) (funnel.Verdict, int64, func()) {
			next := m.window.Clone()
			v := next.Call(now, p)
			return v, -1, func() { m.window = *next }
		},
		peek: func(m *allModel, now funnel.Micros) (int64, funnel.Nanos) {
			peek := p
			peek.Quantity = 0
			v := m.window.Clone().Call(now, peek)
			return v.Remaining, v.ResetAfter
		},
	}
}

func randomQuota(r *rand.Rand, unit funnel.Nanos, force bool) modelClause {
	p := funnel.QuotaParams{Limit: 1 + r.Int64N(6), Quantity: randomQuantity(r), Align: r.IntN(2) == 0, Force: force}
	period := 1 + r.Int64N(9)
	p.Period = (funnel.Nanos(period) * unit).Micros()
	words := fmt.Sprintf("QUOTA %d %d %d", p.Limit, period, p.Quantity)
	if p.Align {
		offset := r.Int64N(19) - 9
		p.Offset = (funnel.Nanos(offset) * unit).Micros()
		words += fmt.Sprintf(" ALIGN %d", offset)
	}
	return modelClause{
		words: words,
		limit: p.Limit,
		call: func(m *allModel, now funnel.Micros) (funnel.Verdict, int64, func()) {
			next := m.quota.Clone()
			v := next.Call(now, p)
			return v, -1, func() { m.quota = *next }
		},
		peek: func(m *allModel, now funnel.Micros) (int64, funnel.Nanos) {
			peek := p
			peek.Quantity = 0
			v := m.quota.Clone().Call(now, peek)
			return v.Remaining, v.ResetAfter
		},
	}
}

func randomLease(r *rand.Rand, unit funnel.Nanos) modelClause {
	ttl, id := 1+r.Int64N(9), string(rune('a'+r.IntN(5)))
	p := funnel.LeaseParams{Limit: 1 + r.Int64N(4), TTL: (funnel.Nanos(ttl) * unit).Micros()}
	return modelClause{
		words: fmt.Sprintf("LEASE %d %d %s", p.Limit, ttl, id),
		limit: p.Limit,
		call: func(m *allModel, now funnel.Micros) (funnel.Verdict, int64, func()) {
			next := m.lease.Clone()
			v := next.Call(now, id, p)
			return v.Verdict, boolInt(v.Renewed), func() { m.lease = *next }
		},
		peek: func(m *allModel, now funnel.Micros) (int64, funnel.Nanos) {
			last, held := now, m.lease.Held(now)
			for _, lapse := range held {
				last = max(last, lapse)
			}
			return max(p.Limit-int64(len(held)), 0), (last - now).Nanos()
		},
	}
}

func randomQuantity(r *rand.Rand) int64 {
	return []int64{1, 1, 1, 1, 2, 2, 3, 0, -1, -2, 7}[r.IntN(11)]
}

// modelReply returns the reply of GO.ALL by its rules, and applies the call to the models. A
// clause that denies is committed, too: that changes only a cell whose rate is new.
func modelReply(m *allModel, now funnel.Micros, clauses []modelClause, unit funnel.Nanos) (reply string, limited bool) {
	rows := make([][]int64, len(clauses))
	commits := make([]func(), len(clauses))
	decider, longest, least := 0, int64(-1), int64(math.MaxInt64)
	for i, clause := range clauses {
		v, renewed, commit := clause.call(m, now)
		wait := told(v.RetryAfter, unit)
		if v.RetryAfter <= 0 {
			wait = -1
		}
		rows[i] = []int64{boolInt(v.Limited), clause.limit, v.Remaining, wait, told(v.ResetAfter, unit)}
		if renewed >= 0 {
			rows[i] = append(rows[i], renewed)
		}
		commits[i] = commit
		switch length := uint64(wait); { // never, which is -1, is the longest
		case v.Limited && (!limited || length > uint64(longest)):
			decider, longest, limited = i, wait, true
		case !limited && v.Remaining < least:
			decider, least = i, v.Remaining
		}
	}
	for i, clause := range clauses {
		if limited && rows[i][0] == 0 {
			remaining, resetAfter := clause.peek(m, now)
			rows[i][2], rows[i][4] = remaining, told(resetAfter, unit)
		} else {
			commits[i]()
		}
	}
	b := strings.Trim(fmt.Sprint(append(slices.Clone(rows[decider][:5]), int64(decider))), "[]")
	for _, row := range rows {
		b += " " + fmt.Sprint(row)
	}
	return "[" + b + "]", limited
}

// lock begins a lockout of a cell that is in use, as a denied call of a policy does.
func (m *allModel) lock(s *store, r *rand.Rand) {
	cell, end := r.IntN(len(m.cells)), s.now.Nanos()+funnel.Nanos(1+r.Int64N(3e9))
	if m.cells[cell].Void(s.now.Nanos()) || m.cells[cell].Locked() > s.now.Nanos() {
		return
	}
	empty, rate := m.cells[cell].State()
	m.cells[cell] = *oracle.NewLockedThrottle(empty, rate, end)
	key := s.keys["cells"]
	key.fields[fieldName(fieldLocked, cell)] = fmt.Sprint(int64(end))
	key.expire = max(key.expire, int64(end/funnel.Millisecond)+1)
}

// locked reports whether a lockout stands.
func (m *allModel) locked(now funnel.Micros) bool {
	return slices.ContainsFunc(m.cells[:], func(o oracle.Throttle) bool { return o.Locked() > now.Nanos() })
}

// told returns a length of time in units, rounded up.
func told(t, unit funnel.Nanos) int64 { return int64((t + unit - 1) / unit) }

// GO.ALL decides and replies as the models do, in random calls with all kinds of clauses.
func TestAll_random(t *testing.T) {
	outcomes, forced, locked := map[bool]int{}, 0, 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 8))
		s, m := newStore(t), &allModel{}
		for i := range 300 {
			unit, line := funnel.Second, "GO.ALL"
			if r.IntN(3) == 0 {
				unit = funnel.Millisecond
			}
			if r.IntN(8) == 0 {
				m.lock(s, r)
			}
			var clauses []modelClause
			keys, force := r.Perm(4)[:1+r.IntN(4)], r.IntN(6) == 0
			if force { // no lease
				keys = r.Perm(3)[:1+r.IntN(3)]
			}
			for _, key := range keys {
				first := len(clauses)
				switch key {
				case 0:
					for cell := range 1 + r.IntN(len(m.cells)) {
						clauses = append(clauses, randomThrottle(r, cell, unit, force))
					}
				case 1:
					clauses = append(clauses, randomWindow(r, unit, force))
				case 2:
					clauses = append(clauses, randomQuota(r, unit, force))
				case 3:
					clauses = append(clauses, randomLease(r, unit))
				}
				if first > 0 {
					line += " KEY"
				}
				line += " " + []string{"cells", "window", "quota", "lease"}[key]
				for _, clause := range clauses[first:] {
					line += " " + clause.words
				}
			}
			if unit == funnel.Millisecond {
				line += " MS"
			}
			if force {
				line += " FORCE"
				forced++
			}
			before := s.dump()
			would := s.told("GO.ALL_RO" + line[len("GO.ALL"):])
			if after := s.dump(); after != before {
				t.Fatalf("seed %d, call %d: GO.ALL_RO changed\n%s\nto\n%s", seed, i, before, after)
			}
			want, limited := modelReply(m, s.now, clauses, unit)
			if got := s.told(line); got != want || would != want {
				t.Fatalf("seed %d, call %d: %s\n%s, the models say\n%s, GO.ALL_RO said\n%s", seed, i, line, got, want, would)
			}
			outcomes[limited]++
			if limited && m.locked(s.now) {
				locked++
			}
			s.now += []funnel.Micros{0, 0, 1, 137, 1000, 77_777, 500_000, 1_000_000, 2_345_678}[r.IntN(9)]
		}
	}
	if min(outcomes[true], outcomes[false]) < 2000 || min(forced, locked) < 1000 {
		t.Errorf("the calls test little: %v, %d with FORCE, %d limited while a cell was locked", outcomes, forced, locked)
	}
}
