package main

import (
	"fmt"
	"math/big"
	"strings"

	"gothrottle/funnel"
	"gothrottle/funnel/oracle"
)

// model holds what the databases of a server must hold, as exact models of package oracle.
type model struct {
	dbs   []map[string]*entry
	now   funnel.Micros // the module's clock
	wall  funnel.Micros // the server's clock
	blur  int64         // how far the server's clock may be from wall, in ms
	rules policies
}

const databases = 2

func newModel() *model {
	m := &model{rules: policies{}}
	m.clear()
	return m
}

func (m *model) clear() {
	m.dbs = nil
	for range databases {
		m.dbs = append(m.dbs, map[string]*entry{})
	}
}

// entry is what a key holds.
type entry struct {
	kind    byte // t, w, q, l: a limiter; f: something else; u: not known
	cells   []*oracle.Throttle
	adopted bool // the cell is redis-cell's string
	tainted bool // a hash that has a foreign field as well
	window  *oracle.Window
	period  funnel.Micros // of the window
	quota   *oracle.Quota
	lease   *oracle.Lease
	typ     string // of kind f
	expire  int64  // the expiry that a user set, ms since the Unix epoch; 0: none is known
	free    bool   // the key may have no expiry
	latest  int64  // the latest expiry that the last call may have left, ms since the Unix epoch; 0: not known
}

func (e *entry) clone() *entry {
	c := *e
	c.cells = nil
	for _, o := range e.cells {
		c.cells = append(c.cells, o.Clone())
	}
	switch e.kind {
	case 'w':
		c.window = e.window.Clone()
	case 'q':
		c.quota = e.quota.Clone()
	case 'l':
		c.lease = e.lease.Clone()
	}
	return &c
}

func newEntry(kind byte) *entry {
	return &entry{kind: kind, window: new(oracle.Window), quota: new(oracle.Quota), lease: new(oracle.Lease)}
}

// void reports whether the key need not exist.
func (m *model) void(e *entry) bool {
	if e == nil {
		return true
	}
	switch e.kind {
	case 't':
		for _, o := range e.cells {
			if !o.Void(m.now.Nanos()) {
				return false
			}
		}
		return !e.tainted
	case 'w':
		return e.window.Void(m.now, e.period)
	case 'q':
		return e.quota.Void(m.now)
	case 'l':
		return e.lease.Void(m.now)
	}
	return false
}

// at returns what a key holds, nil if the key is absent or a limiter with nothing in use.
func (m *model) at(db int, name string) *entry {
	e := m.dbs[db][name]
	if e == nil {
		return nil
	}
	switch past := int64(m.wall/1000) - e.expire; {
	case e.expire == 0 || past < -m.blur:
	case past > m.blur:
		return nil // the entry stays: if the clock is set back, the key may be there again
	case m.blur > 0:
		m.forget(db, name)
		return m.dbs[db][name]
	}
	if e.tainted && !e.free && m.cellsVoid(e) { // the key may have expired
		m.forget(db, name)
		return m.dbs[db][name]
	}
	return e
}

func (m *model) cellsVoid(e *entry) bool {
	c := *e
	c.tainted = false
	return m.void(&c)
}

// forget says that nothing is known of a key.
func (m *model) forget(db int, name string) {
	m.dbs[db][name] = &entry{kind: 'u', free: true}
}

// want is what a reply must be.
type want struct {
	any    bool   // anything but an internal error
	text   string // of a reply that is no error
	err    string // the first word of an error
	inside string // of a reply that is no error: it contains this
	commit func() // the model takes what the call does
}

func (w *want) String() string {
	if w.any {
		return "anything"
	}
	if w.err != "" {
		return w.err + " .."
	}
	return w.text + w.inside
}

// fits reports whether a reply is what is wanted. Errors begin with a minus sign.
func (w *want) fits(reply string) bool {
	switch {
	case strings.Contains(reply, "internal error"):
		return false
	case w.any:
		return true
	case w.err != "":
		return strings.HasPrefix(reply, "-"+w.err)
	case w.inside != "":
		return strings.Contains(reply, w.inside)
	}
	return reply == w.text
}

func wrong(err string) want { return want{err: err, commit: func() {}} }

// call decides a call of one of the module's commands. If fresh is set, the keys of the call are
// taken to be absent.
func (m *model) call(db int, words []string, fresh bool) want {
	c, ok := parse(words, m.rules)
	switch {
	case !ok:
		return wrong("ERR")
	case c.name == "GO.TOP":
		return want{inside: "[", commit: func() {}}
	case fresh && c.name == "GO.INFO":
		return m.info(nil)
	case fresh && c.name == "GO.RELEASE":
		return want{text: "0", commit: func() { delete(m.dbs[db], c.key) }}
	case c.name == "GO.INFO":
		return m.info(m.at(db, c.key))
	case c.name == "GO.RELEASE":
		return m.release(db, &c)
	}
	return m.decide(db, &c, fresh)
}

// keyed is a key of a call: the entry before the call, and a copy that takes the call.
type keyed struct {
	before, after *entry
	changed       bool
	rate          funnel.Rate  // of the clause for the first cell
	slack         funnel.Nanos // four times the slack of the expiry; the least of the clauses that changed the key
}

