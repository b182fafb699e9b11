package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// generator makes the steps of a schedule from a seed.
type generator struct {
	*rand.Rand
	wall int64 // µs since the Unix epoch; where the steps have moved the wall clock to
	high int64 // the latest wall
}

// begin is the wall clock at the start of every run, in µs since the Unix epoch: in 2030.
const begin = 1_900_000_000_000_000

const (
	millisecond = 1000
	second      = 1_000_000
)

// generate makes a schedule of n steps.
func generate(seed uint64, n int) schedule {
	g := &generator{rand.New(rand.NewPCG(seed, 1)), begin, begin}
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
	st := step{Do: "calls", Conn: g.IntN(numConns), DB: g.db(),
		Via: pick(g.Rand, "plain", "plain", "plain", "multi", "multi", "eval", "fcall", "parallel", "replica")}
	st.N = g.Int64N(2)
	n := pick(g.Rand, 1, 1, 30, 200, 1+g.IntN(500))
	for range n {
		words := g.call()
		if st.Via == "replica" {
			words = g.readOnly(words)
		}
		if st.Via == "multi" && tooFew(words) { // the server would refuse all of them
			continue
		}
		st.Calls = append(st.Calls, words)
	}
	if len(st.Calls) == 0 {
		st.Calls = []words{{"GO.INFO", "t0"}}
	}
	return st
}

// readOnly returns the call that changes nothing.
func (g *generator) readOnly(all words) words {
	switch all[0] {
	case "CL.THROTTLE", "GO.RELEASE":
		return words{"GO.INFO", all[1]}
	case "GO.INFO", "GO.TOP":
		return all
	}
	if strings.HasSuffix(all[0], "_RO") {
		return all
	}
	return append(words{all[0] + "_RO"}, all[1:]...)
}

// clock makes a step of the clocks. One in ten sets the wall clock back.
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
	sum := 0
	for _, f := range faults {
		sum += f.weight
	}
	n := g.IntN(sum)
	for _, f := range faults {
		if n -= f.weight; n >= 0 {
			continue
		}
		st := step{Do: f.name, Conn: g.IntN(numConns), DB: g.db()}
		if f.amid {
			b := g.batch()
			st.Via, st.Calls = b.Via, b.Calls
			st.N = g.Int64N(5 * millisecond)
		}
		if len(f.texts) > 0 {
			st.Text = pick(g.Rand, f.texts...)
		}
		return st
	}
	panic("no fault")
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
	return fmt.Sprintf("%c%d", kind, g.IntN(5))
}

func (g *generator) text(n int64) string { return fmt.Sprint(n) }

// call makes a call of one of the module's commands. A few have a wrong word.
func (g *generator) call() words {
	var w words
	switch n := g.IntN(100); {
	case n < 30:
		w = g.throttle()
	case n < 46:
		w = g.window()
	case n < 58:
		w = g.quota()
	case n < 68:
		w = g.lease()
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
		w = g.readOnly(w)
	}
	if g.IntN(25) == 0 {
		w = g.hostile(w)
	}
	return w
}

func (g *generator) unit() (unit int64, option words) {
	if g.IntN(4) == 0 {
		return 1, words{pick(g.Rand, "MS", "ms")}
	}
	return 1000, nil
}

// span writes a length of time, mostly in the unit of the call.
func (g *generator) span(millis, unit int64) string {
	if g.IntN(8) == 0 {
		return g.text(millis) + "ms"
	}
	return g.text(millis / unit)
}

func (g *generator) quantity(limit int64) string {
	return g.text(pick(g.Rand, 1, 1, 1, 1, 1, 2, 5, 0, limit, limit+1, -1, -2, -g.Int64N(limit+10)))
}

// mode makes one of the options that exclude each other, or none.
func (g *generator) mode(throttle bool) words {
	switch n := g.IntN(14); {
	case n < 2:
		return words{"UPTO"}
	case n == 2:
		return words{pick(g.Rand, "FORCE", "force")}
	case n < 5 && throttle:
		return words{"RESERVE", g.text(g.Int64N(60))}
	case n < 7 && throttle:
		return words{"LOCKOUT", g.text(1 + g.Int64N(100))}
	}
	return nil
}

func (g *generator) rate(i int) (count, millis int64) {
	if g.IntN(15) == 0 {
		return pick(g.Rand, 1, 11, 30, 1+g.Int64N(1000)), pick[int64](g.Rand, 1000, 60_000, 3_600_000)
	}
	return []int64{30, 7, 60, 1, 1000}[i%5], 60_000
}

func (g *generator) throttle() words {
	key, limit := g.name('t'), pick(g.Rand, 1, 2, 5, 16, 1+g.Int64N(1000))
	count, millis := g.rate(int(key[1]))
	unit, option := g.unit()
	w := words{pick(g.Rand, "GO.THROTTLE", "GO.THROTTLE", "go.throttle"), key, g.text(limit - 1), g.text(count), g.span(millis, unit), g.quantity(limit)}
	if g.IntN(8) == 0 {
		w[0], w[4] = "CL.THROTTLE", g.text(millis/1000)
		return w
	}
	return append(append(w, g.mode(true)...), option...)
}

