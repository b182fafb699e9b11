package world

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gothrottle/funnel"
)

// Words are the words of one command.
type Words []string

// Call is what the words of a call mean.
type Call struct {
	Unit            funnel.Nanos // of the times of the reply
	Force           bool         // of all clauses
	Shadow          bool         // of a policy that denies nothing
	Clauses         []Clause
	Release         []string // ids of a lease, at the key of the only clause
	single, peeking bool     // the reply is that of the only clause; the call changes nothing
	short           bool     // once decided: a share denied it
}

// Clause is one limiter of a call.
type Clause struct {
	Kind                        byte // t, w, q or l
	Key                         string
	Cell                        int // of a rate
	Limit, Count, Quantity      int64
	Period                      funnel.Nanos
	Months                      int16
	ID                          string // who asks for slots: for Quantity, -1 to renew only
	Frees                       bool   // those slots are given back; then Quantity is -1
	UpTo, Exact, Align, Reserve bool
	Raise                       bool
	Offset, MaxWait, Lockout    funnel.Nanos
	Weight                      int64 // of a share; 0: none
}

// Policies are the values of gothrottle.policies, by their names.
type Policies map[string]*Call

// NewPolicies reads the value of gothrottle.policies. Policies that it does not understand are absent.
func NewPolicies(text string) Policies {
	all := Policies{}
	for one := range strings.SplitSeq(text, ";") {
		name, rest, _ := strings.Cut(strings.TrimSpace(one), " ")
		rest, shadow := strings.CutPrefix(rest, "SHADOW ")
		r := reader{words: strings.Fields(strings.ReplaceAll(rest, ",", "")), unit: funnel.Second}
		if r.key(name); !r.wrong && len(r.words) == 0 {
			all[name] = &Call{Shadow: shadow, Clauses: r.clauses}
		}
	}
	return all
}

// Parse returns what the words of a call mean. known is false for calls that it does not understand: those with wrong words,
// with rare forms of numbers, and of commands that no model decides. It shares no code with package commands.
func (p Policies) Parse(w []string) (c *Call, known bool) {
	name, peeking := strings.CutSuffix(upper(w[0]), "_RO")
	c = &Call{Unit: funnel.Second, peeking: peeking}
	r := &reader{words: slices.Clone(w[1:])}
	if name != "GO.RELEASE" {
		r.ending(c)
	}
	r.unit = c.Unit
	switch kind := name[strings.Index(name, ".")+1:]; {
	case name == "GO.RELEASE" && len(w) > 2:
		r.clauses = []Clause{{Kind: 'l', Key: r.next()}}
		c.Release, r.words = r.words, nil
		r.wrong = slices.ContainsFunc(c.Release, tooLong)
	case name == "GO.POLICY":
		r.policy(p, c)
	case name == "GO.ALL":
		r.key(r.next())
		for len(r.words) > 0 && !r.wrong {
			r.expect("KEY")
			r.key(r.next())
		}
	case kinds[kind] != 0 && name != "GO.RELEASE":
		c.single, r.single = true, true
		r.clause(kinds[kind], r.next(), 0)
		r.wrong = r.wrong || name[0] == 'C' && !r.redisCell(w)
	default:
		r.wrong = true
	}
	c.Clauses = r.clauses
	lease := func(c Clause) bool { return c.Kind == 'l' && !c.Frees }
	mode := func(c Clause) bool { return c.UpTo || c.Reserve || c.Raise || c.Lockout > 0 }
	r.wrong = r.wrong || c.Force && (slices.ContainsFunc(c.Clauses, lease) || slices.ContainsFunc(c.Clauses, mode))
	return c, !r.wrong && len(r.words) == 0
}

// kinds has the letters of the kinds of clauses.
var kinds = map[string]byte{"THROTTLE": 't', "WINDOW": 'w', "QUOTA": 'q', "LEASE": 'l', "RELEASE": 'r'}

// upper returns a word with capitals for small letters of ASCII.
func upper(word string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		return c
	}, word)
}

// reader reads words from the front.
type reader struct {
	words   []string
	unit    funnel.Nanos // of times without one
	clauses []Clause     // that were read
	single  bool         // they are those of the command of one limiter
	wrong   bool         // it does not understand the words
}

