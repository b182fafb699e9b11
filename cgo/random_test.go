package cgo_test

// Transcripts hold few calls. Here calls are random, in any order, on keys that users change
// and that expire, while the clock is set forward and back. Package memory runs the same handlers over maps, so what
// differs is what loads, applies, replicates or replies.

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
	"gothrottle/commands"
	"gothrottle/commands/memory"
	"gothrottle/funnel"
	"gothrottle/tests/corpus"
	"gothrottle/tests/world"
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

// walk is a random walk over the keys of a server. A model of the module's clock follows while the server's clock is set.
type walk struct {
	*world.Generator
	t        *testing.T
	seed     uint64
	calls    int
	h        *fakehost.Host
	memory   *corpus.Memory
	clock    funnel.Clock
	mono     funnel.Micros
	now      funnel.Micros // what the module's clock must say
	keys     []string
	info     map[string]int // what the numbers of INFO must be
	policies world.Policies
	seen     map[string]int // how many calls were so
}

func newWalk(t *testing.T) *walk {
	w := &walk{seed: rand.Uint64(), t: t, h: loaded(t), memory: corpus.NewMemory(), seen: map[string]int{}}
	w.Generator = world.NewGenerator(w.seed, 0)
	w.Holds = true
	w.keys = []string{"t0", "t1", "t2", "t3", "w0", "w1", "w2", "q0", "q1", "l0", "l1", "api:0", "login:1"}
	policies := world.PolicyTexts[0]
	if err, text := w.memory.SetPolicies(policies), w.h.ConfigSet("gothrottle.policies", policies); err != nil || text != "" {
		t.Fatal(err, text)
	}
	if w.IntN(4) == 0 {
		w.h.Restart(3600 * second) // a server whose clock begins in 1970
	}
	w.policies, w.info = world.NewPolicies(policies), numbers(w.h)
	return w
}

// pass lets time pass, mostly little. Once in 100 calls it also sets the server's clock.
func (w *walk) pass() {
	micros := w.Int64N(world.Pick[int64](w.Rand, 1, 1000, second/10, second/10, 5*second, 100*second))
	w.h.Advance(micros)
	w.mono += funnel.Micros(micros)
	switch w.IntN(200) {
	case 0:
		w.h.SetNow(max(w.h.Now()-w.Int64N(50*second), second))
	case 1:
		w.h.SetNow(w.h.Now() + w.Int64N(50*second))
	}
	w.now = w.clock.Now(funnel.Micros(w.h.Now()), func() funnel.Micros { return w.mono })
	if lead := number(w.t, w.h, "clock_lead_us"); lead != int(w.now)-int(w.h.Now()) {
		w.t.Fatalf("seed %d, call %d: INFO has a lead of %d µs; the next call is at %d, the server's clock at %d", w.seed, w.calls, lead, w.now, w.h.Now())
	}
}

// meddle changes a key now and then, as a user might.
func (w *walk) meddle() {
	switch key, n := world.Pick(w.Rand, w.keys...), w.IntN(60); {
	case n < 2 && w.h.Get(key) != nil && !w.empty(key):
		w.h.Expire(key, world.Pick(w.Rand, 0, w.h.Now()/1000+w.Int64N(20_000)))
	case n < 7:
		w.corrupt(key)
	case n == 7:
		w.h.Put(key, list)
	case n == 8:
		w.h.Put(key, textOf(tat(w.h, w.Int64N(1e11)))) // as redis-cell
	case n == 9: // in Valkey 9.1 HPEXPIRE and then COPY leave a hash of length 0
		w.h.Put(key, world.Pick(w.Rand, hashOf(), zsetOf()))
	case n == 10 && w.IntN(4) == 0:
		w.h.Put(key, w.crowd(key))
	case n < 20:
		w.h.Delete(key)
	}
}

func (w *walk) empty(key string) bool {
	v := w.h.Get(key)
	return v != nil && v.Empty()
}

