package world

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"gothrottle/funnel"
)

// Generator makes up calls.
type Generator struct {
	*rand.Rand
	Tag string // a hash tag of all keys, with braces

	// Tight: there are few keys of each kind, numbers are small, and no two calls of a key agree on them. Nearly all
	// calls are right. Else callers of a key mostly agree, and all commands and wrong words come up.
	Tight bool
	// Holds: slots have numbers, shares of slots are of units too, and calls of GO.ALL give slots back.
	Holds bool

	// Shares: nearly all calls are GO.ALL, and most of them have fair shares.
	Shares bool
}

// NewGenerator returns a generator that makes the same calls for the same seeds.
func NewGenerator(seed, stream uint64) *Generator {
	return &Generator{Rand: rand.New(rand.NewPCG(seed, stream))}
}

// Pick returns one of some values.
func Pick[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

// PolicyTexts are values of gothrottle.policies for calls that aren't tight. Names stay of one kind.
var PolicyTexts = []string{
	"api THROTTLE 9 10 1s, THROTTLE 99 100 60s; login THROTTLE 4 5 300s LOCKOUT 900s; win WINDOW 20 60s; quo QUOTA 20 86400s ALIGN -3600s; dim SHADOW THROTTLE 2 1 60s",
	"api THROTTLE 4 7 2s, THROTTLE 99 100 60s, THROTTLE 500 7 60s LOCKOUT 5s; login THROTTLE 4 11 300s LOCKOUT 60s; win WINDOW 300 60s EXACT; quo QUOTA 5 60s; dim THROTTLE 2 1 60s",
	"api THROTTLE 9 10 1s LOCKOUT 3s; login THROTTLE 1 5 300s; win SHADOW WINDOW 7 60s; quo SHADOW QUOTA 20 3600s",
}

// TightKeys are the keys of tight calls. That of rates is also the key of a policy.
var TightKeys = map[byte]string{'t': "p:k", 'w': "window", 'q': "quota", 'l': "lease"}

// Name returns a key. The letter says what most callers take the key for.
func (g *Generator) Name(kind byte) string {
	if g.Tight {
		if kind != 't' && g.IntN(4) == 0 {
			return TightKeys[kind] + "2"
		}
		return TightKeys[kind]
	}
	if g.IntN(150) == 0 {
		kind = Pick[byte](g.Rand, 't', 'w', 'q', 'l')
	}
	return fmt.Sprintf("%s%c%d", g.Tag, kind, g.IntN(5))
}

// limits is a kind of limiter. Most callers of one key agree on its numbers.
type limits struct {
	name           string // of a clause; that of the command begins with GO.
	limits, counts [5]int64
	millis         [5]int64 // the period, or how long a slot is held
}

// usual has the kinds by the letters of their keys.
var usual = map[byte]limits{
	't': {"THROTTLE", [5]int64{16, 5, 2, 1, 500}, [5]int64{30, 7, 60, 1, 1000}, [5]int64{60_000, 60_000, 60_000, 60_000, 60_000}},
	'w': {"WINDOW", [5]int64{10, 200, 3, 1000, 121}, [5]int64{}, [5]int64{60_000, 10_000, 1000, 3_600_000, 7000}},
	'q': {"QUOTA", [5]int64{10, 5, 10, 1, 500_000}, [5]int64{}, [5]int64{60_000, 60_000, 1000, 3_600_000, 60_000}},
	'l': {"LEASE", [5]int64{1, 5, 5, 10, 100}, [5]int64{}, [5]int64{1000, 10_000, 60_000, 600_000, 10_000}},
}

// parameters draws the limit, the count and the period in ms of a clause.
func (g *Generator) parameters(letter byte, key string, cell int, unit int64) (limit, count, millis int64) {
	if g.Tight {
		limit, count, millis = 1+g.Int64N(6), 1+g.Int64N(9), unit*(1+g.Int64N(9))
		if letter == 'w' {
			millis = 3000 // a window's callers must agree on the period
			if g.IntN(4) == 0 {
				limit += 120 // calls may then share entries
			}
		}
		return limit, count, millis
	}
	k, i := usual[letter], (int(key[len(key)-1])+cell)%5
	limit, millis = k.limits[i], k.millis[i]
	limit = Pick(g.Rand, limit, limit, limit, limit*2, limit/2+1, 1+g.Int64N(1000))
	count = k.counts[i]
	switch g.IntN(20) {
	case 0:
		millis = Pick(g.Rand, unit, 5*unit, 300*unit)
	case 1, 2: // numbers of any size
		limit = Pick(g.Rand, 120, 121, 100_000, 1+g.Int64N(300), funnel.MaxLimit)
		count = Pick(g.Rand, 997, 36_000, 1_000_000_007, funnel.MaxLimit, 1+g.Int64N(1000))
		if letter != 'w' { // a window's callers must agree
			millis = Pick(g.Rand, 250, 86_400_000, 200*86_400_000, 1000*(1+g.Int64N(5000)))
		}
	}
	return limit, count, millis
}

// numbers makes the words that a limiter must have, after its key. Their unit is so many ms.
func (g *Generator) numbers(letter byte, key string, cell int, unit int64) Words {
	limit, count, millis := g.parameters(letter, key, cell, unit)
	period := g.span(millis, unit)
	switch {
	case letter == 'l':
		return append(Words{text(limit), period, g.id()}, g.slots(limit)...)
	case letter == 't':
		return Words{text(limit - 1), text(count), period, g.quantity(limit)}
	case letter == 'q' && g.IntN(40) == 0:
		return Words{text(limit), Pick(g.Rand, "1", "3", "5", "9") + "mo", g.quantity(limit), "ALIGN", Pick(g.Rand, "+01:00", "-07:00", "0")}
	}
	return Words{text(limit), period, g.quantity(limit)}
}

// option makes an option that both the command and the clause of a kind can have, or none.
func (g *Generator) option(letter byte, unit int64) Words {
	switch {
	case letter == 't' && g.IntN(8) == 0:
		return Words{"LOCKOUT", g.span(1000*(1+g.Int64N(100)), unit)}
	case letter == 'w' && g.IntN(6) == 0:
		return Words{"EXACT"}
	case letter == 'q' && !g.Tight && g.IntN(8) == 0:
		return Words{"ALIGN", Pick(g.Rand, "+05:45", "-03:30", "1h", "16d", "-27d", "28d", "30d", "31d")}
	case letter == 'q' && g.IntN(4) == 0:
		return Words{"ALIGN", text(g.IntN(200) - 100)}
	}
	return nil
}

// span writes a length of time, mostly in the unit of the call.
func (g *Generator) span(millis, unit int64) string {
	if g.IntN(8) == 0 || millis%unit > 0 {
		return text(millis) + "ms"
	}
	return text(millis / unit)
}

// slots makes a number of slots, or none.
func (g *Generator) slots(limit int64) Words {
	if !g.Holds || g.IntN(3) == 0 {
		return nil
	}
	return Words{text(Pick(g.Rand, 0, 0, 1, 2, 2, 3, limit, limit+1, 1+limit/4))}
}

func (g *Generator) quantity(limit int64) string {
	return text(Pick(g.Rand, 1, 1, 1, 1, 1, 2, 5, 0, limit, limit+1, -1, -2, -g.Int64N(limit+10), 1+limit/4))
}

func (g *Generator) id() string {
	switch {
	case g.Tight:
		return text(g.IntN(5))
	case g.IntN(40) == 0:
		return Pick(g.Rand, "KEY", "", "\x00\xff", strings.Repeat("x", 512))
	}
	return text(g.IntN(20))
}

// unit makes the unit of a call, in ms, and the option that says it.
func (g *Generator) unit() (unit int64, option Words) {
	if g.IntN(4) == 0 {
		return 1, Words{"MS"}
	}
	return 1000, nil
}

// Call makes a call of one of the module's commands.
func (g *Generator) Call() (w Words) {
	if g.Tight {
		return g.tightCall()
	}
	switch n := g.IntN(100); {
	case n < 20 && g.Holds:
		w = g.hold()
	case n < 64:
		w = g.limiter(Pick[byte](g.Rand, 't', 't', 't', 't', 't', 'w', 'w', 'w', 'q', 'q', 'l', 'l'))
	case n < 68:
		key := g.Name('t')
		w = append(Words{"CL.THROTTLE", key}, g.numbers('t', key, 0, 1000)...)
	case n < 72:
		w = g.release()
	case n < 86:
		w = g.all()
	case n < 94:
		w = g.policy()
	case n < 99:
		w = Words{"GO.INFO", g.Name(Pick[byte](g.Rand, 't', 'w', 'q', 'l'))}
	default:
		w = Words{"GO.TOP"}
	}
	if g.IntN(12) == 0 {
		w = w.ReadOnly()
	}
	if g.IntN(25) == 0 {
		w = g.hostile(w)
	}
	if i := g.IntN(len(w)); g.IntN(10) == 0 {
		w[i] = strings.ToLower(w[i])
	}
	return w
}

// tightCall makes a call that models can decide.
func (g *Generator) tightCall() (w Words) {
	switch n := g.IntN(100); {
	case n < 30 && g.Holds:
		w = g.hold()
	case n < 33 && !g.Shares:
		w = Words{"GO.POLICY", TightKeys['t'], text(g.IntN(6)), "MS"}
	case n < 75:
		w = g.all()
	case n < 97:
		w = g.limiter(Pick[byte](g.Rand, 't', 't', 'w', 'w', 'q', 'q', 'l'))
	default:
		w = g.release()
	}
	if g.IntN(12) == 0 {
		w = w.ReadOnly()
	}
	return w
}

// ReadOnly returns the call that changes nothing.
func (w Words) ReadOnly() Words {
	switch upper(w[0]) {
	case "GO.THROTTLE", "GO.WINDOW", "GO.QUOTA", "GO.LEASE", "GO.ALL", "GO.POLICY":
		return append(Words{w[0] + "_RO"}, w[1:]...)
	case "CL.THROTTLE", "GO.RELEASE":
		return Words{"GO.INFO", w[1]}
	}
	return w
}

// limiter makes a call of the command of one kind.
func (g *Generator) limiter(letter byte) Words {
	key := g.Name(letter)
	unit, ms := g.unit()
	option := g.option(letter, unit)
	switch n := g.IntN(14); {
	case letter == 'l' || letter == 't' && option != nil:
	case n < 2:
		option = append(option, "UPTO")
	case n == 2:
		option = append(option, "FORCE")
	case n == 3 && letter != 'l':
		option = append(option, "RAISE")
	case n < 6 && letter == 't':
		option = Words{"RESERVE", text(g.IntN(60))}
		if !g.Tight && n == 5 {
			option[1] = "900d"
		}
	}
	return slices.Concat(Words{"GO." + usual[letter].name, key}, g.numbers(letter, key, 0, unit), option, ms)
}

// all makes a call of GO.ALL with one to four keys.
func (g *Generator) all() Words {
	w := Words{"GO.ALL"}
	var seen []string
	unit, ms := g.unit()
	force := g.IntN(6) == 0
	last := byte(0) // the kind of the clause before
	clauses := 1 + g.IntN(4)
	if g.Shares {
		clauses += 2
	}
	for range clauses {
		letter := Pick[byte](g.Rand, 't', 't', 'w', 'q', 'l')
		if g.Shares && letter == 't' {
			letter = 'w'
		}
		if letter == 'l' && force {
			letter = 't'
		}
		key, cells := g.Name(letter), 1
		if slices.Contains(seen, key) {
			continue
		}
		if len(seen) > 0 {
			w = append(w, "KEY")
		}
		if seen, w = append(seen, key), append(w, key); letter == 't' {
			cells = Pick(g.Rand, 1, 1, 2, 3, 4)
		}
		shares := last != 0 && letter != 't' && (last == 'l') == (letter == 'l') && g.IntN(2) == 0
		last = letter
		for cell := range cells {
			option := g.option(letter, unit)
			if force && letter == 't' && g.Tight {
				option = nil
			}
			if shares {
				option = append(option, "SHARE", text(1+g.IntN(4)))
			}
			w = slices.Concat(w, Words{usual[letter].name}, g.numbers(letter, key, cell, unit), option)
		}
	}
	if w = append(w, ms...); force {
		w = append(w, "FORCE")
	}
	return w
}

// hold makes a call that holds units of one to three levels, each a run of clauses and a lease, or one that settles them.
func (g *Generator) hold() Words {
	w, key := Words{"GO.ALL"}, Words(nil)
	unit, option := g.unit()
	settles, id := g.IntN(3) == 0, g.id()
	force := settles && (!g.Tight || g.IntN(4) > 0)
	add := func(name, kind string, words ...string) {
		w = slices.Concat(w, key, Words{name, kind}, words)
		key = Words{"KEY"}
	}
	letters := []byte{'t', 'w', 'q'}
	g.Shuffle(3, func(i, j int) { letters[i], letters[j] = letters[j], letters[i] })
	for level, letter := range letters[:Pick(g.Rand, 1, 1, 1, 2, 3)] {
		name := g.Name(letter)
		numbers := g.numbers(letter, name, 0, unit)
		at := 2 + int(one(letter == 't'))
		if !settles {
			numbers[at] = "0"
		}
		if g.Tight && !force && len(numbers) == at+1 {
			numbers = append(numbers, g.option(letter, unit)...)
		}
		if g.Tight {
			numbers[0] = Pick(g.Rand, "", "1", "2") + numbers[0] // room for holds of other calls
		}
		add(name, usual[letter].name, numbers...)
		if name = fmt.Sprintf("%sl%d", g.Tag, 2*level+g.IntN(2)); g.Tight {
			name = TightKeys['l'] + []string{"", "2", "3"}[level]
		}
		if g.IntN(3) == 0 && level < 2 {
			continue // the next clause is of the same run
		}
		if numbers = g.numbers('l', name, 0, unit); g.Tight {
			numbers[0] = Pick(g.Rand, "", "1", "2") + numbers[0]
		}
		switch {
		case settles:
			add(name, "RELEASE", id)
		case g.IntN(5) == 0:
			add(name, "LEASE", numbers...)
		default:
			add(name, "LEASE", append(numbers, "SHARE", "1")...)
		}
	}
	if force {
		option = append(option, "FORCE")
	}
	return append(w, option...)
}

func (g *Generator) release() Words {
	w := Words{"GO.RELEASE", g.Name('l'), g.id()}
	for range g.IntN(3) {
		w = append(w, g.id())
	}
	return w
}

func (g *Generator) policy() Words {
	w := Words{"GO.POLICY", fmt.Sprintf("%s:%s%d", Pick(g.Rand, "api", "login", "win", "quo", "dim", "none"), g.Tag, g.IntN(3))}
	if g.IntN(3) == 0 {
		w = append(w, text(Pick(g.Rand, 0, 1, 2, 5, 400)))
	}
	if g.IntN(4) == 0 {
		w = append(w, "MS")
	}
	return w
}

// Policies makes a value of gothrottle.policies. That of tight calls is a policy of a few rates that interfere.
func (g *Generator) Policies() string {
	if !g.Tight {
		return Pick(g.Rand, PolicyTexts...)
	}
	name, _, _ := strings.Cut(TightKeys['t'], ":")
	var clauses []string
	for range 1 + g.IntN(4) {
		clause := fmt.Sprintf("THROTTLE %d %d %dms", g.IntN(5), 1+g.IntN(3), 1+g.IntN(4000))
		if g.IntN(2) == 0 {
			clause += fmt.Sprintf(" LOCKOUT %dms", 1+g.IntN(6000))
		}
		clauses = append(clauses, clause)
	}
	return name + Pick(g.Rand, " ", " ", " ", " SHADOW ") + strings.Join(clauses, ", ")
}

var hostileWords = []string{"", "0", "-1", "+5", "007", "-0", "1.5", "1e3", " 1", "1 ", "\x00", "\xff\xfe", "nan", "x", "MS", "UPTO", "FORCE", "EXACT",
	"ALIGN", "RESERVE", "LOCKOUT", "KEY", "THROTTLE", "LEASE", "999999999999", "1000000000000", "1000000000001", "-1000000000001",
	"9223372036854775807", "9223372036854775808", "-9223372036854775808", "18446744073709551616", "3153600000", "3153600001",
	"3153600000000", strings.Repeat("9", 400), strings.Repeat("k", 5000), "m\u017f", "1h", "2mo", "1.5s"}

// hostile leaves a word out, or puts a wrong one in. The name and the first key stay.
func (g *Generator) hostile(w Words) Words {
	w = slices.Clone(w)
	at := min(2, len(w)) + g.IntN(max(len(w)-1, 1))
	at = min(at, len(w))
	word := Pick(g.Rand, hostileWords...)
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

func text(n any) string { return fmt.Sprint(n) }

// Step draws how much later the next call comes. Months go by, too.
func (g *Generator) Step() funnel.Micros {
	if g.IntN(200) == 0 {
		return funnel.Micros(g.Int64N(40 * 86_400_000_000))
	}
	return Pick[funnel.Micros](g.Rand, 0, 0, 1, 137, 1000, 77_777, 500_000, 1_000_000, 2_345_678)
}