func (r *reader) next() (word string) {
	if r.wrong = r.wrong || len(r.words) == 0; !r.wrong {
		word, r.words = r.words[0], r.words[1:]
	}
	return word
}

func (r *reader) expect(word string) { r.wrong = upper(r.next()) != word || r.wrong }

// ending reads the options of the whole call, which are last.
func (r *reader) ending(c *Call) {
	for n := len(r.words) - 1; n >= 1; n-- {
		switch upper(r.words[n]) {
		case "MS":
			r.wrong = r.wrong || c.Unit == funnel.Millisecond
			c.Unit = funnel.Millisecond
		case "FORCE":
			r.wrong = r.wrong || c.Force
			c.Force = true
		default:
			return
		}
		r.words = r.words[:n]
	}
}

// most is the most that any number may be.
const most = 1_000_000_000_000

func (r *reader) number(least int64) int64 {
	word := r.next()
	n, err := strconv.ParseInt(word, 10, 64)
	r.wrong = r.wrong || err != nil || strconv.FormatInt(n, 10) != word || n < least || n > most
	return n
}

var (
	spans = regexp.MustCompile(`^(0|-?[1-9][0-9]{0,11})(ms|s|m|h|d|)$`)
	units = map[string]funnel.Nanos{"ms": funnel.Millisecond, "s": funnel.Second, "m": 60 * funnel.Second, "h": 3600 * funnel.Second, "d": 86400 * funnel.Second}
)

// span reads a length of time.
func (r *reader) span(least funnel.Nanos) funnel.Nanos {
	m := spans.FindStringSubmatch(r.next())
	if m == nil {
		r.wrong = true
		return 0
	}
	n, _ := strconv.ParseInt(m[1], 10, 64)
	unit := r.unit
	if m[2] != "" {
		unit = units[m[2]]
	}
	r.wrong = r.wrong || n > int64(funnel.MaxPeriod/unit) || n < -int64(funnel.MaxPeriod/unit) || funnel.Nanos(n)*unit < least
	return funnel.Nanos(n) * unit
}

// policy reads a call of a policy.
func (r *reader) policy(p Policies, c *Call) {
	key, quantity := r.next(), int64(1)
	name, _, _ := strings.Cut(key, ":")
	if len(r.words) > 0 {
		quantity = r.number(0)
	}
	named := p[name]
	if r.wrong = r.wrong || named == nil || c.Force; r.wrong {
		return
	}
	c.Shadow, r.clauses = named.Shadow, slices.Clone(named.Clauses)
	for i := range r.clauses {
		r.clauses[i].Key, r.clauses[i].Quantity = key, quantity
	}
}

// key reads the clauses of a key: up to four of a rate, or one of another kind.
func (r *reader) key(key string) {
	if slices.ContainsFunc(r.clauses, func(c Clause) bool { return c.Key == key }) {
		r.wrong = true
	}
	first := byte(0)
	for cell := 0; cell == 0 || len(r.words) > 0 && kinds[upper(r.words[0])] != 0; cell++ {
		kind := kinds[upper(r.next())]
		if r.wrong = r.wrong || kind == 0 || cell > 3 || cell > 0 && (kind != 't' || first != 't'); r.wrong {
			return
		}
		first = kind
		r.clause(kind, key, cell)
	}
}

