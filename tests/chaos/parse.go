package main

import (
	"math/big"
	"regexp"
	"strings"

	"gothrottle/funnel"
)

// call is what the words of a command say.
type call struct {
	name    string // in capitals, without _RO
	ro      bool
	nested  bool // the reply has one array for each clause
	shadow  bool // of a policy
	unit    funnel.Nanos
	sixth   string // UPTO or RESERVE: what the sixth integer of the reply is
	clauses []clause
	ids     []string // of GO.RELEASE
	key     string   // of GO.RELEASE and GO.INFO
}

// clause is one limit of a call.
type clause struct {
	kind     byte // t, w, q or l
	key      string
	cell     int // of kind t: the position among the clauses of its key
	throttle funnel.ThrottleParams
	window   funnel.WindowParams
	quota    funnel.QuotaParams
	lease    funnel.LeaseParams
	id       string // of kind l
}

// Bounds of the arguments, as the reference states them.
const (
	maxLimit   = 1_000_000_000_000
	maxSeconds = 3_153_600_000
	maxUsed    = 1_000_000_000_000_000
)

var integerForm = regexp.MustCompile(`^[+-]?[0-9]+$`)

// integer reads a decimal number from low to high.
func integer(word string, low, high int64) (n int64, ok bool) {
	if !integerForm.MatchString(word) || strings.HasSuffix(word, "\n") {
		return 0, false
	}
	b, ok := new(big.Int).SetString(word, 10)
	if !ok || !b.IsInt64() {
		return 0, false
	}
	n = b.Int64()
	return n, n >= low && n <= high
}

// leastWords is the least number of words of each command, with its name. A server refuses a
// shorter call before the module sees it, except those of CL.THROTTLE.
var leastWords = map[string]int{"GO.THROTTLE": 5, "CL.THROTTLE": 5, "GO.WINDOW": 4, "GO.QUOTA": 4, "GO.LEASE": 5,
	"GO.RELEASE": 3, "GO.ALL": 5, "GO.POLICY": 2, "GO.INFO": 2, "GO.TOP": 1}

// tooFew reports whether the server itself refuses a call because of its number of words.
func tooFew(words []string) bool {
	name := strings.TrimSuffix(upper(words[0]), "_RO")
	return name != "CL.THROTTLE" && len(words) < leastWords[name] || name == "GO.INFO" && len(words) != 2
}

// reader reads the words of a call from the front.
type reader struct {
	words []string
	bad   bool // a word was missing or wrong
}

func (r *reader) next() string {
	if len(r.words) == 0 {
		r.bad = true
		return ""
	}
	word := r.words[0]
	r.words = r.words[1:]
	return word
}

// upper turns ASCII letters into capitals, and leaves all other bytes as they are.
func upper(word string) string {
	b := []byte(word)
	for i := range b {
		if b[i] >= 'a' && b[i] <= 'z' {
			b[i] -= 'a' - 'A'
		}
	}
	return string(b)
}

func (r *reader) number(low, high int64) int64 {
	n, ok := integer(r.next(), low, high)
	r.bad = r.bad || !ok
	return n
}

// at reports whether the next word is this keyword.
func (r *reader) at(keyword string) bool {
	return len(r.words) > 0 && len(r.words[0]) == len(keyword) && strings.EqualFold(r.words[0], keyword)
}

// take reads a keyword if it comes next.
func (r *reader) take(keyword string) bool {
	if !r.at(keyword) {
		return false
	}
	r.words = r.words[1:]
	return true
}

// quantity reads a quantity if one comes next.
func (r *reader) quantity(least int64) int64 {
	if len(r.words) == 0 {
		return 1
	}
	word := r.words[0]
	if word != "" && !strings.ContainsAny(word[:1], "+-0123456789") {
		return 1
	}
	return r.number(least, maxLimit+1)
}

// parse reads the words of a call. ok is false if the reply must be an error that begins with ERR,
// whatever the keys hold.
func parse(words []string, rules policies) (c call, ok bool) {
	name := upper(words[0])
	c.name = strings.TrimSuffix(name, "_RO")
	c.ro, c.unit = c.name != name || c.name == "GO.INFO" || c.name == "GO.TOP", funnel.Second
	if len(words) < leastWords[c.name] {
		return c, false
	}
	r := &reader{words: words[1:]}
	switch c.name {
	case "GO.ALL":
		c.parseAll(r)
	case "GO.POLICY":
		c.parsePolicy(r, rules)
	case "GO.RELEASE":
		c.parseRelease(r)
	case "GO.INFO":
		c.key = r.next()
		r.bad = r.bad || len(r.words) > 0
	case "GO.TOP":
		c.parseTop(r)
	default:
		c.parseOne(r)
	}
	return c, !r.bad
}