// windowNumbers makes the words of a window from the limit on. Most callers of one key agree on its period.
func (g *generator) windowNumbers(key string, unit int64) words {
	i := int(key[1] - '0')
	limit, millis := []int64{10, 200, 3, 1000, 121}[i], []int64{60_000, 10_000, 1000, 3_600_000, 7000}[i]
	limit = pick(g.Rand, limit, limit, limit, limit*2, limit/2+1)
	if g.IntN(30) == 0 {
		millis = pick[int64](g.Rand, 1, 5, 300) * unit
	}
	w := words{g.text(limit), g.span(millis, unit), g.quantity(limit)}
	if g.IntN(6) == 0 {
		w = append(w, "EXACT")
	}
	return w
}

func (g *generator) window() words {
	key := g.name('w')
	unit, option := g.unit()
	w := append(append(words{"GO.WINDOW", key}, g.windowNumbers(key, unit)...), g.mode(false)...)
	return append(w, option...)
}

func (g *generator) quota() words {
	unit, option := g.unit()
	limit := pick(g.Rand, 10, 10, 5, 1+g.Int64N(1_000_000))
	w := words{"GO.QUOTA", g.name('q'), g.text(limit), g.span(pick[int64](g.Rand, 60_000, 60_000, 1000, 3_600_000), unit), g.quantity(limit)}
	w = append(w, g.mode(false)...)
	if g.IntN(4) == 0 {
		w = append(w, "ALIGN", g.text(g.Int64N(200)-100))
		if g.IntN(4) == 0 {
			w[3], w[len(w)-1] = "1mo", "+01:00"
		}
	}
	return append(w, option...)
}

func (g *generator) id() string {
	if g.IntN(40) == 0 {
		return pick(g.Rand, "KEY", "", "\x00\xff", strings.Repeat("x", 512))
	}
	return g.text(g.Int64N(20))
}

func (g *generator) lease() words {
	unit, option := g.unit()
	limit, ttl := pick[int64](g.Rand, 1, 5, 5, 10, 100), pick[int64](g.Rand, 1000, 10_000, 60_000, 600_000)
	return append(words{"GO.LEASE", g.name('l'), g.text(limit), g.span(ttl, unit), g.id()}, option...)
}

// all makes a call of GO.ALL with one to four keys.
func (g *generator) all() words {
	w := words{"GO.ALL"}
	var seen []string
	ms, force := g.IntN(3) == 0, g.IntN(9) == 0
	for range 1 + g.IntN(4) {
		kind := pick[byte](g.Rand, 't', 't', 'w', 'q', 'l')
		key := g.name(kind)
		if kind == 'l' && force || slices.Contains(seen, key) {
			continue
		}
		if len(seen) > 0 {
			w = append(w, "KEY")
		}
		seen, w = append(seen, key), append(append(w, key), g.clauses(kind, key, ms)...)
	}
	if len(seen) == 0 {
		w = append(append(w, "t0"), g.clauses('t', "t0", ms)...)
	}
	if ms {
		w = append(w, "MS")
	}
	if force {
		w = append(w, "FORCE")
	}
	return w
}

func (g *generator) clauses(kind byte, key string, ms bool) (w words) {
	unit := int64(1000)
	if ms {
		unit = 1
	}
	limit := pick(g.Rand, 1, 5, 16, 1+g.Int64N(300))
	switch kind {
	case 't':
		for cell := range pick(g.Rand, 1, 1, 2, 3) {
			count, millis := g.rate(cell + int(key[1]))
			w = append(w, "THROTTLE", g.text(limit-1), g.text(count), g.span(millis, unit), g.quantity(limit))
			if g.IntN(8) == 0 {
				w = append(w, "LOCKOUT", g.span(1000*(1+g.Int64N(100)), unit))
			}
		}
	case 'w':
		w = append(words{"WINDOW"}, g.windowNumbers(key, unit)...)
	case 'q':
		w = words{"QUOTA", g.text(limit), g.text(60_000 / unit), g.quantity(limit)}
		if g.IntN(4) == 0 {
			w = append(w, "ALIGN", "7")
		}
	case 'l':
		w = words{"LEASE", g.text(limit), g.text(10_000 / unit), g.id()}
	}
	return w
}

func (g *generator) policy() words {
	w := words{"GO.POLICY", fmt.Sprintf("%s:%d", pick(g.Rand, "api", "login", "win", "quo", "dim", "none"), g.IntN(3))}
	if g.IntN(3) == 0 {
		w = append(w, g.text(pick[int64](g.Rand, 0, 1, 2, 5, 400)))
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