// clause reads what follows the name of a clause or a command.
func (r *reader) clause(kind byte, key string, cell int) {
	c := Clause{Kind: kind, Key: key, Cell: cell, Quantity: 1}
	if kind == 'r' {
		c = Clause{Kind: 'l', Key: key, Quantity: -1, Frees: true, ID: r.next()}
		r.wrong, r.clauses = r.wrong || tooLong(c.ID), append(r.clauses, c)
		return
	}
	if kind == 't' {
		c.Limit, c.Count = r.number(0)+1, r.number(1)
		r.wrong = r.wrong || c.Limit > most
	} else {
		c.Limit = r.number(1)
	}
	months := ""
	if len(r.words) > 0 {
		months, _ = strings.CutSuffix(r.words[0], "mo")
	}
	if n, _ := strconv.Atoi(months); kind == 'q' && n > 0 && n < 10 && r.words[0] == months+"mo" {
		c.Months, r.words = int16(n), r.words[1:]
	} else {
		c.Period = r.span(funnel.Millisecond)
	}
	if kind == 't' && float64(c.Limit)*float64(c.Period)/float64(max(c.Count, 1)) > float64(funnel.MaxPeriod) {
		r.wrong = true // it would take too long to drain
	}
	if kind == 'l' {
		c.ID = r.next()
		r.wrong = r.wrong || tooLong(c.ID)
	}
	if len(r.words) > 0 && strings.ContainsAny(r.words[0][:min(1, len(r.words[0]))], "-0123456789") {
		c.Quantity = r.number(-most)
		if kind == 'l' && c.Quantity <= 0 {
			r.wrong, c.Quantity = r.wrong || c.Quantity < 0, -1
		}
	}
	for len(r.words) > 0 && r.option(&c) {
	}
	modes := one(c.UpTo) + one(c.Reserve) + one(c.Lockout > 0) + one(c.Raise)
	r.wrong = r.wrong || modes > 1 || c.Raise && c.Quantity < 0 || c.Weight > 0 && !r.tenant(&c) || c.Months > 0 && (!c.Align || c.Offset <= -28*units["d"] || c.Offset >= 31*units["d"])
	r.clauses = append(r.clauses, c)
}

// tenant reports whether a clause can have a share of the clause before it.
func (r *reader) tenant(c *Clause) bool {
	last := len(r.clauses) - 1
	links := 0
	for i := last; i >= 0 && r.clauses[i].Weight > 0; i-- {
		links++
	}
	if last < 0 || c.Kind == 't' || links >= 4 || r.clauses[last].Frees || c.Kind != 'l' && r.clauses[last].Kind == 'l' {
		return false
	}
	for i := last; i >= 0 && c.Kind == 'l' && r.clauses[i].Kind != 'l'; i-- {
		if r.clauses[i].Quantity != 0 || c.Weight != 1 {
			return false
		}
	}
	return true
}

func tooLong(id string) bool { return len(id) > 512 }

// option reads an option of a clause, or of the command of one limiter.
func (r *reader) option(c *Clause) bool {
	option := upper(r.words[0])
	set := func(flag *bool) { r.wrong, *flag = r.wrong || *flag, true }
	rest := reader{words: r.words[1:], unit: r.unit}
	switch {
	case option == "UPTO" && r.single && c.Kind != 'l':
		set(&c.UpTo)
	case option == "RAISE" && r.single && c.Kind != 'l':
		set(&c.Raise)
	case option == "SHARE" && !r.single:
		r.wrong = r.wrong || c.Weight > 0
		c.Weight = rest.number(1)
		r.wrong = r.wrong || c.Weight > 1000
	case option == "EXACT" && c.Kind == 'w':
		set(&c.Exact)
	case option == "ALIGN" && c.Kind == 'q':
		set(&c.Align)
		c.Offset = rest.offset()
	case option == "RESERVE" && r.single && c.Kind == 't':
		set(&c.Reserve)
		c.MaxWait = rest.span(0)
	case option == "LOCKOUT" && c.Kind == 't':
		r.wrong = r.wrong || c.Lockout > 0
		c.Lockout = rest.span(funnel.Millisecond)
	default:
		return false
	}
	r.words, r.wrong = rest.words, r.wrong || rest.wrong
	return true
}

var utcOffset = regexp.MustCompile(`^[+-][01][0-9]:[0-5][0-9]$`)

// offset reads the word after ALIGN: by how much later than in UTC windows begin, or a UTC offset.
func (r *reader) offset() funnel.Nanos {
	if len(r.words) > 0 && utcOffset.MatchString(r.words[0]) {
		zone, _ := time.ParseDuration(strings.Replace(r.next(), ":", "h", 1) + "m")
		return -funnel.Nanos(zone)
	}
	return r.span(-funnel.MaxPeriod)
}

// redisCell reports whether redis-cell's command takes the words: integers, and no more than a unit in a ns.
func (r *reader) redisCell(w Words) bool {
	unit := func(word string) bool { return strings.Trim(word, "-0123456789") != "" }
	return r.unit == funnel.Second && !slices.ContainsFunc(w[2:], unit) && r.clauses[0].Count <= int64(r.clauses[0].Period)
}
