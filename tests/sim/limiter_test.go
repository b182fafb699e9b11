package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	exact "gothrottle/tests/world"
	"gothrottle/throttle"
)

type kind int

const (
	rateKind kind = iota
	windowKind
	quotaKind
	leaseKind
	kinds
)

// rest is what follows the limiter's name in every key: all keys have one hash tag.
const rest = "{s}"

// limiter is one key with its parameters, and what was admitted of it. Times are in milliseconds.
type limiter struct {
	at       int
	key      string
	kind     kind
	limit    int64
	count    int64
	period   int64
	words    []string // of its command, up to the quantity
	options  []string
	mixed    bool // callers use two rates, FORCE and RESERVE: only the oracle knows the right reply
	budgeted bool // the callers are clients with budgets
	value    func(*throttle.Client) throttle.Allower
	charged  meter // what masters granted
	spent    meter // what callers were admitted, of a limiter with budgets
	holders  map[string]*holder
}

// holder is somebody who was granted a slot.
type holder struct {
	until int64 // in µs of true time
	lost  bool  // the grant or its renewal is not replicated
}

// newLimiter makes a limiter at random. Budgets need one of the kinds that users merge, and enough units.
func newLimiter(r *rand.Rand, at int, c *config, budgeted bool) *limiter {
	l := &limiter{at: at, kind: kind(r.IntN(int(kinds))), limit: 1 + r.Int64N(30), count: 1 + r.Int64N(200), period: 1000 * (1 + r.Int64N(3))}
	if budgeted {
		l.kind, l.limit, l.budgeted = kind(r.IntN(3)), 5+int64(users)*c.units+r.Int64N(20), true
		if r.IntN(2) == 0 {
			l.kind = rateKind
		}
	}
	name := fmt.Sprintf("l%d", at)
	l.key = name + ":" + rest
	millis := time.Duration(l.period) * time.Millisecond
	switch l.kind {
	case rateKind:
		l.words = []string{"GO.THROTTLE", l.key, number(l.limit - 1), number(l.count), number(l.period)}
		l.value = func(c *throttle.Client) throttle.Allower {
			return c.Rate(name, throttle.Per(l.count, millis).Burst(l.limit))
		}
		if l.mixed = !budgeted && r.IntN(4) == 0; !budgeted && !l.mixed && r.IntN(4) == 0 {
			l.options = []string{"LOCKOUT", number(1 + r.Int64N(500))}
		}
	case windowKind:
		l.words = []string{"GO.WINDOW", l.key, number(l.limit), number(l.period)}
		l.value = func(c *throttle.Client) throttle.Allower { return c.Window(name, l.limit, millis) }
		if r.IntN(4) == 0 {
			l.options = []string{"EXACT"}
			l.value = func(c *throttle.Client) throttle.Allower { return c.ExactWindow(name, l.limit, millis) }
		}
	case quotaKind:
		l.words = []string{"GO.QUOTA", l.key, number(l.limit), number(l.period)}
		l.value = func(c *throttle.Client) throttle.Allower { return c.Quota(name, l.limit, millis) }
		if r.IntN(2) == 0 {
			l.options = []string{"ALIGN", "0"}
			l.value = func(c *throttle.Client) throttle.Allower { return c.AlignedQuota(name, l.limit, millis, nil) }
		}
	case leaseKind:
		l.limit = min(l.limit, 8)
		l.words = []string{"GO.LEASE", l.key, number(l.limit), number(l.period)}
		l.holders = map[string]*holder{}
	}
	l.charged, l.spent = newMeter(l, c.skew), newMeter(l, c.skew)
	return l
}

// call makes the words of a call of one unit or more, or of a refund.
func (l *limiter) call(r *rand.Rand) []string {
	if l.kind == leaseKind {
		id := "h" + strconv.Itoa(r.IntN(holders))
		if r.IntN(4) == 0 {
			return []string{"GO.RELEASE", l.key, id}
		}
		words := append(slices.Clone(l.words), id, "MS")
		if r.IntN(4) == 0 {
			words[3] = number(1 + r.Int64N(2*l.period))
		}
		return words
	}
	n, options := int64(1), l.options
	lockout := len(options) > 0 && options[0] == "LOCKOUT"
	switch r.IntN(12) {
	case 0:
		if n = -1 - r.Int64N(l.limit); lockout {
			options = nil
		}
	case 1:
		n = 1 + r.Int64N(l.limit+1)
	case 2:
		if n = 1 + r.Int64N(l.limit); !lockout {
			options = append([]string{"UPTO"}, options...)
		}
	}
	words := slices.Clone(l.words)
	if l.mixed && r.IntN(5) == 0 {
		words[3] = number(1 + r.Int64N(100))
	}
	switch {
	case l.mixed && r.IntN(20) == 0:
		options = []string{"FORCE"}
	case l.mixed && r.IntN(10) == 0:
		options = []string{"RESERVE", strconv.Itoa(r.IntN(1000))}
	}
	return slices.Concat(words, []string{number(n)}, options, []string{"MS"})
}

// callOf reads the words of a call. Each call is one that the models can decide.
func callOf(words []string) *call {
	c, known := exact.Policies{}.Parse(words)
	if !known {
		panic(fmt.Sprintf("the models do not know %q", words))
	}
	return &call{c, &c.Clauses[0]}
}

// call is a call, and its only clause.
type call struct {
	*exact.Call
	*exact.Clause
}
