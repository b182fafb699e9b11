package main

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	random "gothrottle/tests/world"
)

// world is a gateway with random rules and settings, and what random callers, operators and faults do to it, step by step, in
// frozen time. Its methods in world_play_test.go run it, and world_model_test.go says what must come of it.
type world struct {
	tag    string // the domain's hash_tag
	shadow bool   // SHADOW_MODE
	script bool   // SCRIPT_MODE, at a server without the module
	rules  []rule
	steps  []step
}

// rule is one rule with a limit. Its descriptor's key, or the header that its http rule matches, has its number.
type rule struct {
	http            bool
	algorithm       string // of rate_limit, or concurrency
	units, burst    int64
	period, lockout time.Duration // hold, for concurrency
	late, shadow    bool
	excess, failure string
	share, reserve  int64 // of a descriptor below
	cost            bool
	estimate        int64
	hold            time.Duration // of the estimate; 0: it is charged
	ignores         bool          // reports after the hold
	also            *rule         // the second limit of its list
	header          bool          // that may bring another limit, up to 1000
}

// step is what happens next.
type step struct {
	gateway int    // which one is asked
	does    string // see play.do
	asks    []ask
	value   int           // the host of an http request
	wait    time.Duration // of "pass"
	fault   string        // of "fault"
	n       int64         // the cost of "settle", in percent of the estimate, or of the limit if there is none
}

// ask is one descriptor, or one http rule that a request counts for.
type ask struct {
	rule, value int
	below       bool // the descriptor with the share or the reserve
	hits        int64
	settle      bool      // with gothrottle.settle
	also        bool      // the second limit of a list
	ticket      string    // of a settled hold
	lapses      time.Time // when nobody knows of it any more
	limit       int64     // from a header; -1: it has another text
	at          int       // of the request's descriptors
}

var (
	seeds      = flag.Int("seeds", 0, "how many worlds TestWorld plays")
	algorithms = []string{"fixed_window", "sliding_window", "gcra"}
	unit       = map[time.Duration]string{2500 * time.Millisecond: "2.5s", 36 * time.Hour: "36h", 15 * time.Minute: "15m", time.Second: "second", time.Minute: "minute", week: "week", 30 * 24 * time.Hour: "month"}
)

const week = 7 * 24 * time.Hour

// oneOf returns one of some values.
func oneOf[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// chance is true once in n times.
func chance(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }

// newWorld returns the world of a seed.
func newWorld(seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 0))
	w := &world{tag: oneOf(r, "none", "none", "domain", "descriptor"), shadow: chance(r, 10), script: chance(r, 3)}
	for range 1 + r.IntN(3) {
		w.rules = append(w.rules, w.randomRule(r))
	}
	for range 10 + r.IntN(30) {
		w.steps = append(w.steps, w.randomStep(r))
	}
	return w
}

func (w *world) randomRule(r *rand.Rand) rule {
	l := rule{http: chance(r, 3), algorithm: oneOf(r, algorithms...), units: oneOf[int64](r, 1, 2, 5, 10, 60), shadow: chance(r, 5),
		period: oneOf(r, time.Second, time.Minute, time.Minute, time.Minute, 2500*time.Millisecond, 36*time.Hour, week, 30*24*time.Hour), failure: oneOf(r, "open", "closed", "local")}
	if l.algorithm == "gcra" && chance(r, 2) {
		l.burst = oneOf[int64](r, 1, 3, 20)
	}
	switch {
	case !l.http && chance(r, 6):
		return rule{algorithm: "concurrency", units: 1 + r.Int64N(3), period: oneOf(r, 10*time.Second, time.Minute), shadow: l.shadow, failure: l.failure}
	case chance(r, 8):
		l.units, l.burst = 0, 0
		return l
	case l.algorithm == "gcra" && w.tag == "none" && chance(r, 3):
		l.lockout = 20 * time.Second
		return l
	case l.http:
		if l.cost = chance(r, 2); l.cost && chance(r, 2) {
			l.estimate = 1 + r.Int64N(l.fits())
			l.hold, l.ignores = oneOf(r, 0, 20*time.Second, 10*time.Minute), chance(r, 3)
		}
		if l.header = l.burst == 0 && chance(r, 3); chance(r, 4) {
			l.also = l.second(r)
		}
		return l
	case w.tag == "none" && chance(r, 5):
		l.excess = oneOf(r, "charge", "refuse")
	case chance(r, 3):
		l.late = true
	}
	if chance(r, 5) {
		l.also = l.second(r)
	} else if w.tag != "none" && chance(r, 3) {
		l.share = oneOf[int64](r, 1, 4)
	} else if l.fits() > 1 && chance(r, 4) {
		l.reserve = 1 + r.Int64N(l.fits()-1)
	}
	return l
}

