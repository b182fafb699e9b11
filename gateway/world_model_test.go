package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"gothrottle/commands/memory"
	"gothrottle/funnel"
)

// fits is how many units fit together.
func (l *rule) fits() int64 {
	if l.burst > 0 {
		return l.burst
	}
	return l.units
}

// drains is how long a full limit takes to become empty, or a slot to lapse.
func (l *rule) drains() time.Duration {
	if l.algorithm == "gcra" {
		return l.period * time.Duration(l.fits()) / time.Duration(max(l.units, 1))
	}
	return l.period
}

// refuses says whether the limit of an ask admits no hits, with or without a server.
func (d *asked) refuses() bool {
	return d.units == 0 && d.hits > 0 && !d.reports() && !(d.charges && d.failure == "local")
}

// keeps is how long units of this time surely count: those of a rate drain from the first moment.
func (l *rule) keeps(at time.Time) time.Duration {
	switch l.algorithm {
	case "gcra":
		return 1
	case "fixed_window":
		return l.period - time.Duration(at.UnixNano())%l.period
	}
	return l.period
}

// returns is how much of an estimate of this time can't have left the limit.
func (l *rule) returns(at time.Time) int64 {
	age := time.Since(at)
	switch drained := (int64(age)*l.units + int64(l.period) - 1) / int64(l.period); {
	case l.algorithm == "gcra":
		return max(l.estimate-drained, 0)
	case age >= l.keeps(at):
		return 0
	}
	return l.estimate
}

// empty is after how many seconds units of a rate have drained, rounded up.
func (l *rule) empty(units int64) int64 {
	return seconds(l.period * time.Duration(units) / time.Duration(max(l.units, 1)))
}

// seconds are rounded up.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// asked is an ask with its limit, what is in use before it, and what must come of it.
type asked struct {
	ask
	rule                  // of a descriptor below: its own
	around        *rule   // of a share: the limit that it is of
	charges       bool    // refused hits count
	trial         bool    // the rule, or all are in shadow
	key, outer    string  // on the server, and of around
	name, group   string  // in metrics; and of those that take all or nothing
	server, local state   // what is in use there
	want          verdict // if it is known
	none          bool    // it takes nothing, because another one of its group is refused
	holds         bool    // an estimate
}

// of finds the limit of an ask.
func (w *world) of(a ask) *asked {
	l := w.rules[a.rule]
	shadow := l.shadow
	if a.also {
		l = *l.also
		l.shadow = shadow
	} else if a.limit > 0 {
		l.units = a.limit
	}
	d := &asked{ask: a, rule: l, name: fmt.Sprint("d.r", a.rule)}
	d.charges = !a.below && (l.excess == "charge" || l.excess == "" && l.algorithm == "fixed_window" && w.tag == "none" && !l.late && !l.cost)
	d.trial = (l.shadow || w.shadow) && (l.algorithm != "fixed_window" || !d.charges)
	entries := []string{fmt.Sprintf("|r%d=%d", a.rule, a.value)}
	switch {
	case l.http:
		d.name, entries = fmt.Sprint("d.http.n", a.rule), []string{"|http=", fmt.Sprintf("|n%d=|host=%d", a.rule, a.value)}
	case l.algorithm == "concurrency":
		d.name, entries = d.name+".id", []string{fmt.Sprintf("|r%d=0", a.rule), "|id="}
	case a.below:
		d.name += ".t"
	}
	if w.rules[a.rule].also != nil {
		d.name += map[bool]string{false: ".a", true: ".b"}[a.also]
	}
	d.key = w.key(&l, entries)
	if a.below && l.share > 0 {
		d.rule = rule{algorithm: "sliding_window", units: l.units + l.fits(), period: max(l.drains().Truncate(time.Millisecond), time.Millisecond),
			late: l.late, share: l.share, shadow: l.shadow, failure: l.failure}
		d.around, d.outer, d.key = &l, d.key, w.key(&d.rule, append(entries, "|t=x"))
	} else if a.below && l.algorithm == "gcra" {
		d.burst = l.fits() - l.reserve
	} else if a.below {
		d.units -= l.reserve
	}
	d.holds = l.hold > 0 && a.hits > 0 && !a.settle && !d.trial && l.units > 0
	if d.group = d.name; w.tag != "none" && !l.shadow && d.around == nil && !d.holds && a.hits >= 0 && !d.reports() && (a.hits > 0 || l.algorithm != "concurrency") {
		d.group = map[bool]string{true: entries[0], false: w.tag}[w.tag == "descriptor"]
	}
	return d
}

