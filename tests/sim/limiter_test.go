package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"gothrottle/funnel"
	"gothrottle/funnel/oracle"
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

// ask is what the words of a call mean. Times are in milliseconds.
type ask struct {
	release                 bool
	id                      string // of a slot
	limit, count, period, n int64
	options                 map[string]int64 // with the numbers after them
}

func (a *ask) has(option string) bool {
	_, found := a.options[option]
	return found
}

// parse reads the words of a call for a limiter of this kind. Each call ends with MS.
func parse(k kind, words []string) ask {
	if words[0] == "GO.RELEASE" {
		return ask{release: true, id: words[2]}
	}
	a, numbers, option := ask{options: map[string]int64{}}, []int64{}, ""
	for _, word := range words[2:] {
		switch n, err := strconv.ParseInt(word, 10, 64); {
		case err != nil:
			option, a.options[word] = word, 0
		case option == "":
			numbers = append(numbers, n)
		default:
			a.options[option] = n
		}
	}
	if a.limit = numbers[0]; k == rateKind {
		a.limit, a.count, numbers = a.limit+1, numbers[1], numbers[1:]
	}
	if a.period = numbers[1]; k == leaseKind {
		a.id = words[4]
	} else {
		a.n = append(numbers, 1)[2] // a call without a quantity takes one unit
	}
	return a
}

func micros(millis int64) funnel.Micros { return funnel.Micros(millis * 1000) }

// model is the oracle of one limiter, which uses the model of its kind.
type model struct {
	rate   oracle.Throttle
	window oracle.Window
	quota  oracle.Quota
	lease  oracle.Lease
	period funnel.Micros
}

func newModel(l *limiter) model { return model{period: micros(l.period)} }

func (m model) clone() model {
	m.rate, m.window, m.lease = *m.rate.Clone(), *m.window.Clone(), *m.lease.Clone()
	return m
}

// void reports whether nothing is in use at a time.
func (m *model) void(now funnel.Micros) bool {
	return m.rate.Void(now.Nanos()) && m.window.Void(now, m.period) && m.quota.Void(now) && m.lease.Void(now)
}

var errTooMuch = errors.New("too much would be in use")

// decide returns the reply that a call must get, and how many units it was granted.
func (m *model) decide(k kind, now funnel.Micros, a *ask) (reply []int64, granted int64, err error) {
	var v funnel.Verdict
	period, upTo, force := micros(a.period), a.has("UPTO"), a.has("FORCE")
	switch {
	case a.release:
		return []int64{btoi(m.lease.Release(now, a.id))}, 0, nil
	case k == rateKind:
		v = m.rate.Call(now.Nanos(), funnel.ThrottleParams{Limit: a.limit, Rate: funnel.Rate{Count: a.count, Period: period.Nanos()},
			Quantity: a.n, UpTo: upTo, Force: force, Reserve: a.has("RESERVE"), MaxWait: micros(a.options["RESERVE"]).Nanos(),
			Lockout: micros(a.options["LOCKOUT"]).Nanos()})
	case k == windowKind:
		v = m.window.Call(now, funnel.WindowParams{Limit: a.limit, Period: period, Quantity: a.n, UpTo: upTo, Force: force,
			Exact: a.has("EXACT")})
	case k == quotaKind:
		v = m.quota.Call(now, funnel.QuotaParams{Limit: a.limit, Period: period, Quantity: a.n, UpTo: upTo, Force: force,
			Align: a.has("ALIGN"), Offset: micros(a.options["ALIGN"])})
	default:
		v = m.lease.Call(now, a.id, funnel.LeaseParams{Limit: a.limit, TTL: period}).Verdict
		m.forgetLapsed(now)
	}
	if v.TooMuch {
		return nil, 0, errTooMuch
	}
	retry := int64(-1)
	if v.RetryAfter > 0 {
		retry = millis(v.RetryAfter)
	}
	reply = []int64{btoi(v.Limited), a.limit, v.Remaining, retry, millis(v.ResetAfter)}
	switch {
	case k == leaseKind:
		reply = append(reply, btoi(v.Renewed))
	case a.has("RESERVE") && v.Limited:
		reply = append(reply, -1)
	case a.has("RESERVE"):
		reply = append(reply, millis(v.Wait))
	case upTo:
		reply = append(reply, v.Granted)
	}
	return reply, v.Granted, nil
}

// forgetLapsed drops the slots that have lapsed, as every call of the server does. That makes a difference if the next
// master's clock is behind. Other limiters have no slots.
func (m *model) forgetLapsed(now funnel.Micros) {
	held := m.lease.Held(now)
	for i := range holders {
		if id := "h" + strconv.Itoa(i); held[id] == 0 {
			m.lease.Release(now, id)
		}
	}
}

func millis(t funnel.Nanos) int64 { return int64((t + funnel.Millisecond - 1) / funnel.Millisecond) }