// change says that a clause changed the key.
func (k *keyed) change(slack funnel.Nanos) {
	if !k.changed || slack < k.slack {
		k.slack = slack
	}
	k.changed = true
}

// latest returns the latest expiry that a call may leave at a key that it changed.
func (m *model) latest(k *keyed) int64 {
	end, e := m.now, k.after
	switch e.kind {
	case 't':
		for _, o := range e.cells {
			empty, _ := o.State()
			nanos := new(big.Int).Div(empty.Num(), empty.Denom())
			end = max(end, funnel.Micros(nanos.Int64()/1000)+1, funnel.Micros(o.Locked()/1000)+1)
		}
	case 'w':
		end += e.period
	case 'q':
		_, at := e.quota.State()
		end = max(end, at)
	case 'l':
		for _, at := range e.lease.Held(m.now) {
			end = max(end, at)
		}
	}
	return int64(end/1000) + 1 + max(1000, int64(k.slack/funnel.Millisecond)/4)
}

func (m *model) decide(db int, c *call, fresh bool) want {
	keys := map[string]*keyed{}
	for i := range c.clauses {
		cl := &c.clauses[i]
		k := keys[cl.key]
		if k == nil {
			k = &keyed{before: m.at(db, cl.key)}
			if fresh {
				k.before = nil
			}
			keys[cl.key] = k
		}
		if m.vague(k.before, cl) {
			return m.unclear(db, c)
		}
	}
	all := make([]decision, len(c.clauses))
	for i := range c.clauses {
		cl := &c.clauses[i]
		k := keys[cl.key]
		if err := mismatch(k.before, cl.kind); err != "" {
			return wrong(err)
		}
		if k.after == nil {
			k.after = newEntry(cl.kind)
			if k.before != nil {
				k.after = k.before.clone()
			}
		}
		if all[i] = m.clause(k, cl); all[i].v.TooMuch {
			return wrong("ERR")
		}
	}
	w := want{}
	if c.nested {
		w.text = m.settleAll(c, all)
	} else {
		w.text = m.settleOne(c, &all[0])
	}
	w.commit = func() {
		for name, k := range keys {
			if k.changed && !c.ro {
				k.after.expire, k.after.free = 0, false
				k.after.latest = m.latest(k)
				m.dbs[db][name] = k.after
			}
		}
	}
	return w
}

// unclear is the answer to a call of which the outcome is not known.
func (m *model) unclear(db int, c *call) want {
	return want{any: true, commit: func() {
		for i := range c.clauses {
			if !c.ro {
				m.forget(db, c.clauses[i].key)
			}
		}
	}}
}

// vague reports whether it is not known what a clause finds at a key.
func (m *model) vague(e *entry, cl *clause) bool {
	switch {
	case e == nil:
		return false
	case e.kind == 'u':
		return true
	case e.kind == 'w' && cl.kind == 'w':
		return e.period != cl.window.Period && !(e.period == 0)
	}
	return e.kind != 'f' && e.kind != cl.kind && m.void(e)
}

// mismatch returns the error of a clause of this kind at a key that holds something else, "" if
// there is none.
func mismatch(e *entry, kind byte) string {
	if e == nil || e.kind == kind && !e.tainted {
		return ""
	}
	holds := e.typ
	switch {
	case e.adopted, e.kind == 'q':
		holds = "string"
	case e.kind == 't':
		holds = "hash"
	case e.kind == 'w', e.kind == 'l':
		holds = "zset"
	}
	if holds == map[byte]string{'t': "hash", 'w': "zset", 'l': "zset", 'q': "string"}[kind] {
		return "ERR"
	}
	return "WRONGTYPE"
}

func (m *model) release(db int, c *call) want {
	e := m.at(db, c.key)
	switch {
	case e == nil:
		return want{text: "0", commit: func() {}}
	case e.kind == 'u', e.kind != 'f' && e.kind != 'l' && m.void(e), e.kind == 'l' && (e.expire > 0 || e.free):
		return want{any: true, commit: func() { m.forget(db, c.key) }}
	}
	if err := mismatch(e, 'l'); err != "" {
		return wrong(err)
	}
	after, n := e.clone(), 0
	for _, id := range c.ids {
		if after.lease.Release(m.now, id) {
			n++
		}
	}
	after.latest = 0
	return want{text: fmt.Sprint(n), commit: func() { m.dbs[db][c.key] = after }}
}

// info is what GO.INFO must tell.
func (m *model) info(e *entry) want {
	w := want{any: true, commit: func() {}}
	switch {
	case e == nil:
		w.any, w.text = false, "<nil>"
	case e.kind == 'u' || m.void(e):
	case e.tainted, e.kind == 'f':
		w.any, w.err = false, "ERR"
		if e.typ == "list" {
			w.err = "WRONGTYPE"
		}
	case e.kind == 'q':
		used, _ := e.quota.State()
		w.any, w.inside = false, fmt.Sprintf(" used:%d ", used)
	case e.kind == 'l':
		w.any, w.inside = false, fmt.Sprintf(" held:%d ", len(e.lease.Held(m.now)))
	default:
		w.any, w.inside = false, "kind:"+map[byte]string{'t': "throttle", 'w': "window"}[e.kind]
	}
	return w
}