// each returns the asks of all limits.
func (w *world) each(asks []ask) (all []ask) {
	for i, a := range asks {
		a.at = i
		if all = append(all, a); w.rules[a.rule].also != nil {
			a.also = true
			all = append(all, a)
		}
	}
	return all
}

// title names the limit in headers.
func (d *asked) title() string {
	if name := d.name[strings.LastIndex(d.name, ".")+1:]; d.ask.also || name == "a" {
		return name
	}
	return fmt.Sprint("n", d.ask.rule)
}

// key is the name of a limit's key.
func (w *world) key(l *rule, entries []string) string {
	key := "d" + strings.Join(entries, "")
	switch w.tag {
	case "domain":
		key = "{d}" + key[1:]
	case "descriptor":
		key = "{d" + entries[0] + "}" + strings.Join(entries[1:], "")
	}
	return l.algorithm + "." + l.period.String() + ":" + key
}

// reports says whether the hits have happened already: they are charged past the limit if need be.
func (d *asked) reports() bool { return d.settle || d.late && d.hits > 0 }

// closes says whether on_failure: closed refuses it.
func (d *asked) closes() bool {
	return d.failure == "closed" && (d.hits > 0 && !d.reports() || d.hits == 0 && (d.late || d.cost) && !d.settle)
}

// state is what is in use at a key.
type state struct {
	used   int64
	around int64 // at the limit around a share
	locked bool
	held   int64 // for costs
	here   bool  // in this process, which holds nothing
	holds  bool  // this holder has a slot, which lapses after this time
	lapses time.Duration
}

// look reads what is in use from a server's keys.
func (d *asked) look(m *memory.Server) (s state) {
	if d.around != nil {
		s.around = (&asked{rule: *d.around, key: d.outer}).look(m).used
	}
	if d.hold > 0 {
		holders := named(d.info(m, d.held()))
		s.held, _ = holders["held"].(int64)
		id, _, _ := strings.Cut(d.ticket, ".")
		_, s.holds = named(holders["holders"])[id]
	}
	const most = 1_000_000_000_000
	words := []string{"GO.INFO", d.key}
	if d.algorithm == "sliding_window" {
		words = []string{"GO.WINDOW_RO", d.key, strconv.Itoa(most), fmt.Sprint(d.period.Milliseconds(), "ms"), "0"}
	}
	reply, err := m.Do(funnel.Micros(time.Now().UnixMicro()), words...)
	if err != nil {
		panic(err)
	}
	has := named(reply)
	switch cells, _ := has["cells"].([]any); {
	case d.algorithm == "sliding_window":
		s.used = most - reply.([]any)[2].(int64)
	case d.algorithm == "fixed_window":
		s.used, _ = has["used"].(int64)
	case d.algorithm == "concurrency":
		s.used, _ = has["held"].(int64)
		ms, holds := named(has["holders"])[d.holder()].(int64)
		s.holds, s.lapses = holds, time.Duration(ms)*time.Millisecond
	case cells != nil:
		s.used, s.locked = named(cells[0])["in_use"].(int64), named(cells[0])["locked_for_ms"].(int64) > 0
	}
	return s
}

// held is the key of what is held.
func (d *asked) held() string {
	if strings.Contains(d.key, "{") {
		return d.key + ":held"
	}
	return "{" + d.key + "}:held"
}

func (d *asked) info(m *memory.Server, key string) any {
	reply, err := m.Do(funnel.Micros(time.Now().UnixMicro()), "GO.INFO", key)
	if err != nil {
		panic(err)
	}
	return reply
}

func (a *ask) holder() string { return fmt.Sprint("h", a.value) }

