package main

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"

	"gothrottle/tests/corpus"
	"gothrottle/tests/world"
)

const (
	manyClients = 8
	manyCalls   = 12 // of a client in a round
	manySteps   = 4  // of the clock in a round
)

// manyRun is clients that make calls at the same time, while the clock steps and faults happen. Their replies must be those
// of calls that came one after the other: for each key they are linearizable. A call whose reply is lost was made or not.
// A seed decides the calls and the faults, but not which client is faster.
type manyRun struct {
	*run
	g       *world.Generator
	began   time.Time
	fault   *fault // of the round, or nil
	clients [manyClients]*redis.Client
	queues  [manyClients][]*manyCall // calls that are not made yet

	mu      sync.Mutex // of what follows, and the clock
	history []porcupine.Operation
	made    int // calls of the round
}

// performMany makes the rounds of a seed on new servers. It returns the first difference, or nil.
func performMany(l *lab, seed uint64, st *stats, until time.Time) error {
	m := &manyRun{run: newRun(l, st), g: world.NewGenerator(seed, 9), began: time.Now()}
	m.g.Tight, m.many = true, m.work
	return m.perform(*stepsFlag, until, func() { m.begin(nil) }, m.round, func() { m.copies(m.dataset(m.master)) })
}

// round makes calls on keys of its own. One round in five has a fault.
func (m *manyRun) round() {
	m.history, m.made, m.fault = nil, 0, nil
	for i := range m.queues {
		m.queues[i] = nil
		for range manyCalls {
			m.queues[i] = append(m.queues[i], m.ofOneKey())
		}
	}
	model := orders(m.m.wall)
	if m.g.IntN(5) == 0 {
		m.inStep()
		m.acknowledged()
		m.quiet(m.twin)
		st := drawFault(m.g.Rand, "", func(f *fault) int { return f.many })
		if m.fault = find(st.Do); st.Do == "sigstop" {
			st.N += 12 * millisecond // longer than hasty clients wait
		}
		m.stats.tally["fault "+st.Do]++
		m.fault.run(m.run, &st)
		m.observe()
	}
	m.work()
	m.end()
	m.stats.tally[numCalls] += len(m.history)
	switch porcupine.CheckOperationsTimeout(model, m.history, time.Minute) {
	case porcupine.Illegal:
		m.differ("no order of the calls explains the replies:\n%s", showHistory(m.history))
	case porcupine.Unknown:
		m.differ("not decided within a minute:\n%s", showHistory(m.history))
	}
}

// end waits for the calls whose replies were lost: by then each was made, or it never will be.
func (m *manyRun) end() {
	for id := range m.clients {
		if m.hangUpOne(id); len(m.queues[id]) > 0 {
			m.differ("the master takes no calls")
		}
	}
	for range 2 { // with the first reply the server may be in the midst of what had been sent to it
		must(m.master.client.Ping(ctx).Err())
	}
	end := m.time()
	m.observe()
	for i := range m.history {
		if o := &m.history[i]; o.Output == lost {
			o.Return = end
			m.stats.tally["replies that were lost"]++
		}
	}
}

// ofOneKey draws a call: porcupine decides for each key by itself, because no machine could for all keys at once.
func (m *manyRun) ofOneKey() *manyCall {
	for {
		w := m.g.Call()
		c, known := world.Policies{}.Parse(w)
		if known && !slices.ContainsFunc(c.Clauses, func(one world.Clause) bool { return one.Key != c.Clauses[0].Key }) {
			return &manyCall{c, w}
		}
	}
}

// acknowledged waits until both replicas have acknowledged a write since the clock's last step.
func (m *manyRun) acknowledged() {
	m.master.ask("INCR", "written")
	if n := m.master.ask("WAIT", 2, 0); n != "2" {
		m.differ("WAIT: %s", n)
	}
}

// work lets all clients make the calls that are not made yet, as long as the master takes calls.
func (m *manyRun) work() {
	var wait sync.WaitGroup
	for id := range m.queues {
		wait.Go(func() {
			for len(m.queues[id]) > 0 && m.call(id, m.queues[id][0]) {
				m.queues[id] = m.queues[id][1:]
				m.step()
			}
		})
	}
	wait.Wait()
}

// step counts a call, and now and then sets the clock forward.
func (m *manyRun) step() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.made++; m.made%(manyClients*manyCalls/(manySteps+1)) == 0 {
		// A failover whose replica times out never ends. A round is too short for an acknowledgement between its steps.
		now := m.m.wall + min(m.g.Step(), replTimeout*second/(manySteps+1))
		o := porcupine.Operation{ClientId: manyClients, Input: now, Call: m.time()}
		m.clock.Set(int64(now))
		o.Return, m.m.wall, m.m.now = m.time(), now, now
		m.history = append(m.history, o)
	}
}

// call makes a call. It is false if the master refuses it, so that another one can make it.
func (m *manyRun) call(id int, c *manyCall) bool {
	o := porcupine.Operation{ClientId: id, Input: c, Call: m.time()}
	p := m.client(id).Pipeline()
	cmd, known := p.Do(ctx, m.args(c)...), func() bool { return true }
	if m.fault != nil && m.fault.name == "master-lost" { // the reply is known only if both replicas have what was written before it
		p.Incr(ctx, "written") // else WAIT says nothing about a call that writes nothing
		wait := p.Do(ctx, "WAIT", 2, 1000)
		known = func() bool { return wait.Val() == int64(2) }
	}
	_, _ = p.Exec(ctx)
	reply := replyText(cmd)
	var dial *net.OpError
	if strings.HasPrefix(reply, "-READONLY") || errors.As(cmd.Err(), &dial) && dial.Op == "dial" {
		m.hangUpOne(id)
		return false
	}
	if reply == lost || !known() {
		m.hangUpOne(id)
		reply = lost
	}
	o.Output, o.Return = reply, m.time()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.history = append(m.history, o)
	return true
}

// client returns a client of the master. While the master is stopped, two clients are hasty: they wait 5 ms for a reply.
func (m *manyRun) client(id int) *redis.Client {
	if m.clients[id] == nil {
		m.clients[id] = m.master.Client(func(o *redis.Options) {
			if o.PoolSize = 1; id < 2 && m.fault != nil && m.fault.name == "sigstop" {
				o.ReadTimeout = 5 * time.Millisecond
			}
		})
	}
	return m.clients[id]
}

func (m *manyRun) hangUpOne(id int) {
	if m.clients[id] != nil {
		m.clients[id].Close()
	}
	m.clients[id] = nil
}

// args returns the words of a call, with the key of the round.
func (m *manyRun) args(c *manyCall) []any {
	w := slices.Clone(c.words)
	w[1] += fmt.Sprint(".", m.number) // quota2 of round 7 is not quota of round 27
	return corpus.Args(w)
}

// observe asks what is in use. So the checker knows early which of the calls were made whose replies were lost.
func (m *manyRun) observe() {
	for _, line := range []string{"GO.ALL p:k" + strings.Repeat(" THROTTLE 999 1 1s 0", 4) + " MS", "GO.QUOTA quota 1000 1s 0 MS", "GO.WINDOW window 1000 3s 0 MS"} {
		w := strings.Fields(line)
		c, _ := world.Policies{}.Parse(w)
		o := porcupine.Operation{ClientId: manyClients + 1, Input: &manyCall{c, w}, Call: m.time()}
		o.Output = m.master.ask(m.args(&manyCall{c, w})...)
		o.Return = m.time()
		m.history = append(m.history, o)
	}
}

func (m *manyRun) time() int64 { return time.Since(m.began).Nanoseconds() }