// second is another limit of the rule.
func (l *rule) second(r *rand.Rand) *rule {
	other := *l
	other.algorithm, other.burst, other.header = oneOf(r, algorithms...), 0, false
	other.units, other.period = l.fits()*(1+r.Int64N(2)), oneOf(r, 7*time.Second, 15*time.Minute)
	return &other
}

func (w *world) randomStep(r *rand.Rand) step {
	s := step{does: oneOf(r, "ask", "ask", "ask", "ask", "check", "check", "check", "settle", "pass", "pass", "fault", "heal", "change"), value: r.IntN(4) / 3, gateway: r.IntN(2)}
	switch s.does {
	case "ask", "check":
		for i, l := range w.rules {
			if l.http == (s.does == "check") && !chance(r, 4) {
				s.asks = append(s.asks, w.randomAsk(r, i, s.value))
			}
		}
		if len(s.asks) == 0 {
			return w.randomStep(r)
		}
	case "settle":
		s.n = oneOf[int64](r, 0, 0, 50, 100, 100, 300)
	case "pass":
		s.wait = oneOf(r, 3*time.Millisecond, 300*time.Millisecond, 7*time.Second, 20*time.Second, 65*time.Second) + time.Duration(r.IntN(999))*time.Microsecond
	case "fault":
		s.fault = oneOf(r, slices.Sorted(maps.Keys(faults))...)
	case "change":
		s.does = oneOf(r, "double", "spoil", "unshadow", "flood")
	}
	return s
}

func (w *world) randomAsk(r *rand.Rand, i, value int) ask {
	l := &w.rules[i]
	a := ask{rule: i, value: r.IntN(3) / 2, hits: oneOf[int64](r, 1, 1, 1, 1, 0, 0, 2, l.fits(), l.fits()+1, -1, -l.fits())}
	switch {
	case l.http:
		a.value, a.hits = value, 1
		if l.cost {
			a.hits = l.estimate
		}
		if l.header {
			a.limit = oneOf[int64](r, 0, 0, -1, l.units, l.units+1, 100)
		}
		return a
	case l.algorithm == "concurrency":
		a.hits = min(max(a.hits, -1), 1)
		return a
	case l.late && chance(r, 2):
		a.hits = 1 + r.Int64N(10*l.units)
	}
	a.below, a.settle = l.share+l.reserve > 0 && chance(r, 2), chance(r, 8)
	return a
}

