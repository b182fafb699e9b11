package world

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"gothrottle/funnel"
	"gothrottle/tests/corpus"
	servers "gothrottle/tests/server"
)

// Calls of many clients at the same time reply as if they came one after the other: for each key they are linearizable. The
// clock steps meanwhile, and servers are paused, killed, and fail over. A call whose reply is lost may have been made or
// not. GOTHROTTLE_OPERATIONS is the number of calls, GOTHROTTLE_SEED the first seed. A seed decides
// the calls and the faults, but not which client is faster.
func TestServer_linearizable(t *testing.T) {
	servers.Needed(t, "test-server")
	operations := 100_000
	if testing.Short() {
		operations = 3000
	}
	operations, seed := number("GOTHROTTLE_OPERATIONS", operations), uint64(number("GOTHROTTLE_SEED", 1))
	l := newLinear(t)
	lost, began := 0, time.Now()
	for ; operations > 0; seed++ {
		history := l.round(seed)
		switch porcupine.CheckOperationsTimeout(linearModel(l.now), history, time.Minute) {
		case porcupine.Illegal:
			t.Fatalf("seed %d, with the fault %q: no order of the calls explains the replies:\n%s", seed, l.fault.name, show(history))
		case porcupine.Unknown:
			t.Fatalf("seed %d, with the fault %q: not decided within a minute:\n%s", seed, l.fault.name, show(history))
		}
		l.now, operations = l.after, operations-len(history)
		for _, o := range history {
			lost += int(one(o.Output == ""))
		}
	}
	t.Logf("the next seed is %d; %d replies lost, %v, in %.0f s", seed, lost, l.tally, time.Since(began).Seconds())
}

// linearState is what the key of a part of a round holds, and the clock.
type linearState struct {
	now  funnel.Micros
	keys Keys
	text string // differs for states that differ
}

func newLinearState(now funnel.Micros, keys Keys) linearState {
	return linearState{now, keys, fmt.Sprint(now, keys)}
}

var linearSeed = maphash.MakeSeed()

// The input of an operation is a call, or the time that the clock is set to. The output is a reply, "" if it was lost: then
// the call was made or not.
func linearModel(now funnel.Micros) porcupine.Model {
	type step struct {
		text  string
		input any // an operation's own
	}
	// The results of steps. The checker asks for each about twenty times: without this, some rounds take minutes.
	var known sync.Map
	m := porcupine.NondeterministicModel{
		Partition: byKey,
		Init:      func() []any { return []any{newLinearState(now, Keys{})} },
		Step: func(state, input, output any) []any {
			s := state.(linearState)
			next, found := known.Load(step{s.text, input})
			if !found {
				next, _ = known.LoadOrStore(step{s.text, input}, s.next(input, output))
			}
			return next.([]any)
		},
		Equal: func(a, b any) bool { return a.(linearState).text == b.(linearState).text },
		Hash:  func(state any) uint64 { return maphash.String(linearSeed, state.(linearState).text) },
	}
	return m.ToModel()
}

// next returns the states that an operation may lead to: none if the call replies something else.
func (s linearState) next(input, output any) []any {
	if now, clock := input.(funnel.Micros); clock {
		return []any{newLinearState(now, s.keys)}
	}
	call := input.(*linearCall)
	next := s.keys.Clone(call.keys()...)
	switch reply, _ := call.Reply(next, s.now); {
	case output == "":
		return []any{s, newLinearState(s.now, next)}
	case output == corpus.ReplyText(reply):
		return []any{newLinearState(s.now, next)}
	}
	return []any{}
}