// named is a reply's values by their names.
func named(reply any) map[string]any {
	all := map[string]any{}
	pairs, _ := reply.(memory.Map)
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i].(string)] = pairs[i+1]
	}
	return all
}

// verdict is what must come of an ask: whether it is over its limit, what is left then, what it charges, and what it charges to
// the limit around a share.
type verdict struct {
	over                 bool
	left, charge, around int64
	held                 int64  // more is held
	lost                 bool   // a report charges nothing, because its hold has lapsed and nothing is left
	report               string // with a ticket: what becomes of it
}

// decide decides an ask alone.
func (d *asked) decide(s state) (v verdict) {
	most := d.room(s)
	switch {
	case d.holds && !s.here:
		if v.over = d.hits > most-s.held; !v.over {
			v.held = d.hits
		}
		v.left = max(most-s.held-v.held, 0)
		return v
	case d.ticket != "":
		return d.settles(s)
	}
	switch v.charge = d.hits; {
	case d.algorithm == "concurrency" && s.holds == (d.hits >= 0): // its slot is held, or given back, already
		v.charge = 0
	case d.hits < 0:
		v.charge = max(d.hits, -s.used)
	case d.reports():
	case d.hits == 0:
		v.over = most < 0 || most == 0 && !d.charges
	default:
		v.over = d.hits > most
		s.locked = s.locked || d.lockout > 0 && v.over && d.hits <= d.fits()
	}
	switch {
	case v.over && !d.charges:
		v.charge = 0
	case (v.over || d.reports()) && d.trial && d.hits > 0: // what is charged past the limit stops there
		v.charge = min(d.hits, max(most, 0))
	}
	if v.around = v.charge; d.hits < 0 {
		v.around = max(d.hits, -s.around)
	}
	s.used, s.around = s.used+v.charge, s.around+v.around
	v.left = max(d.room(s), 0)
	return v
}

// settles is what must come of a report with a ticket.
func (d *asked) settles(s state) (v verdict) {
	overdue := !s.holds && !time.Now().Before(d.lapses)
	v.report = "overdue"
	switch {
	case s.holds:
		v.charge, v.held, v.report = d.hits, -d.estimate, "settled"
	case !overdue:
		v.report = "already"
	case d.ignores:
		v.left = d.units
		return v
	case d.room(s)-s.held < 1:
		v.lost = true
	default:
		v.charge = d.hits
	}
	s.used += v.charge
	v.left = max(d.room(s), 0)
	return v
}

// room is how much fits, below 0 if more is in use than the limit.
func (d *asked) room(s state) int64 {
	left := d.fits() - s.used
	if d.around != nil {
		outer := d.around.fits() - s.around
		left = min(left, outer, d.share*max(outer, 0)-s.used)
	}
	if s.locked {
		left = min(left, 0)
	}
	return left
}

// allOrNone takes away what a request charges to limits that take together with one that refuses.
func allOrNone(all []*asked, state func(d *asked) state) {
	refused := map[string]bool{}
	for _, d := range all {
		refused[d.group] = refused[d.group] || d.want.over
		for _, other := range all { // a hold is decided first
			refused[d.group] = refused[d.group] || other.holds && other.want.over && d.group != d.name
		}
	}
	for _, d := range all {
		if d.none = refused[d.group]; d.none && d.want.charge > 0 && !d.want.over {
			d.want.charge, d.want.left = 0, max(d.room(state(d)), 0)
		}
	}
}

// tightest returns the limit of a descriptor that its status is about.
func tightest(all []*asked, at int) (of *asked) {
	for _, d := range all {
		over := d.want.over && !d.shadow
		switch {
		case d.at != at:
		case of == nil, over && !of.want.over, over == (of.want.over && !of.shadow) && d.want.left < of.want.left:
			of = d
		}
	}
	return of
}

// sums returns whether a request is refused, and which ask the headers are about: the last one over its limit, else the one
// with the least left.
func (w *world) sums(all []*asked) (refused bool, tightest int) {
	for i, d := range all {
		switch over := d.want.over && !d.shadow; {
		case over:
			refused, tightest = true, i
		case !refused && d.want.left < all[tightest].want.left:
			tightest = i
		}
	}
	return refused && !w.shadow, tightest
}