func (c *call) parseRelease(r *reader) {
	c.key, c.ids = r.next(), r.words
	r.bad = r.bad || len(c.ids) > 1024
	for _, id := range c.ids {
		r.bad = r.bad || len(id) > 512
	}
}

func (c *call) parseTop(r *reader) {
	if len(r.words) > 0 && !r.at("RESET") {
		r.number(1, 10_000)
	}
	r.take("RESET")
	r.bad = r.bad || len(r.words) > 0
}

// span is a length of time in the unit of the call, which is known only after all words are read.
type span struct {
	to       *funnel.Nanos
	toMicros *funnel.Micros
	n        int64
	low      int64 // the least number of units
	negative bool  // as far below zero as above
}

// spans sets lengths of time in units of unit.
func (r *reader) spans(unit funnel.Nanos, all []span) {
	most := int64(maxSeconds * funnel.Second / unit)
	for _, s := range all {
		low := s.low
		if s.negative {
			low = -most
		}
		if s.n < low || s.n > most {
			r.bad = true
			return
		}
		if s.to != nil {
			*s.to = funnel.Nanos(s.n) * unit
		} else {
			*s.toMicros = funnel.Micros(s.n) * funnel.Micros(unit/funnel.Microsecond)
		}
	}
}

// words64 reads a number of any size that 64 bits hold. Numbers that are larger are wrong everywhere.
func (r *reader) words64() int64 { return r.number(-1<<63, 1<<63-1) }

// parseOne reads GO.THROTTLE, CL.THROTTLE, GO.WINDOW, GO.QUOTA and GO.LEASE.
func (c *call) parseOne(r *reader) {
	c.clauses = make([]clause, 1)
	cl := &c.clauses[0]
	cl.key = r.next()
	cl.kind = map[string]byte{"GO.THROTTLE": 't', "CL.THROTTLE": 't', "GO.WINDOW": 'w', "GO.QUOTA": 'q', "GO.LEASE": 'l'}[c.name]
	times := cl.parse(r)
	if c.name == "CL.THROTTLE" {
		cl.throttle.Quantity = 1
		if len(r.words) > 0 {
			cl.throttle.Quantity = r.number(-maxLimit-1, maxLimit+1)
		}
		r.bad = r.bad || len(r.words) > 0
	} else {
		if cl.kind != 'l' {
			cl.setQuantity(r.quantity(-maxLimit - 1))
		}
		times = append(times, c.options(r, cl)...)
	}
	r.spans(c.unit, times)
	r.bad = r.bad || !cl.fits() || c.name == "CL.THROTTLE" && cl.throttle.Rate.Count > int64(cl.throttle.Rate.Period)
}

// options reads the keywords after the numbers of a call.
func (c *call) options(r *reader, cl *clause) (times []span) {
	seen, mode := map[string]bool{}, false
	for len(r.words) > 0 && !r.bad {
		word := upper(r.next())
		if r.bad = r.bad || seen[word]; r.bad {
			return nil
		}
		seen[word] = true
		exclusive := true
		switch {
		case word == "MS":
			c.unit, exclusive = funnel.Millisecond, false
		case word == "UPTO" && cl.kind != 'l':
			cl.throttle.UpTo, cl.window.UpTo, cl.quota.UpTo = true, true, true
			c.sixth = word
		case word == "FORCE" && cl.kind != 'l':
			cl.force()
		case word == "RESERVE" && cl.kind == 't':
			cl.throttle.Reserve = true
			c.sixth = word
			times = append(times, span{to: &cl.throttle.MaxWait, n: r.words64()})
		case word == "LOCKOUT" && cl.kind == 't':
			times = append(times, span{to: &cl.throttle.Lockout, n: r.words64(), low: 1})
		case word == "EXACT" && cl.kind == 'w':
			cl.window.Exact, exclusive = true, false
		case word == "ALIGN" && cl.kind == 'q':
			times, exclusive = append(times, cl.align(r)), false
		default:
			r.bad = true
		}
		r.bad = r.bad || exclusive && mode
		mode = mode || exclusive
	}
	return times
}

func (cl *clause) force() { cl.throttle.Force, cl.window.Force, cl.quota.Force = true, true, true }

func (cl *clause) align(r *reader) span {
	cl.quota.Align = true
	return span{toMicros: &cl.quota.Offset, n: r.words64(), negative: true}
}

