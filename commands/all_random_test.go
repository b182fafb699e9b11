package commands_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gothrottle/funnel"
	"gothrottle/funnel/oracle"
	"gothrottle/tests/corpus"
)

// Random calls of GO.ALL and GO.POLICY, against the exact models of package oracle: no transcript has as many.

// allModel is what the keys hold.
type allModel struct {
	cells  [4]oracle.Throttle // of the key "p:k"
	window oracle.Window
	quota  oracle.Quota
	lease  oracle.Lease
}

func (m *allModel) clone() *allModel {
	c := &allModel{window: *m.window.Clone(), quota: *m.quota.Clone(), lease: *m.lease.Clone()}
	for i := range m.cells {
		c.cells[i] = *m.cells[i].Clone()
	}
	return c
}

// modelClause is one clause of a random call.
type modelClause struct {
	words           string
	limit, quantity int64
	lease           bool // the reply says whether the slot was held already
	// call makes a call for a quantity. 0 peeks.
	call func(m *allModel, now funnel.Micros, quantity int64, mayLock bool) funnel.Verdict
}

// timeWord writes n units of time, with or without the unit.
func timeWord(r *rand.Rand, n int64, unit funnel.Nanos) string {
	if r.IntN(2) == 0 {
		return fmt.Sprint(n)
	}
	return fmt.Sprint(n, map[funnel.Nanos]string{funnel.Second: "s", funnel.Millisecond: "ms"}[unit])
}

// A clause draws its own parameters. unit is a second or, with MS, a millisecond.