// yaml is the rules as a file.
func (w *world) yaml() string {
	descriptors, http := "", ""
	for i, l := range w.rules {
		limit := "{" + l.yaml() + "}"
		if l.header {
			limit = fmt.Sprintf("{header: L%d, max: 1000, %s}", i, l.yaml())
		}
		if l.also != nil {
			limit = fmt.Sprintf("[{name: a, %s, {name: b, %s}]", limit[1:], l.also.yaml())
		}
		all := fmt.Sprintf("shadow_mode: %t, rate_limit: %s", l.shadow, limit)
		switch {
		case l.http && l.cost:
			all += fmt.Sprintf(", cost: {header: C%d, estimate: %d%s}", i, l.estimate, l.holds())
		case l.algorithm == "concurrency":
			all = "descriptors: [{key: id, " + all + "}]"
		case l.share+l.reserve > 0:
			all += ", descriptors: [{key: t" + given("share", l.share, "reserve", l.reserve) + "}]"
		}
		if l.http {
			http += fmt.Sprintf("  - {name: n%d, match: {headers: {R%d: '*'}}, by: [host], %s}\n", i, i, all)
		} else {
			descriptors += fmt.Sprintf("- {key: r%d, %s}\n", i, all)
		}
	}
	return fmt.Sprintf("domain: d\nhash_tag: %s\ndescriptors:\n%shttp:\n  trusted_proxies: [127.0.0.1]\n  rules:\n%s", w.tag, descriptors, http)
}

// holds says in a cost what becomes of the estimate.
func (l *rule) holds() string {
	switch {
	case l.estimate == 0:
		return ""
	case l.hold == 0:
		return ", unreported: charge"
	}
	return given("hold", l.hold%(10*time.Minute)) + map[bool]string{true: ", overdue: ignore"}[l.ignores] // 10 minutes if it isn't said
}

// yaml is the limit of a rule.
func (l *rule) yaml() string {
	limit := given("unit", cmp.Or(unit[l.period], l.period.String()), "requests_per_unit", l.units, "algorithm", l.algorithm, "burst", l.burst,
		"lockout", l.lockout, "late", l.late, "excess", l.excess)
	switch {
	case l.algorithm == "concurrency":
		limit = given("concurrency", l.units, "hold", l.period%time.Minute) // a minute if it isn't said
	case l.units == 0:
		limit += ", requests_per_unit: 0"
	}
	return fmt.Sprintf("on_failure: %s%s", l.failure, limit)
}

// given are keys with their values, but for those that are zero.
func given(pairs ...any) (text string) {
	for i := 0; i < len(pairs); i += 2 {
		if !reflect.ValueOf(pairs[i+1]).IsZero() {
			text += fmt.Sprintf(", %s: %v", pairs[i], pairs[i+1])
		}
	}
	return text
}

func (w *world) String() string {
	text := fmt.Sprintf("shadow mode %t, script %t\n%s", w.shadow, w.script, w.yaml())
	for i, s := range w.steps {
		text += fmt.Sprintf("%2d %s %+v\n", i, s.does, s)
	}
	return text
}

// shorter takes away steps, and what they ask, while the same property fails.
func (w *world) shorter(t *testing.T, of *failure) (*world, *failure) {
	less := *w
	fails := func() bool {
		_, wrong := less.run(t)
		if wrong == nil || wrong.property != of.property {
			return false
		}
		of = wrong
		return true
	}
	less.steps = slices.Clone(random.Thin(w.steps, func(steps []step) bool { less.steps = steps; return fails() }))
	for i, s := range less.steps {
		less.steps[i].asks = random.Thin(s.asks, func(asks []ask) bool { less.steps[i].asks = asks; return fails() })
	}
	return &less, of
}

// The properties hold in random worlds. WORLD_SEED is the first one's seed.
func TestWorld(t *testing.T) {
	calls, first := 0, uint64(setting("WORLD_SEED", 1))
	for seed := first; seed < first+uint64(max(*seeds, 80)) && !t.Failed(); seed++ {
		w := newWorld(seed)
		made, wrong := w.run(t)
		if calls += made; t.Failed() { // the bubble did
			t.Logf("seed %d:\n%s", seed, w)
		} else if wrong != nil {
			less, why := w.shorter(t, wrong)
			t.Errorf("seed %d, after %d requests: %+v\n%s\nshorter: %+v\n%s", seed, calls, wrong, w, why, less)
		}
	}
	t.Logf("%d requests", calls)
}
