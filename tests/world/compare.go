package world

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gothrottle/funnel"
	"gothrottle/tests/corpus"
)

// Host is what makes random calls.
type Host interface {
	// Empty deletes all keys.
	Empty()

	// At makes calls at one instant, a step later than those before, and returns the instant.
	At(step funnel.Micros, batch []Made) (now funnel.Micros, replies []string)
}

// Made is a call that is made.
type Made struct {
	Policies string // what gothrottle.policies must be; "": it does not matter
	Words    Words
}

// instant is calls that are made together.
type instant struct {
	step  funnel.Micros
	batch []Made
}

func (g *Generator) instant() (i instant) {
	for range 1 + g.IntN(16) {
		m := Made{Words: g.Call()}
		if name := m.Words[0]; name == "GO.POLICY" || name == "GO.POLICY_RO" {
			m.Policies = g.Policies()
		}
		i.batch = append(i.batch, m)
	}
	i.step = g.Step()
	return i
}

// comparison is a host and the models.
type comparison struct {
	Host
	tight bool // the calls are
	keys  Keys
	tally map[string]int
}

// make makes calls and returns the first difference, "" if there is none.
func (c *comparison) make(i instant) string {
	now, replies := c.At(i.step, i.batch)
	for n, m := range i.batch {
		switch call, reply, err := c.keys.Check(m, now, replies[n]); {
		case err != nil:
			return err.Error()
		case call != nil:
			c.count(call, reply, now)
		case c.tight:
			c.tally["unknown"]++
		}
	}
	return ""
}

// Check makes a call that a host has made, and compares the replies. If the models don't decide such calls, call is nil, and they
// forget what it may have changed: any word may be a key.
func (k Keys) Check(m Made, now funnel.Micros, got string) (call *Call, reply any, err error) {
	call, known := NewPolicies(m.Policies).Parse(m.Words)
	if !known || !k.Knows(call) {
		if name := upper(m.Words[0]); !refuses(got) && !strings.HasSuffix(name, "_RO") && name != "GO.INFO" {
			k.Forget(m.Words[1:]...)
		}
		return nil, nil, nil
	}
	reply, _ = call.Reply(k, now)
	if want := corpus.ReplyText(reply); got != want && (reply != ErrTooMuch || !refuses(got)) {
		err = fmt.Errorf("%q at %d, with the policies %q:\n%s, the models say\n%s", m.Words, now, m.Policies, got, want)
	}
	return call, reply, err
}

// refuses reports whether a reply is an error, which begins with a code in capitals.
func refuses(reply string) bool { return reply[0] >= 'A' && reply[0] <= 'Z' }

func (c *comparison) count(call *Call, reply any, now funnel.Micros) {
	c.tally["calls"]++
	if all, _ := reply.([]any); len(all) > 0 && all[0] == int64(1) {
		c.tally["limited"]++
		c.tally["locked"] += int(one(c.keys.at(TightKeys['t']).Locked(now)))
	}
	c.tally["forced"] += int(one(call.Force))
	c.tally["raised"] += int(one(call.Clauses[0].Raise))
	c.tally["shares"] += int(one(slices.ContainsFunc(call.Clauses, func(c Clause) bool { return c.Weight > 0 })))
	c.tally["short"] += int(one(call.short))
	for i, one := range call.Clauses {
		all, _ := reply.([]any)
		if admitted := len(all) > 6 && all[0] == int64(0); admitted && call.holds(i) {
			c.tally["held"]++
		} else if admitted && one.Frees {
			c.tally["settled"]++
		}
	}
	c.tally["wide"] += int(one(!c.tight))
}

// run empties the host and makes calls. It returns the first difference.
func (c *comparison) run(all []instant) string {
	c.Empty()
	c.keys = Keys{}
	for _, i := range all {
		if what := c.make(i); what != "" {
			return what
		}
	}
	return ""
}

// singles has the calls one by one.
func singles(all []instant) (each []instant) {
	for _, i := range all {
		for n := range i.batch {
			each = append(each, instant{i.step, i.batch[n : n+1]})
			i.step = 0
		}
	}
	return each
}

// Compare makes random calls on a host, whose replies must be those of the models. It makes a list of calls shorter that has a
// difference.
func Compare(t *testing.T, h Host, calls int, seed uint64) {
	c := &comparison{Host: h, tally: map[string]int{}}
	for first := 0; first < calls; seed++ {
		g := NewGenerator(seed, 8)
		c.tight = seed%5 != 4
		g.Tight, g.Shares, g.Holds = c.tight, seed%2 == 1, seed%3 > 0
		var all []instant
		for n := 0; n < 300; n += len(all[len(all)-1].batch) {
			all = append(all, g.instant())
			first += len(all[len(all)-1].batch)
		}
		what := c.run(all)
		if what == "" && !t.Failed() {
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second) // a server that no longer replies takes a minute for each try
		all = Thin(singles(all), func(all []instant) bool {
			if ctx.Err() != nil {
				return false
			}
			shorter := c.run(all)
			what = cmp.Or(shorter, what)
			return shorter != ""
		})
		cancel()
		t.Fatalf("seed %d: %s\nafter %v", seed, what, all)
	}
	if n, limited := c.tally["calls"], c.tally["limited"]; min(limited, n-limited) < n/6 || min(c.tally["forced"], c.tally["locked"]) < n/20 || min(c.tally["raised"], c.tally["short"], c.tally["held"], c.tally["settled"]) < n/200 || c.tally["unknown"] > n/100 || c.tally["wide"] < n/12 {
		t.Errorf("the calls test little: %v", c.tally)
	}
	t.Log(c.tally)
}