// crowd returns hundreds of slots or, for a window's key, of units. Some may have lapsed, of which a call clears 128. Some
// lapse now, or a microsecond earlier or later.
func (w *walk) crowd(key string) *memory.Value {
	const step = second / 4
	at, n := w.h.Now()+(w.Int64N(400)-200)*step+w.Int64N(100), w.IntN(300)
	return many(n, func(i int) member {
		if key[0] == 'w' { // no two entries have one time, and a later one has a greater total
			at -= world.Pick[int64](w.Rand, 1, step)
			return scored(-float64(at), "\x01"+strconv.FormatInt(int64(n-i), 36))
		}
		at -= world.Pick[int64](w.Rand, 0, 0, 1, step)
		return scored(-float64(at), fmt.Sprintf("\x02%03d", i))
	})
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
	row, empty := commands.Find(words[0]), slices.ContainsFunc(used, w.empty)
	want, effects := w.expects(words, used)
	toWrite, looked := w.h.Count(fakehost.ForWriting), w.h.Count(fakehost.Looked)
	got := w.h.Call(words...)
	call, known := w.policies.Parse(words)
	if what := w.counted(row, words, got, call, known); what != "" {
		fail("INFO counts", what, nil)
	}
	// The server keeps the encoding of a string at which the module does not look.
	mayLook := slices.ContainsFunc(call.Clauses, func(c world.Clause) bool { return w.mayBeOurs(before[c.Key], c.Kind) })
	if now := w.h.Count(fakehost.Looked); now != looked && !mayLook && (known || row.Name == "GO.INFO") {
		fail("strings looked at:", now, looked)
	}
	if empty && (fmt.Sprint(got) == wrongType || row.Name == "GO.INFO") {
		return // package memory has no such keys
	}
	// The error for a hash that isn't a limiter depends on the order of its fields.
	if one := strings.NewReplacer(damaged, foreign); one.Replace(fmt.Sprint(got)) != one.Replace(fmt.Sprint(want)) {
		fail("the reply is", fmt.Sprint(got), fmt.Sprint(want))
	}
	if row.Name != "GO.INFO" && !wellFormed(got) {
		fail("the reply is not well-formed:", got, nil)
	}
	if now := w.h.Count(fakehost.ForWriting); now != toWrite && !row.Writes() {
		fail("keys opened for writing:", now, toWrite)
	}
	replicated := slices.DeleteFunc(slices.Clone(w.h.Effects()), func(effect []string) bool {
		return slices.Contains(w.h.Events(), fakehost.Event{Class: 1 << 8, Name: "expired", Key: effect[1]}) && effect[0] == "DEL"
	})
	// While the clock leads, package memory may take a key for expired that the server still has. A key that it does not have is
	// made, and so comes last.
	if leads := int64(w.now) > w.h.Now(); leads {
		w.seen["while the clock leads"]++
	} else if !empty && !slices.EqualFunc(replicated, effects, slices.Equal) {
		fail("replicated is", replicated, effects)
	}
	if r.follow(w.t, w.h, words[0], used...); w.t.Failed() || w.h.Log() != nil {
		fail("the log is", w.h.Log(), nil)
	}
	w.count(row.Name, got, len(replicated))
	w.h.Call("GO.INFO", "none") // some errors come before the module reads its clock
	w.info["info_other"]++
}

// wellFormed reports whether a decision has no more left than its limit, and no time in the past.
func wellFormed(reply any) bool {
	all, _ := reply.([]any)
	for i, part := range all {
		if n, ok := part.(int64); !wellFormed(part) || ok && len(all) > 4 && (n < 0 && i < 3 || n < -1 && i < 5 || i == 0 && n > 1 || i == 2 && n > all[1].(int64)) {
			return false
		}
	}
	return true
}

// mayBeOurs reports whether a string has the length of those that a kind of limiter takes: rates take those of redis-cell.
func (w *walk) mayBeOurs(v *memory.Value, kind byte) bool {
	n := commands.MinQuotaLen
	if v != nil && !v.Expired(funnel.Micros(w.h.Now())) {
		n = len(v.Text)
	}
	return kind == 't' && n == commands.AdoptedLen || kind == 'q' && n >= commands.MinQuotaLen && n <= commands.MaxQuotaLen
}

// counted returns the numbers of INFO that a call has made wrong. Only calls that ask for units are admitted or limited: peeks,
// refunds and releases are other calls. A policy's near calls are those admitted ones that left at most a tenth of a limit.
func (w *walk) counted(row *commands.Command, words []string, reply any, call *world.Call, known bool) (wrong string) {
	outcome, near := "other", false
	all, _ := reply.([]any)
	switch asks := func(c world.Clause) bool { return c.Quantity > 0 && !c.Raise }; {
	case isError(reply):
		outcome = "errors"
	case slices.ContainsFunc(call.Clauses, asks):
		outcome = map[any]string{int64(0): "admitted", int64(1): "limited"}[all[0]]
		for _, part := range all {
			if inner, nested := part.([]any); nested && call.Shadow && inner[0] == int64(1) {
				outcome = "shadowed"
			} else if nested {
				near = near || inner[2].(int64) <= inner[1].(int64)/10
			}
		}
	}
	w.info[row.InfoName()+"_"+outcome]++
	if policy, _, _ := strings.Cut("policies_"+words[1], ":"); strings.HasPrefix(row.Name, "GO.POLICY") && outcome != "errors" {
		w.info[policy+"_"+outcome]++
		w.info[policy+"_near"] += map[bool]int{true: 1}[near && outcome == "admitted"]
	}
	now := numbers(w.h)
	for field, n := range now {
		if n != w.info[field] && field != "clock_lead_us" && (known || outcome == "errors" || row.Name == "GO.INFO") {
			wrong += fmt.Sprintf("%s %d, want %d; ", field, n, w.info[field])
		}
	}
	w.info = now
	return wrong
}