func show(history []porcupine.Operation) (lines string) {
	slices.SortFunc(history, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	for _, o := range history {
		what := fmt.Sprint("the clock is set to ", o.Input)
		if c, call := o.Input.(*linearCall); call {
			what = fmt.Sprintf("%q: %q", c.words, o.Output)
		}
		lines += fmt.Sprintf("%9.3f to %9.3f ms, client %d, %s\n", float64(o.Call)/1e6, float64(o.Return)/1e6, o.ClientId, what)
	}
	return lines
}

// linearCall is a call, and its words.
type linearCall struct {
	*Call
	words Words
}

func newLinearCall(words Words) (c *linearCall, known bool) {
	call, known := Policies{}.Parse(words)
	return &linearCall{call, words}, known
}

const (
	linearClients = 8
	linearCalls   = 12 // of a client in a round
	linearSteps   = 4  // of the clock in a round
)

// round makes the calls of one seed, on keys of its own.
func (l *linear) round(seed uint64) (history []porcupine.Operation) {
	g := NewGenerator(seed, 9)
	g.Tight = true
	l.fault = pickFault(g.Rand)
	l.tally[l.fault.name]++
	l.suffix, l.after = fmt.Sprint(seed), l.now
	l.made.Store(0)
	l.breaks = int64(g.IntN(linearClients * linearCalls))
	var calls [linearClients][linearCalls]*linearCall
	for i := range calls {
		for j := range calls[i] {
			calls[i][j] = ofOneKey(g)
		}
	}
	steps := make([]funnel.Micros, linearSteps)
	for i := range steps {
		l.after += g.Step()
		steps[i] = l.after
	}
	var all [linearClients + 2][]porcupine.Operation
	var wait sync.WaitGroup
	for i := range calls {
		wait.Go(func() { all[i] = l.client(i, calls[i][:]) })
	}
	wait.Go(func() { all[linearClients] = l.steps(steps) })
	wait.Go(func() { all[linearClients+1] = l.breakDown() })
	wait.Wait()
	for id := range l.clients {
		l.hangUp(id)
	}
	for range 2 { // with the first reply the server may be in the midst of what had been sent to it
		_, err := l.nodes[l.master].Do("PING")
		l.check(err)
	}
	end := l.time() // by now a call whose reply was lost was made, or it never will be
	history = append(slices.Concat(all[:]...), l.observe()...)
	for i := range history {
		if o := &history[i]; o.Output == "" {
			o.Return = end
		}
	}
	return history
}

// ofOneKey draws a call: porcupine decides for each key by itself, because no machine could for all keys at once.
func ofOneKey(g *Generator) *linearCall {
	for {
		c, known := newLinearCall(g.Call())
		if known && !slices.ContainsFunc(c.Clauses, func(one Clause) bool { return one.Key != c.Clauses[0].Key }) {
			return c
		}
	}
}

// byKey has the operations of each key, and the steps of the clock in each part.
func byKey(history []porcupine.Operation) (parts [][]porcupine.Operation) {
	for _, key := range TightKeys {
		parts = append(parts, slices.DeleteFunc(slices.Clone(history), func(o porcupine.Operation) bool {
			c, call := o.Input.(*linearCall)
			return call && c.words[1] != key
		}))
	}
	return parts
}

// client makes calls, one after the other.
func (l *linear) client(id int, calls []*linearCall) (history []porcupine.Operation) {
	for _, c := range calls {
		o := porcupine.Operation{ClientId: id, Input: c, Call: l.time()}
		o.Output = l.call(id, l.args(c))
		if o.Return = l.time(); o.Output != refused {
			history = append(history, o)
		}
	}
	return history
}

// args returns the words of a call, with the keys of the round.
func (l *linear) args(c *linearCall) []any {
	words := slices.Clone(c.words)
	words[1] += l.suffix
	return corpus.Args(words)
}

// observe asks what is in use. So the checker knows early which of the calls were made whose replies were lost.
func (l *linear) observe() (history []porcupine.Operation) {
	for _, words := range []string{"GO.ALL p:k" + strings.Repeat(" THROTTLE 999 1 1s 0", 4) + " MS", "GO.QUOTA quota 1000 1s 0 MS", "GO.WINDOW window 1000 3s 0 MS"} {
		c, _ := newLinearCall(strings.Fields(words))
		o := porcupine.Operation{ClientId: linearClients + 1, Input: c, Call: l.time()}
		v, err := l.nodes[l.master].Do(l.args(c)...)
		l.check(err)
		o.Output, o.Return = corpus.ReplyText(v), l.time()
		history = append(history, o)
	}
	return history
}

// steps sets the clock forward while the clients make calls.
func (l *linear) steps(to []funnel.Micros) (history []porcupine.Operation) {
	for i, now := range to {
		for l.made.Load() < int64((i+1)*linearClients*linearCalls/(linearSteps+1)) {
			time.Sleep(50 * time.Microsecond)
		}
		o := porcupine.Operation{ClientId: linearClients, Input: now, Call: l.time()}
		l.clock.Set(int64(now))
		o.Return = l.time()
		history = append(history, o)
	}
	return history
}

func (l *linear) time() int64 { return time.Since(l.began).Nanoseconds() }

func newLinear(t *testing.T) *linear {
	l := &linear{t: t, clock: servers.FrozenClock(t, corpus.Epoch), now: corpus.Epoch, began: time.Now(), tally: map[string]int{}}
	for i := range l.nodes {
		l.nodes[i] = servers.New(t, servers.Options{Clock: l.clock, Args: []string{"--appendonly", "yes", "--appendfsync", "always",
			"--repl-timeout", "1000000000", "--repl-diskless-sync", "yes"}})
	}
	l.follow()
	return l
}
