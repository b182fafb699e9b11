package cgo_test

// Transcripts hold few calls, each as its author thought of it. Here calls are random, in any order, on keys that users change
// and that expire, while the clock is set forward and back. Package memory runs the same handlers over maps, so what
// differs is what loads, applies, replicates or replies.

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
	"gothrottle/commands"
	"gothrottle/funnel"
	"gothrottle/tests/corpus"
)

// fewer divides the number of random calls. It is more than 1 in builds where calls are slow.
var fewer = 1

// rounds returns the number of random calls of a test: n, or fewer in short runs and slow builds.
func rounds(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n / fewer
}

func pick[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

// walk is a random walk over the keys of a server. A model of the module's clock follows while the server's clock is set.
type walk struct {
	*rand.Rand
	t      *testing.T
	seed   uint64
	calls  int
	h      *fakehost.Host
	host   commands.Host // the module's; package memory has its own
	memory *corpus.Memory
	clock  funnel.Clock
	mono   funnel.Micros
	now    funnel.Micros // what the module's clock must say
	keys   []string
	seen   map[string]int // how many calls were so
}

func newWalk(t *testing.T) *walk {
	w := &walk{seed: rand.Uint64(), t: t, h: loaded(t), memory: corpus.NewMemory(), host: commands.TheHost, seen: map[string]int{}}
	w.Rand = rand.New(rand.NewPCG(w.seed, 0))
	w.keys = []string{"t0", "t1", "t2", "w0", "w1", "w2", "q0", "q1", "l0", "l1", "sample:a", "sample:b"}
	if err := w.memory.SetPolicies(corpus.SamplePolicies); err != nil {
		t.Fatal(err)
	}
	if w.IntN(4) == 0 {
		w.h.Restart(3600 * second) // a server whose clock begins in 1970
	}
	return w
}

// pass lets time pass, mostly little. Once in 100 calls it also sets the server's clock.
func (w *walk) pass() {
	micros := w.Int64N(pick[int64](w.Rand, 1, 1000, second/10, second/10, 5*second, 100*second))
	w.h.Advance(micros)
	w.mono += funnel.Micros(micros)
	switch w.IntN(200) {
	case 0:
		w.h.SetNow(max(w.h.Now()-w.Int64N(50*second), second))
	case 1:
		w.h.SetNow(w.h.Now() + w.Int64N(50*second))
	}
	w.now = w.clock.Now(funnel.Micros(w.h.Now()), func() funnel.Micros { return w.mono })
}

// meddle changes a key now and then, as a user might.
func (w *walk) meddle() {
	switch key := pick(w.Rand, w.keys...); w.IntN(60) {
	case 1, 2:
		if w.h.Get(key) != nil {
			w.h.Expire(key, pick(w.Rand, 0, w.h.Now()/1000+w.Int64N(20_000)))
		}
	case 3, 4:
		putRandom(w.Rand, w.h, key)
	case 5:
		w.h.Put(key, list)
	case 6:
		w.h.Put(key, textOf(tat(w.h, w.Int64N(1e11)))) // as redis-cell
	case 7, 8, 9, 10, 11, 12, 13, 14, 15, 16:
		w.h.Delete(key)
	}
}

// expects runs a call in package memory, which holds what the server holds then.
func (w *walk) expects(words []string, used []string) (reply any, effects [][]string) {
	for key, v := range valuesOf(w.h, used...) {
		if v.Expired(funnel.Micros(w.h.Now())) {
			continue
		}
		if v.Expired(w.now) { // not by the server's clock
			v.Expire = int64(w.now) / 1000
		}
		w.memory.Put(key, v)
	}
	w.memory.Clock(int64(w.now))
	reply, effects = w.memory.Call(words)
	commands.TheHost = w.host
	for _, key := range used {
		w.memory.Put(key, nil)
	}
	return reply, effects
}

// call makes a call to both and compares the replies and what they replicate.
func (w *walk) call(words []string) {
	w.t.Helper()
	w.calls++
	used := slices.Compact(slices.Sorted(slices.Values(words[1:]))) // any word may be a key
	r, before := copyOf(w.h, used...), valuesOf(w.h, used...)
	fail := func(what string, got, want any) {
		w.t.Helper()
		w.t.Fatalf("seed %d, call %d: %q at %d, where the keys hold\n%s\n%s %q, want %q",
			w.seed, w.calls, words, w.now, corpus.Dump(before, 0), what, got, want)
	}
	want, effects := w.expects(words, used)
	toWrite := w.h.Count(fakehost.ForWriting)
	got := asAny(w.h.Call(words...))
	// The error for a hash that isn't a limiter depends on the order of its fields.
	if one := strings.NewReplacer(damaged, foreign); one.Replace(fmt.Sprint(got)) != one.Replace(fmt.Sprint(want)) {
		fail("the reply is", fmt.Sprint(got), fmt.Sprint(want))
	}
	row := commands.Find(words[0])
	if now := w.h.Count(fakehost.ForWriting); now != toWrite && !row.Writes() {
		fail("keys opened for writing:", now, toWrite)
	}
	replicated := slices.DeleteFunc(w.h.EffectWords(), func(effect []string) bool {
		return slices.Contains(w.h.Events(), fakehost.Event{Class: 1 << 8, Name: "expired", Key: effect[1]}) && effect[0] == "DEL"
	})
	// While the clock leads, package memory may take a key for expired that the server still has.
	if leads := int64(w.now) > w.h.Now(); leads {
		w.seen["while the clock leads"]++
	} else if !slices.EqualFunc(replicated, effects, slices.Equal) {
		fail("replicated is", replicated, effects)
	}
	if r.follow(w.t, w.h, words[0], used...); w.t.Failed() || w.h.Log() != nil {
		fail("the log is", w.h.Log(), nil)
	}
	w.count(row.Name, got, len(replicated))
	w.h.Call("GO.INFO", "none") // some errors come before the module reads its clock
}

func (w *walk) count(name string, reply any, replicated int) {
	if _, failed := reply.(error); failed {
		w.seen["errors"]++
		return
	}
	w.seen[name]++
	if all, _ := reply.([]any); len(all) > 0 && fmt.Sprint(all[0]) == "1" {
		w.seen["limited"]++
	}
	if replicated > 0 {
		w.seen["replicated"]++
	}
}

// wrongWords take the place of a word now and then.
var wrongWords = []string{"", "0", "1", "-1", "+5", "007", "-0", "15", "ms", "x", "1.5", "1e3", " 1", "\x00", "\xff", "999999999999", "1000000000000",
	"1000000000001", "-1000000000001", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "18446744073709551616", "3153600000",
	"3153600001", "UPTO", "EXACT", "ALIGN", "FORCE", "RESERVE", "LOCKOUT", "KEY", "THROTTLE", "nan"}

const empty = "EMPTY" // in a call: the key of no bytes

// words makes up a call of any command but GO.TOP, mostly a right one on a key of its kind.
func (w *walk) words() []string {
	key := func(kinds ...string) string {
		if w.IntN(40) == 0 {
			return pick(w.Rand, append(w.keys, empty)...)
		}
		return pick(w.Rand, kinds...)
	}
	t, win, q, l := key("t0", "t1", "t2"), key("w0", "w1", "w2"), key("q0", "q1"), key("l0", "l1")
	ro := pick(w.Rand, "", "", "", "", "_RO")
	upTo := pick(w.Rand, "", "", "UPTO", "FORCE")
	var line string
	switch w.IntN(11) {
	case 0, 1, 2:
		option := pick(w.Rand, "", upTo, fmt.Sprint("RESERVE ", w.IntN(20)), fmt.Sprint("LOCKOUT ", 1+w.IntN(20)))
		line = fmt.Sprint("GO.THROTTLE", ro, " ", t, " ", w.throttle(), " ", option)
	case 3:
		line = fmt.Sprint("CL.THROTTLE ", t, " ", w.throttle())
	case 4, 5:
		line = fmt.Sprint("GO.WINDOW", ro, " ", win, " ", w.window(), " ", upTo)
	case 6:
		line = fmt.Sprint("GO.QUOTA", ro, " ", q, " ", w.quota(), " ", upTo)
	case 7:
		line = fmt.Sprint(pick(w.Rand, "GO.LEASE", "GO.LEASE", "GO.LEASE_RO"), " ", l, " ", w.lease())
	case 8:
		line = fmt.Sprint("GO.RELEASE ", l, " ", w.IntN(30), " ", w.IntN(30))
	case 9:
		line = pick(w.Rand, "GO.INFO "+pick(w.Rand, t, win, q, l), "GO.POLICY"+pick(w.Rand, "", "_RO")+" "+key("sample:a", "sample:b")+" "+pick(w.Rand, "", "0", "1", "2"))
	default:
		line = "GO.ALL" + ro + " " + w.clauses(t, win, q, l)
	}
	if !strings.HasPrefix(line, "GO.INFO") && !strings.HasPrefix(line, "GO.RELEASE") && w.IntN(2) == 0 {
		line += " MS"
	}
	words := strings.Fields(line)
	for i := range words {
		words[i] = strings.ReplaceAll(words[i], empty, "")
	}
	if i := 1 + w.IntN(len(words)-1); w.IntN(20) == 0 {
		words = slices.Replace(words, i, i+pick(w.Rand, 0, 1, 1), pick(w.Rand, wrongWords...))
	}
	return words
}

func (w *walk) quantity() int64 {
	return pick(w.Rand, 1, 1, 1, 1, 0, 2, 5, w.Int64N(100), -1, -w.Int64N(100), funnel.MaxLimit+1)
}

func (w *walk) throttle() string {
	return fmt.Sprint(pick(w.Rand, 0, 1, 15, w.Int64N(1000)), " ", pick(w.Rand, 1, 7, 30, 1+w.Int64N(1000)), " ", pick(w.Rand, 1, 60, 1000, 60_000), " ", w.quantity())
}

func (w *walk) window() string {
	return fmt.Sprint(pick(w.Rand, 3, 10, 121, 200, 1000, 1+w.Int64N(1e6)), " ", pick(w.Rand, 10, 60, 777, 60_000), " ", w.quantity(), pick(w.Rand, "", " EXACT"))
}

func (w *walk) quota() string {
	return fmt.Sprint(pick(w.Rand, 1, 9, 100), " ", pick(w.Rand, 10, 60, 2000), " ", w.quantity(), pick(w.Rand, "", fmt.Sprint(" ALIGN ", w.IntN(30)-15)))
}

func (w *walk) lease() string {
	return fmt.Sprint(pick(w.Rand, 1, 5, 10, 100), " ", pick(w.Rand, 1, 60, 500, 60_000), " ", w.IntN(30))
}

// clauses returns the words of GO.ALL for some of these keys, in any order.
func (w *walk) clauses(throttle, window, quota, lease string) string {
	var keys []string
	for kind, key := range []string{throttle, window, quota, lease} {
		clause := []func() string{w.throttle, w.window, w.quota, w.lease}[kind]
		name := []string{"THROTTLE", "WINDOW", "QUOTA", "LEASE"}[kind]
		text := key + " " + name + " " + clause()
		for kind == 0 && w.IntN(2) == 0 {
			text += " THROTTLE " + w.throttle()
		}
		keys = append(keys, text)
	}
	w.Shuffle(4, func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	text := strings.Join(keys[:1+w.IntN(4)], pick(w.Rand, " KEY ", " key "))
	if w.IntN(6) == 0 {
		text += " FORCE" // an error with LEASE
	}
	return text
}

func TestRandom(t *testing.T) {
	w := newWalk(t)
	for range rounds(20_000) {
		w.pass()
		w.meddle()
		w.call(w.words())
	}
	if testing.Short() {
		return // so few calls that a command may have none in order
	}
	for _, c := range commands.Table {
		if w.seen[c.Name] < rounds(40) && !c.NoKey {
			t.Errorf("seed %d: only %d calls of %s were in order", w.seed, w.seen[c.Name], c.Name)
		}
	}
	for _, what := range []string{"errors", "limited", "replicated", "while the clock leads"} {
		if w.seen[what] < rounds(50)/5 {
			t.Errorf("seed %d: only %d calls: %s", w.seed, w.seen[what], what)
		}
	}
}

// putRandom puts a random value at a key. Each value is near one of ours.
func putRandom(r *rand.Rand, h *fakehost.Host, key string) {
	number := func() string {
		n := pick(r, 0, 1, 7, -1, 60, r.Int64N(1000), -r.Int64N(1e12), r.Int64(), math.MaxInt64, math.MinInt64, h.Now()*1000+r.Int64N(1e12))
		return pick(r, strconv.FormatInt(n, 10), strconv.FormatInt(n, 10), strconv.FormatInt(h.Now()*1000+r.Int64N(1e12), 10), "x", "")
	}
	switch r.IntN(3) {
	case 0:
		text := pick(r, number(), number()+"@"+number(), fmt.Sprintf("%d@%d", r.Int64N(1e16), h.Now()*1000+r.Int64N(1e9)*1000))
		h.Put(key, textOf(mutated(r, text)))
	case 1:
		h.Put(key, hashOf())
		for i := range 1 + r.IntN(pick(r, 2, 3, 33)) {
			h.PutField(key, strconv.Itoa(4*i), pick(r, tat(h, r.Int64N(1e10)), tat(h, r.Int64N(1e10)), tat(h, 0), number()))
			h.PutField(key, strconv.Itoa(4*i+1), pick(r, "60", "1", "-7", number()))
			if r.IntN(3) == 0 {
				h.PutField(key, strconv.Itoa(4*i+2), pick(r, "0", "1", number()))
				h.PutField(key, strconv.Itoa(4*i+3), pick(r, "7", "7", number()))
			}
			if r.IntN(4) == 0 {
				h.PutField(key, strconv.Itoa(128+i), pick(r, tat(h, r.Int64N(1e10)), number()))
			}
		}
		if r.IntN(8) == 0 {
			h.PutField(key, mutated(r, number()), number())
		}
	default:
		h.Put(key, zsetOf())
		prefix := pick(r, "\x01", "\x02", "\x01", "\x02", "\x03", "")
		for range 1 + r.IntN(pick(r, 1, 5, 300)) {
			text := prefix + strconv.FormatUint(r.Uint64N(pick[uint64](r, 100, math.MaxUint64)), 36) + pick(r, "", "", ":2", ":7:3", ":zzzzzzzzzzzzz")
			score := pick(r, -float64(h.Now()+r.Int64N(1e9)-1e8), -float64(h.Now()), -float64(h.Now()))
			if r.IntN(50) == 0 {
				text, score = mutated(r, text), pick(r, score, r.NormFloat64()*1e16, math.Inf(1), math.Inf(-1))
			}
			h.PutMember(key, score, text)
		}
	}
	if r.IntN(2) == 0 {
		h.Expire(key, h.Now()/1000+r.Int64N(pick[int64](r, 1, 100_000, math.MaxInt64-h.Now())))
	}
}

// mutated changes some bytes of a text.
func mutated(r *rand.Rand, text string) string {
	b := []byte(text)
	for r.IntN(3) == 0 && len(b) > 0 {
		switch i := r.IntN(len(b)); r.IntN(3) {
		case 0:
			b[i] = byte(r.Uint32())
		case 1:
			b = append(b[:i], b[i+1:]...)
		default:
			b = append(b, b[i:]...)
		}
	}
	return string(b)
}
