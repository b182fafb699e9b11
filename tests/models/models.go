// Package models makes random calls of GO.ALL, of GO.POLICY and of the commands of one limiter, and compares the replies with
// those of the exact models of package oracle. Its tests make the calls on a real server, in a row or at the same time.
package models

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

// model is what the keys hold.
type model struct {
	cells  [4]oracle.Throttle // of the key "p:k"
	window oracle.Window
	quota  oracle.Quota
	lease  oracle.Lease
}

func (m *model) clone() *model {
	c := &model{window: *m.window.Clone(), quota: *m.quota.Clone(), lease: *m.lease.Clone()}
	for i := range m.cells {
		c.cells[i] = *m.cells[i].Clone()
	}
	return c
}

// clause is one clause of a random call.
type clause struct {
	words           string
	limit, quantity int64
	lease           bool // the reply says whether the slot was held already
	// call makes a call for a quantity. 0 peeks.
	call func(m *model, now funnel.Micros, quantity int64, mayLock bool) funnel.Verdict
}

// timeWord writes n units of time, with or without the unit.
func timeWord(r *rand.Rand, n int64, unit funnel.Nanos) string {
	if r.IntN(2) == 0 {
		return fmt.Sprint(n)
	}
	return fmt.Sprint(n, map[funnel.Nanos]string{funnel.Second: "s", funnel.Millisecond: "ms"}[unit])
}

// A clause draws its own parameters. unit is a second or, with MS, a millisecond.

func randomThrottle(r *rand.Rand, cell int, unit funnel.Nanos, force bool) clause {
	p := funnel.ThrottleParams{Limit: 1 + r.Int64N(6), Quantity: randomQuantity(r), Force: force}
	count, period := 1+r.Int64N(9), 1+r.Int64N(9)
	p.Rate = funnel.Rate{Period: funnel.Nanos(period) * unit, Count: count}
	words := fmt.Sprintf("THROTTLE %d %d %s %d", p.Limit-1, count, timeWord(r, period, unit), p.Quantity)
	if !force && r.IntN(4) == 0 {
		lockout := 1 + r.Int64N(9)
		p.Lockout = funnel.Nanos(lockout) * unit
		words += " LOCKOUT " + timeWord(r, lockout, unit)
	}
	return throttleClause(words, cell, p)
}

func throttleClause(words string, cell int, p funnel.ThrottleParams) clause {
	return clause{words, p.Limit, p.Quantity, false, func(m *model, now funnel.Micros, quantity int64, mayLock bool) funnel.Verdict {
		p := p
		if p.Quantity = quantity; !mayLock {
			p.Lockout = 0
		}
		return m.cells[cell].Call(now.Nanos(), p)
	}}
}

// randomWindow always has a period of 3 s: a window's callers must agree on the period.
func randomWindow(r *rand.Rand, unit funnel.Nanos, force bool) clause {
	p := funnel.WindowParams{Limit: 1 + r.Int64N(6), Period: 3_000_000, Quantity: randomQuantity(r), Exact: r.IntN(3) == 0, Force: force}
	if r.IntN(4) == 0 {
		p.Limit += 120 // calls may then share entries
		p.Quantity *= 40
	}
	words := fmt.Sprintf("WINDOW %d %s %d", p.Limit, timeWord(r, int64(3*funnel.Second/unit), unit), p.Quantity)
	if p.Exact {
		words += " EXACT"
	}
	return windowClause(words, p)
}

func windowClause(words string, p funnel.WindowParams) clause {
	return clause{words, p.Limit, p.Quantity, false, func(m *model, now funnel.Micros, quantity int64, _ bool) funnel.Verdict {
		p := p
		p.Quantity = quantity
		return m.window.Call(now, p)
	}}
}

func randomQuota(r *rand.Rand, unit funnel.Nanos, force bool) clause {
	p := funnel.QuotaParams{Limit: 1 + r.Int64N(6), Quantity: randomQuantity(r), Align: r.IntN(2) == 0, Force: force}
	period := 1 + r.Int64N(9)
	p.Period = (funnel.Nanos(period) * unit).Micros()
	words := fmt.Sprintf("QUOTA %d %s %d", p.Limit, timeWord(r, period, unit), p.Quantity)
	switch offset := r.Int64N(19) - 9; {
	case p.Align && r.IntN(20) == 0:
		p.Months, p.Offset = int16(period), funnel.Micros(-offset*3600_000_000)
		words = fmt.Sprintf("QUOTA %d %dmo %d ALIGN %+03d:00", p.Limit, period, p.Quantity, offset)
	case p.Align:
		p.Offset = (funnel.Nanos(offset) * unit).Micros()
		words += " ALIGN " + timeWord(r, offset, unit)
	}
	return quotaClause(words, p)
}

