package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"gothrottle/commands"
)

// generator makes the steps of a schedule from a seed.
type generator struct {
	*rand.Rand
	wall int64  // µs since the Unix epoch; where the steps have moved the wall clock to
	high int64  // the latest wall
	tag  string // a hash tag of all keys, with braces
	only string // the fault that each step is; "": steps of all kinds
}

// begin is the wall clock at the start of every run, in µs since the Unix epoch: in 2030.
const begin = 1_900_000_000_000_000

const (
	millisecond = 1000
	second      = 1_000_000
)

// generate makes a schedule of n steps, which all are this fault if only is not "".
func generate(seed uint64, n int, only string) schedule {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 1)), wall: begin, high: begin, only: only}
	s := schedule{Seed: seed, Options: g.options()}
	s.Steps = append(s.Steps, step{Do: "policies", Text: policyTexts[g.IntN(len(policyTexts))]})
	for len(s.Steps) < n {
		s.Steps = append(s.Steps, g.step())
	}
	return s
}

func pick[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

// options are arguments of all servers of a run.
func (g *generator) options() []string {
	var all []string
	if g.IntN(3) == 0 {
		all = append(all, "--io-threads", pick(g.Rand, "2", "3"))
	}
	if g.IntN(2) == 0 {
		all = append(all, "--zset-max-listpack-entries", "16", "--hash-max-listpack-entries", pick(g.Rand, "2", "64"))
	}
	return append(all, "--hz", pick(g.Rand, "10", "100"))
}

// step makes a step: mostly calls, in between clocks, foreign commands and faults.
func (g *generator) step() step {
	switch n := g.IntN(100); {
	case g.only != "":
		return g.fault()
	case n < 70:
		return g.batch()
	case n < 82:
		return g.clock()
	case n < 94:
		return step{Do: "foreign", Conn: g.IntN(numConns), DB: g.db(), Calls: []words{g.foreign()}}
	}
	return g.fault()
}

func (g *generator) db() int { return pick(g.Rand, 0, 0, 0, 1) }

// batch makes calls that are sent together.
func (g *generator) batch() step {
	st := step{Do: "calls", Conn: g.IntN(numConns), DB: g.db(), N: g.Int64N(2),
		Via: pick(g.Rand, "plain", "plain", "plain", "multi", "multi", "eval", "fcall", "parallel", "replica")}
	for range pick(g.Rand, 1, 1, 30, 200, 1+g.IntN(500)) {
		words := g.call()
		if st.Via == "replica" {
			words = readOnly(words)
		}
		if st.Via != "multi" || !tooFew(words) { // the server would refuse all of them
			st.Calls = append(st.Calls, words)
		}
	}
	if len(st.Calls) == 0 {
		st.Calls = []words{{"GO.INFO", "t0"}}
	}
	return st
}

// readOnly returns the call that changes nothing.
func readOnly(w words) words {
	if commands.Find(w[0]+"_RO") != nil {
		return append(words{w[0] + "_RO"}, w[1:]...)
	}
	if commands.Find(w[0]).Writes() {
		return words{"GO.INFO", w[1]}
	}
	return w
}

// clock makes a step of the clocks. One in twelve sets the wall clock back.
func (g *generator) clock() step {
	d := pick(g.Rand, 1, g.Int64N(millisecond), g.Int64N(second), g.Int64N(second), g.Int64N(20*second), g.Int64N(90*second), g.Int64N(4000*second))
	st := step{Do: "clock", N: d, Mono: d}
	switch g.IntN(12) {
	case 0:
		st.N, st.Mono = -pick(g.Rand, g.Int64N(second), g.Int64N(60*second), g.Int64N(3600*second)), g.Int64N(second)
	case 1:
		st.Mono = 0 // the wall clock is set forward
	}
	g.wall += st.N
	g.high = max(g.high, g.wall)
	return st
}

// fault makes a fault by the weights of the table.
func (g *generator) fault() step {
	var all []fault
	for _, f := range faults {
		if g.only == "" || g.only == f.name {
			all = append(all, slices.Repeat([]fault{f}, f.weight)...)
		}
	}
	f := pick(g.Rand, all...)
	st := step{Do: f.name, Conn: g.IntN(numConns), DB: g.db(), N: g.Int64N(5 * millisecond)}
	if f.amid {
		b := g.batch()
		st.Via, st.Calls = b.Via, b.Calls
	}
	if len(f.texts) > 0 {
		st.Text = pick(g.Rand, f.texts...)
	}
	return st
}

// Values of gothrottle.policies. Names stay of one kind.
var policyTexts = []string{
	"api THROTTLE 9 10 1s, THROTTLE 99 100 60s; login THROTTLE 4 5 300s LOCKOUT 900s; win WINDOW 20 60s; quo QUOTA 20 86400s ALIGN -3600s; dim SHADOW THROTTLE 2 1 60s",
	"api THROTTLE 4 7 2s, THROTTLE 99 100 60s, THROTTLE 500 7 60s LOCKOUT 5s; login THROTTLE 4 11 300s LOCKOUT 60s; win WINDOW 300 60s EXACT; quo QUOTA 5 60s; dim THROTTLE 2 1 60s",
	"api THROTTLE 9 10 1s LOCKOUT 3s; login THROTTLE 1 5 300s; win SHADOW WINDOW 7 60s; quo SHADOW QUOTA 20 3600s",
}

// names of keys. The letter says what most callers take the key for.
func (g *generator) name(kind byte) string {
	if g.IntN(150) == 0 {
		kind = pick[byte](g.Rand, 't', 'w', 'q', 'l')
	}
	return fmt.Sprintf("%s%c%d", g.tag, kind, g.IntN(5))
}

// kind is a kind of limiter. Most callers of one key agree on its numbers.
type kind struct {
	name           string // of a clause; that of the command begins with GO.
	limits, counts [5]int64
	millis         [5]int64 // the period, or how long a slot is held
}

// kinds has the kinds by the letters of their keys.
var kinds = map[byte]kind{
	't': {"THROTTLE", [5]int64{16, 5, 2, 1, 500}, [5]int64{30, 7, 60, 1, 1000}, [5]int64{60_000, 60_000, 60_000, 60_000, 60_000}},
	'w': {"WINDOW", [5]int64{10, 200, 3, 1000, 121}, [5]int64{}, [5]int64{60_000, 10_000, 1000, 3_600_000, 7000}},
	'q': {"QUOTA", [5]int64{10, 5, 10, 1, 500_000}, [5]int64{}, [5]int64{60_000, 60_000, 1000, 3_600_000, 60_000}},
	'l': {"LEASE", [5]int64{1, 5, 5, 10, 100}, [5]int64{}, [5]int64{1000, 10_000, 60_000, 600_000, 10_000}},
}

// call makes a call of one of the module's commands. A few have a wrong word.
func (g *generator) call() words {
	var w words
	switch n := g.IntN(100); {
	case n < 64:
		w = g.limiter(pick[byte](g.Rand, 't', 't', 't', 't', 't', 'w', 'w', 'w', 'q', 'q', 'l', 'l'))
	case n < 68:
		key := g.name('t')
		w = append(words{"CL.THROTTLE", key}, g.numbers('t', key, 0, 1000)...)
	case n < 72:
		w = words{"GO.RELEASE", g.name('l'), g.id()}
		for range g.IntN(3) {
			w = append(w, g.id())
		}
	case n < 86:
		w = g.all()
	case n < 94:
		w = g.policy()
	case n < 99:
		w = words{"GO.INFO", g.name(pick[byte](g.Rand, 't', 'w', 'q', 'l'))}
	default:
		w = words{"GO.TOP"}
	}
	if g.IntN(12) == 0 {
		w = readOnly(w)
	}
	if g.IntN(25) == 0 {
		w = g.hostile(w)
	}
	if i := g.IntN(len(w)); g.IntN(10) == 0 {
		w[i] = strings.ToLower(w[i])
	}
	return w
}

// numbers makes the words that a limiter must have, after its key. Their unit is so many ms.
func (g *generator) numbers(letter byte, key string, cell int, unit int64) words {
	k, i := kinds[letter], (int(key[len(key)-1])+cell)%5
	limit, millis := k.limits[i], k.millis[i]
	limit = pick(g.Rand, limit, limit, limit, limit*2, limit/2+1, 1+g.Int64N(1000))
	if g.IntN(20) == 0 {
		millis = pick(g.Rand, unit, 5*unit, 300*unit)
	}
	period := g.span(millis, unit)
	switch {
	case letter == 'l':
		return words{text(limit), period, g.id()}
	case letter == 't':
		return words{text(limit - 1), text(k.counts[i]), period, g.quantity(limit)}
	case letter == 'q' && g.IntN(40) == 0:
		return words{text(limit), "1mo", g.quantity(limit), "ALIGN", "+01:00"}
	}
	return words{text(limit), period, g.quantity(limit)}
}

// option makes an option that both the command and the clause of a kind can have, or none.
func (g *generator) option(letter byte, unit int64) words {
	switch {
	case letter == 't' && g.IntN(8) == 0:
		return words{"LOCKOUT", g.span(1000*(1+g.Int64N(100)), unit)}
	case letter == 'w' && g.IntN(6) == 0:
		return words{"EXACT"}
	case letter == 'q' && g.IntN(4) == 0:
		return words{"ALIGN", text(g.IntN(200) - 100)}
	}
	return nil
}

// span writes a length of time, mostly in the unit of the call.
func (g *generator) span(millis, unit int64) string {
	if g.IntN(8) == 0 {
		return text(millis) + "ms"
	}
	return text(millis / unit)
}

func (g *generator) quantity(limit int64) string {
	return text(pick(g.Rand, 1, 1, 1, 1, 1, 2, 5, 0, limit, limit+1, -1, -2, -g.Int64N(limit+10)))
}

func (g *generator) id() string {
	if g.IntN(40) == 0 {
		return pick(g.Rand, "KEY", "", "\x00\xff", strings.Repeat("x", 512))
	}
	return text(g.IntN(20))
}

// unit makes the unit of a call, in ms, and the option that says it.
func (g *generator) unit() (unit int64, option words) {
	if g.IntN(4) == 0 {
		return 1, words{"MS"}
	}
	return 1000, nil
}

// limiter makes a call of the command of one kind.
func (g *generator) limiter(letter byte) words {
	key := g.name(letter)
	unit, ms := g.unit()
	option := g.option(letter, unit)
	switch n := g.IntN(14); {
	case letter == 'l' || letter == 't' && option != nil:
	case n < 2:
		option = append(option, "UPTO")
	case n == 2:
		option = append(option, "FORCE")
	case n < 5 && letter == 't':
		option = words{"RESERVE", text(g.IntN(60))}
	}
	return slices.Concat(words{"GO." + kinds[letter].name, key}, g.numbers(letter, key, 0, unit), option, ms)
}

// all makes a call of GO.ALL with one to four keys.
func (g *generator) all() words {
	w := words{"GO.ALL"}
	var seen []string
	unit, ms := g.unit()
	force := g.IntN(9) == 0
	for range 1 + g.IntN(4) {
		letter := pick[byte](g.Rand, 't', 't', 'w', 'q', 'l')
		if letter == 'l' && force {
			letter = 't'
		}
		key, cells := g.name(letter), 1
		if slices.Contains(seen, key) {
			continue
		}
		if len(seen) > 0 {
			w = append(w, "KEY")
		}
		if seen, w = append(seen, key), append(w, key); letter == 't' {
			cells = pick(g.Rand, 1, 1, 2, 3)
		}
		for cell := range cells {
			w = slices.Concat(w, words{kinds[letter].name}, g.numbers(letter, key, cell, unit), g.option(letter, unit))
		}
	}
	if w = append(w, ms...); force {
		w = append(w, "FORCE")
	}
	return w
}

func (g *generator) policy() words {
	w := words{"GO.POLICY", fmt.Sprintf("%s:%s%d", pick(g.Rand, "api", "login", "win", "quo", "dim", "none"), g.tag, g.IntN(3))}
	if g.IntN(3) == 0 {
		w = append(w, text(pick(g.Rand, 0, 1, 2, 5, 400)))
	}
	if g.IntN(4) == 0 {
		w = append(w, "MS")
	}
	return w
}

var hostileWords = []string{"", "0", "-1", "+5", "007", "-0", "1.5", "1e3", " 1", "1 ", "\x00", "\xff\xfe", "nan", "x", "MS", "UPTO", "FORCE", "EXACT",
	"ALIGN", "RESERVE", "LOCKOUT", "KEY", "THROTTLE", "LEASE", "999999999999", "1000000000000", "1000000000001", "-1000000000001",
	"9223372036854775807", "9223372036854775808", "-9223372036854775808", "18446744073709551616", "3153600000", "3153600001",
	"3153600000000", strings.Repeat("9", 400), strings.Repeat("k", 5000), "m\u017f", "1h", "2mo", "1.5s"}

// hostile leaves a word out, or puts a wrong one in. The name and the first key stay.
func (g *generator) hostile(w words) words {
	w = slices.Clone(w)
	at := min(2, len(w)) + g.IntN(max(len(w)-1, 1))
	at = min(at, len(w))
	word := pick(g.Rand, hostileWords...)
	switch n := g.IntN(4); {
	case n == 0 && len(w) > 2:
		return w[:2+g.IntN(len(w)-2)]
	case n == 1:
		return slices.Insert(w, at, word)
	case at < len(w):
		w[at] = word
	}
	return w
}