func (w *walk) count(name string, reply any, replicated int) {
	if isError(reply) {
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

// words returns a random call that the server hands to the module, and that uses keys.
func (w *walk) words() []string {
	for {
		words := w.Call()
		if row := commands.Find(words[0]); !row.NoKey && (len(words) == row.Arity || row.Arity < 0 && len(words) >= -row.Arity) {
			return words
		}
	}
}

func TestRandom(t *testing.T) {
	w := newWalk(t)
	for range rounds(20_000) {
		w.pass()
		w.meddle()
		w.call(w.words())
	}
	if rounds(20_000) < 20_000 {
		return // so few calls that a command may have none in order
	}
	want := []string{"errors", "limited", "replicated", "while the clock leads"}
	for _, c := range commands.Table {
		if !c.NoKey {
			want = append(want, c.Name)
		}
	}
	for _, what := range want {
		if w.seen[what] < 40 {
			t.Errorf("seed %d: only %d calls: %s", w.seed, w.seen[what], what)
		}
	}
}

// Before every other call, one of its keys comes to hold what no limiter has written.
func TestRandom_damaged(t *testing.T) {
	w := newWalk(t)
	for range rounds(20_000) {
		w.pass()
		words := w.words()
		if i := w.IntN(2 * len(words)); i > 0 && i < len(words) && isKey.MatchString(words[i]) {
			for _, line := range w.Damaged(words[i], words[i][0], int64(w.now)) {
				_, _ = w.memory.Do(0, line...)
			}
			w.h.Put(words[i], w.memory.Get(words[i]))
		}
		w.call(words)
	}
}

// corrupt changes something in what a key holds. What it holds then may be damaged, foreign, or another limiter.
func (w *walk) corrupt(key string) {
	v := w.h.Get(key)
	if v == nil {
		return
	}
	switch n := len(v.Fields) + len(v.Set); {
	case v.Kind == commands.KindString:
		v.Text = w.mutated(v.Text)
	case len(v.Fields) > 0:
		field := &v.Fields[w.IntN(n)]
		if w.IntN(4) == 0 {
			field.Name = w.mutated(field.Name)
		}
		field.Text = world.Pick(w.Rand, "x", "", "0", "7", "-1", strconv.FormatInt(w.Int64(), 10), "9223372036854775807", tat(w.h, w.Int64N(1e12)), w.mutated(field.Text))
	case n > 0:
		m := v.Set[w.IntN(n)]
		v.Drop(m.Text)
		v.Add(member{Score: world.Pick(w.Rand, m.Score, m.Score-0.5, 0, -float64(w.h.Now()+w.Int64N(1e9)), math.Inf(1), w.NormFloat64()*1e16), Text: w.mutated(m.Text)})
	}
	w.h.Put(key, v)
}

// mutated changes a byte of a text, or doubles its end.
func (w *walk) mutated(text string) string {
	if text == "" {
		return "x"
	}
	i := w.IntN(len(text))
	return text[:i] + world.Pick(w.Rand, "", text[i:]+text[i:], string(rune(w.IntN(256)))+text[i+1:])
}

// Go allocates no memory for any call, whether it is admitted, denied or an error, and whatever its key holds. GO.TOP counts one
// key, so denied keys take each other's place. Only the errors that list what a clause needs, or suggest a time, take memory.
func TestAllocations(t *testing.T) {
	w := newWalk(t)
	w.h.ConfigSet("gothrottle.top-keys", "1")
	for range rounds(200) {
		var calls []fakehost.Prepared
		var lines []string
		for range 50 {
			words := w.words()
			if reply := fmt.Sprint(w.h.Call(words...)); strings.Contains(reply, "' needs ") || strings.Contains(reply, "is not a time") {
				continue
			}
			calls, lines = append(calls, w.h.Prepare(words...)), append(lines, strings.Join(words, " "))
		}
		w.meddle()
		allocations := func() float64 {
			return testing.AllocsPerRun(1, func() { // runs them twice
				for _, p := range calls {
					p.Run()
					w.h.Advance(9973)
				}
			})
		}
		n := allocations()
		for tries := 0; n != 0 && tries < 3; tries++ { // on a busy machine the runtime may make a thread meanwhile
			n = allocations()
		}
		if n != 0 {
			t.Fatalf("seed %d: %v allocations in the calls\n%s", w.seed, n, strings.Join(lines, "\n"))
		}
		for _, p := range calls {
			p.Free()
		}
	}
}

// isKey matches the keys of package world.
var isKey = regexp.MustCompile(`^[twql][0-4]$`)