func randomThrottle(r *rand.Rand, cell int, unit funnel.Nanos, force bool) modelClause {
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

func throttleClause(words string, cell int, p funnel.ThrottleParams) modelClause {
	return modelClause{words, p.Limit, p.Quantity, false, func(m *allModel, now funnel.Micros, quantity int64, mayLock bool) funnel.Verdict {
		p := p
		if p.Quantity = quantity; !mayLock {
			p.Lockout = 0
		}
		return m.cells[cell].Call(now.Nanos(), p)
	}}
}

// randomWindow always has a period of 3 s: a window's callers must agree on the period.
func randomWindow(r *rand.Rand, unit funnel.Nanos, force bool) modelClause {
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

func windowClause(words string, p funnel.WindowParams) modelClause {
	return modelClause{words, p.Limit, p.Quantity, false, func(m *allModel, now funnel.Micros, quantity int64, _ bool) funnel.Verdict {
		p := p
		p.Quantity = quantity
		return m.window.Call(now, p)
	}}
}

func randomQuota(r *rand.Rand, unit funnel.Nanos, force bool) modelClause {
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

func quotaClause(words string, p funnel.QuotaParams) modelClause {
	return modelClause{words, p.Limit, p.Quantity, false, func(m *allModel, now funnel.Micros, quantity int64, _ bool) funnel.Verdict {
		p := p
		p.Quantity = quantity
		return m.quota.Call(now, p)
	}}
}

func randomLease(r *rand.Rand, unit funnel.Nanos) modelClause {
	ttl, id := 1+r.Int64N(9), string(rune('a'+r.IntN(5)))
	p := funnel.LeaseParams{Limit: 1 + r.Int64N(4), TTL: (funnel.Nanos(ttl) * unit).Micros()}
	words := fmt.Sprintf("LEASE %d %s %s", p.Limit, timeWord(r, ttl, unit), id)
	return modelClause{words, p.Limit, 1, true, func(m *allModel, now funnel.Micros, quantity int64, _ bool) funnel.Verdict {
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
func randomClauses(r *rand.Rand, unit funnel.Nanos, force bool) (line string, clauses []modelClause) {
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
func randomPolicy(r *rand.Rand, shadow bool) (text, line string, clauses []modelClause) {
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
func modelReply(m *allModel, now funnel.Micros, clauses []modelClause, unit funnel.Nanos, shadow bool) (reply string, limited bool) {
	rows := make([][]int64, len(clauses))
	decider, longest, least := 0, int64(-1), int64(math.MaxInt64)
	never := slices.ContainsFunc(clauses, func(c modelClause) bool { return c.quantity > c.limit })
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
func (m *allModel) locked(now funnel.Micros) bool {
	return slices.ContainsFunc(m.cells[:], func(o oracle.Throttle) bool { return o.Locked() > now.Nanos() })
}

// allCall is a random call of GO.ALL, of GO.POLICY, or of the command of one limiter.
type allCall struct {
	policies      string // what gothrottle.policies must be; "": it does not matter
	line          string
	clauses       []modelClause
	unit          funnel.Nanos
	force, shadow bool
	single        bool // the reply is that of the only clause
}

func randomAllCall(r *rand.Rand) (c allCall) {
	c.unit = []funnel.Nanos{funnel.Second, funnel.Second, funnel.Millisecond}[r.IntN(3)]
	c.force, c.shadow = r.IntN(6) == 0, r.IntN(4) == 0
	c.line, c.clauses = randomClauses(r, c.unit, c.force)
	switch policy := r.IntN(3) == 0; {
	case policy:
		c.unit, c.force = funnel.Millisecond, false
		c.policies, c.line, c.clauses = randomPolicy(r, c.shadow)
		return c
	case len(c.clauses) == 1 && r.IntN(2) == 0: // "GO.ALL key QUOTA words" is "GO.QUOTA key words"
		words := strings.Fields(c.line)
		c.line = strings.Join(append([]string{"GO." + words[2], words[1]}, words[3:]...), " ")
		c.single = true
	}
	c.shadow = false
	return c
}

// reply returns what the models reply, and applies the call to them.
func (c *allCall) reply(m *allModel, now funnel.Micros) (reply string, limited bool) {
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

// allHost is what makes random calls.
type allHost interface {
	// begin empties the host.
	begin()

	// at makes calls at one instant, a step later than those before, and returns the instant.
	at(step funnel.Micros, batch []allCall) (now funnel.Micros, replies []string)
}

// compareWithModels makes random calls on a host, whose replies must be those of the models.
func compareWithModels(t *testing.T, h allHost, calls int, seed uint64) {
	tally := map[string]int64{}
	for ; calls > 0; seed++ {
		r, m := rand.New(rand.NewPCG(seed, 8)), &allModel{}
		h.begin()
		for n := 0; n < 300 && calls > 0; {
			batch := make([]allCall, 1+r.IntN(16))
			for i := range batch {
				batch[i] = randomAllCall(r)
			}
			now, replies := h.at(randomStep(r), batch)
			for i := range batch {
				want, limited := batch[i].reply(m, now)
				if replies[i] != want || t.Failed() {
					t.Fatalf("seed %d, call %d: %s\n%s, the models say\n%s", seed, n+i, batch[i].line, replies[i], want)
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

// GO.ALL and GO.POLICY, and their read-only twins, decide and reply as the models do. A server that applies the effects of a
// call holds the same, with the same expiries.
func TestAll_random(t *testing.T) {
	compareWithModels(t, &followed{newTwins(t), corpus.NewMemory(), corpus.Epoch}, 6000, 0)
}

// followed is package memory and a replica of it.
type followed struct {
	*twins
	replica *corpus.Memory
	now     funnel.Micros
}

func (h *followed) begin() {
	h.Begin(int64(h.now))
	h.replica.Begin(int64(h.now))
}

func (h *followed) at(step funnel.Micros, batch []allCall) (now funnel.Micros, replies []string) {
	h.now += step
	h.Clock(int64(h.now))
	h.replica.Clock(int64(h.now))
	for _, c := range batch {
		if c.policies != "" && h.SetPolicies(c.policies) != nil {
			h.t.Fatal(c.policies)
		}
		reply, effects := h.Call(strings.Fields(c.line))
		replies = append(replies, corpus.ReplyText(reply))
		for _, effect := range effects {
			_, _ = h.replica.Do(0, effect...)
		}
		if a, b := h.Dump(), h.replica.Dump(); a != b {
			h.t.Errorf("%s: %q: it holds\n%s\nand its replica\n%s", c.line, effects, a, b)
		}
	}
	return h.now, replies
}