func quotaClause(words string, p funnel.QuotaParams) clause {
	return clause{words, p.Limit, p.Quantity, false, func(m *model, now funnel.Micros, quantity int64, _ bool) funnel.Verdict {
		p := p
		p.Quantity = quantity
		return m.quota.Call(now, p)
	}}
}

func randomLease(r *rand.Rand, unit funnel.Nanos) clause {
	ttl, id := 1+r.Int64N(9), string(rune('a'+r.IntN(5)))
	p := funnel.LeaseParams{Limit: 1 + r.Int64N(4), TTL: (funnel.Nanos(ttl) * unit).Micros()}
	words := fmt.Sprintf("LEASE %d %s %s", p.Limit, timeWord(r, ttl, unit), id)
	return clause{words, p.Limit, 1, true, func(m *model, now funnel.Micros, quantity int64, _ bool) funnel.Verdict {
		if quantity == 0 {
			last, held := now, m.lease.Held(now)
			for _, lapse := range held {
				last = max(last, lapse)
			}
			return funnel.Verdict{Remaining: max(p.Limit-int64(len(held)), 0), ResetAfter: (last - now).Nanos()}
		}
		return m.lease.Call(now, id, p).Verdict
	}}
}

func one(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func randomQuantity(r *rand.Rand) int64 {
	return []int64{1, 1, 1, 1, 2, 2, 3, 0, -1, -2, 7}[r.IntN(11)]
}

// randomClauses draws the clauses of a call, and its words.
func randomClauses(r *rand.Rand, unit funnel.Nanos, force bool) (line string, clauses []clause) {
	line = "GO.ALL"
	keys := r.Perm(4)[:1+r.IntN(4)]
	if force { // no lease
		keys = r.Perm(3)[:1+r.IntN(3)]
	}
	for _, key := range keys {
		first := len(clauses)
		switch key {
		case 0:
			for cell := range 1 + r.IntN(4) {
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
		line += " " + []string{"p:k", "window", "quota", "lease"}[key]
		for _, clause := range clauses[first:] {
			line += " " + clause.words
		}
	}
	if unit == funnel.Millisecond {
		line += " MS"
	}
	if force {
		line += " FORCE"
	}
	return line, clauses
}

// randomPolicy draws a policy of THROTTLE clauses, mostly with parameters that interfere, and a call of it.
func randomPolicy(r *rand.Rand, shadow bool) (text, line string, clauses []clause) {
	quantity := r.Int64N(6)
	for cell := range 1 + r.IntN(4) {
		p := funnel.ThrottleParams{Limit: 1 + r.Int64N(5), Quantity: quantity, Lockout: funnel.Nanos(r.Int64N(2) * (1 + r.Int64N(6000)))}
		count, millis := 1+r.Int64N(3), 1+r.Int64N(4000)
		p.Rate = funnel.Rate{Period: funnel.Nanos(millis) * funnel.Millisecond, Count: count}
		text += fmt.Sprintf(", THROTTLE %d %d %dms", p.Limit-1, count, millis)
		if p.Lockout > 0 {
			text += fmt.Sprintf(" LOCKOUT %dms", p.Lockout)
		}
		p.Lockout *= funnel.Millisecond
		clauses = append(clauses, throttleClause("", cell, p))
	}
	text = strings.TrimPrefix(text, ",")
	if shadow {
		text = " SHADOW" + text
	}
	return "p" + text, fmt.Sprint("GO.POLICY p:k ", quantity, " MS"), clauses
}

// modelReply returns the reply of GO.ALL by its rules, and applies the call to the models. Each clause decides on a copy. A
// clause that denies is then applied, too: that changes only a cell whose rate is new, or begins a lockout. With SHADOW the
// front of the reply admits.
func modelReply(m *model, now funnel.Micros, clauses []clause, unit funnel.Nanos, shadow bool) (reply string, limited bool) {
	rows := make([][]int64, len(clauses))
	decider, longest, least := 0, int64(-1), int64(math.MaxInt64)
	never := slices.ContainsFunc(clauses, func(c clause) bool { return c.quantity > c.limit })
	for i, clause := range clauses { // no lockout begins if a clause can never admit
		v := clause.call(m.clone(), now, clause.quantity, !never)
		wait := up(v.RetryAfter, unit)
		if v.RetryAfter <= 0 {
			wait = -1
		}
		rows[i] = []int64{one(v.Limited), clause.limit, v.Remaining, wait, up(v.ResetAfter, unit)}
		if clause.lease {
			rows[i] = append(rows[i], one(v.Renewed))
		}
		switch length := uint64(wait); { // never, which is -1, is the longest
		case v.Limited && (!limited || length > uint64(longest)):
			decider, longest, limited = i, wait, true
		case !limited && v.Remaining < least:
			decider, least = i, v.Remaining
		}
	}
	for i, clause := range clauses {
		if limited && rows[i][0] == 0 {
			v := clause.call(m.clone(), now, 0, false)
			rows[i][2], rows[i][4] = v.Remaining, up(v.ResetAfter, unit)
		} else {
			clause.call(m, now, clause.quantity, !never)
		}
	}
	front := append(slices.Clone(rows[decider][:5]), int64(decider))
	if shadow {
		front[0], front[3] = 0, -1
	}
	b := strings.Trim(fmt.Sprint(front), "[]")
	for _, row := range rows {
		b += " " + fmt.Sprint(row)
	}
	return b, limited
}

// up returns a length of time in units, rounded up.
func up(t, unit funnel.Nanos) int64 { return int64((t + unit - 1) / unit) }

// locked reports whether a lockout is on.
func (m *model) locked(now funnel.Micros) bool {
	return slices.ContainsFunc(m.cells[:], func(o oracle.Throttle) bool { return o.Locked() > now.Nanos() })
}

// Call is a random call of GO.ALL, of GO.POLICY, or of the command of one limiter.
type Call struct {
	Policies      string // what gothrottle.policies must be; "": it does not matter
	Line          string
	clauses       []clause
	unit          funnel.Nanos
	force, shadow bool
	single        bool // the reply is that of the only clause
}

func randomCall(r *rand.Rand) (c Call) {
	c.unit = []funnel.Nanos{funnel.Second, funnel.Second, funnel.Millisecond}[r.IntN(3)]
	c.force, c.shadow = r.IntN(6) == 0, r.IntN(4) == 0
	c.Line, c.clauses = randomClauses(r, c.unit, c.force)
	switch policy := r.IntN(3) == 0; {
	case policy:
		c.unit, c.force = funnel.Millisecond, false
		c.Policies, c.Line, c.clauses = randomPolicy(r, c.shadow)
		return c
	case len(c.clauses) == 1 && r.IntN(2) == 0: // "GO.ALL key QUOTA words" is "GO.QUOTA key words"
		words := strings.Fields(c.Line)
		c.Line = strings.Join(append([]string{"GO." + words[2], words[1]}, words[3:]...), " ")
		c.single = true
	}
	c.shadow = false
	return c
}

// reply returns what the models reply, and applies the call to them.
func (c *Call) reply(m *model, now funnel.Micros) (reply string, limited bool) {
	reply, limited = modelReply(m, now, c.clauses, c.unit, c.shadow)
	if c.single {
		reply = strings.Trim(reply[strings.Index(reply, "["):], "[]")
	}
	return reply, limited
}

// randomStep draws how much later the next call comes. Months go by, too.
func randomStep(r *rand.Rand) funnel.Micros {
	if r.IntN(200) == 0 {
		return funnel.Micros(r.Int64N(40 * 86_400_000_000))
	}
	return []funnel.Micros{0, 0, 1, 137, 1000, 77_777, 500_000, 1_000_000, 2_345_678}[r.IntN(9)]
}

// Host is what makes random calls.
type Host interface {
	// Empty deletes all keys.
	Empty()

	// At makes calls at one instant, a step later than those before, and returns the instant.
	At(step funnel.Micros, batch []Call) (now funnel.Micros, replies []string)
}

// Compare makes random calls on a host, whose replies must be those of the models.
func Compare(t *testing.T, h Host, calls int, seed uint64) {
	tally := map[string]int64{}
	for ; calls > 0; seed++ {
		r, m := rand.New(rand.NewPCG(seed, 8)), &model{}
		h.Empty()
		for n := 0; n < 300 && calls > 0; {
			batch := make([]Call, 1+r.IntN(16))
			for i := range batch {
				batch[i] = randomCall(r)
			}
			now, replies := h.At(randomStep(r), batch)
			for i := range batch {
				want, limited := batch[i].reply(m, now)
				if replies[i] != want || t.Failed() {
					t.Fatalf("seed %d, call %d: %s\n%s, the models say\n%s", seed, n+i, batch[i].Line, replies[i], want)
				}
				tally["calls"]++
				tally["limited"] += one(limited)
				tally["forced"] += one(batch[i].force)
				tally["locked"] += one(limited && m.locked(now))
			}
			n, calls = n+len(batch), calls-len(batch)
		}
	}
	all, limited := tally["calls"], tally["limited"]
	if min(limited, all-limited) < all/6 || min(tally["forced"], tally["locked"]) < all/12 {
		t.Errorf("the calls test little: %v", tally)
	}
	t.Log(tally)
}