// parse reads the numbers of a clause up to and with the period, or the id.
func (cl *clause) parse(r *reader) []span {
	switch cl.kind {
	case 't':
		cl.throttle.Limit = r.number(0, maxLimit-1) + 1
		cl.throttle.Rate.Count = r.number(1, maxLimit)
		return []span{{to: &cl.throttle.Rate.Period, n: r.words64(), low: 1}}
	case 'w':
		cl.window.Limit = r.number(1, maxLimit)
		return []span{{toMicros: &cl.window.Period, n: r.words64(), low: 1}}
	case 'q':
		cl.quota.Limit = r.number(1, maxLimit)
		return []span{{toMicros: &cl.quota.Period, n: r.words64(), low: 1}}
	}
	cl.lease.Limit = r.number(1, maxLimit)
	ttl := span{toMicros: &cl.lease.TTL, n: r.words64(), low: 1}
	cl.id = r.next()
	r.bad = r.bad || len(cl.id) > 512
	return []span{ttl}
}

func (cl *clause) setQuantity(n int64) {
	cl.throttle.Quantity, cl.window.Quantity, cl.quota.Quantity = n, n, n
}

func (cl *clause) quantity() int64 { return cl.throttle.Quantity }

func (cl *clause) limit() int64 {
	return map[byte]int64{'t': cl.throttle.Limit, 'w': cl.window.Limit, 'q': cl.quota.Limit, 'l': cl.lease.Limit}[cl.kind]
}

// fits reports whether a full cell drains within 100 years.
func (cl *clause) fits() bool {
	if cl.kind != 't' || cl.throttle.Rate.Count == 0 {
		return true
	}
	t := new(big.Int).Mul(big.NewInt(cl.throttle.Limit), big.NewInt(int64(cl.throttle.Rate.Period)))
	most := new(big.Int).Mul(big.NewInt(int64(maxSeconds*funnel.Second)), big.NewInt(cl.throttle.Rate.Count))
	return t.Cmp(most) <= 0
}

var clauseKinds = map[string]byte{"THROTTLE": 't', "WINDOW": 'w', "QUOTA": 'q', "LEASE": 'l'}

// parseAll reads GO.ALL.
func (c *call) parseAll(r *reader) {
	c.nested = true
	var times []span
	seen := map[string]bool{}
	c.clauses = make([]clause, 0, 33) // spans point into it
	for more := true; more && !r.bad; more = r.take("KEY") {
		key := r.next()
		r.bad = r.bad || seen[key] || len(seen) == 32
		seen[key] = true
		cells := 0
		for first := byte(0); !r.bad; cells++ {
			kind := byte(0)
			if len(r.words) > 0 {
				kind = clauseKinds[upper(r.words[0])]
			}
			if kind == 0 {
				r.bad = r.bad || cells == 0
				break
			}
			r.next()
			if cells == 0 {
				first = kind
			}
			if r.bad = len(c.clauses) == 32 || cells > 0 && (first != 't' || kind != 't'); r.bad {
				return
			}
			c.clauses = append(c.clauses, clause{kind: kind, key: key, cell: cells})
			times = append(times, c.clauses[len(c.clauses)-1].parseWithin(r)...)
		}
	}
	times = append(times, c.allOptions(r)...)
	if r.bad {
		return
	}
	r.spans(c.unit, times)
	for i := range c.clauses {
		r.bad = r.bad || !c.clauses[i].fits()
	}
}

// parseWithin reads a clause of GO.ALL after its keyword.
func (cl *clause) parseWithin(r *reader) (times []span) {
	times = cl.parse(r)
	if cl.kind != 'l' {
		cl.setQuantity(r.quantity(-maxLimit - 1))
	}
	if cl.kind == 'w' && r.take("EXACT") {
		cl.window.Exact = true
		r.bad = r.bad || r.at("EXACT")
	}
	if cl.kind == 'q' && r.take("ALIGN") {
		times = append(times, cl.align(r))
		r.bad = r.bad || r.at("ALIGN")
	}
	return times
}

// allOptions reads the options of GO.ALL.
func (c *call) allOptions(r *reader) []span {
	force := false
	for len(r.words) > 0 && !r.bad {
		switch {
		case r.take("MS"):
			r.bad = c.unit == funnel.Millisecond
			c.unit = funnel.Millisecond
		case r.take("FORCE"):
			r.bad = force
			force = true
		default:
			r.bad = true
		}
	}
	for i := range c.clauses {
		if cl := &c.clauses[i]; force {
			cl.force()
			r.bad = r.bad || cl.kind == 'l'
		}
	}
	return nil
}
