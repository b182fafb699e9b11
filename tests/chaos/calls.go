package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"gothrottle/commands"
	"gothrottle/tests/corpus"
)

// sent is calls that one client sends together, and what came back.
type sent struct {
	db      int
	calls   []words
	replies []string
	failed  string   // a reply that is not that of the calls
	whole   bool     // the server makes all of the calls or none
	keys    []string // of the calls, if they are read before; else nil
	gone    []string // those of them that were not there
}

// calls makes calls and compares each reply with the model.
func (r *run) calls(st *step) {
	if st.N > 0 {
		r.deleteKeys(func(db int, name string) bool {
			d := r.m.dbs[db]
			return d.doubt[name] || st.N == 2 && !d.exact.Known(name)
		})
	}
	// A limiter looks different to a module whose clock is behind. So the replica is asked while the
	// two clocks agree.
	switch {
	case st.Via == "replica" && r.twin.module.Last == r.m.now:
		r.inStep()
		c := r.twin.connect(2 + st.Conn%2)
		defer c.Close()
		r.check(send(c, st.DB, "plain", st.Calls))
	case st.Via == "parallel":
		r.parallel(st.DB, st.Calls)
	default:
		r.check(send(r.master.conn(st.Conn), st.DB, st.Via, st.Calls))
	}
}

// parallel shares calls out to all clients by their keys: no two clients use the same key, so the order of the clients does
// not matter. Calls with several keys come last.
func (r *run) parallel(db int, calls []words) {
	var groups [numConns + 1][]words
	for _, w := range calls {
		at := numConns
		if keys := keysOf(w); len(keys) == 1 && keys[0] != "" {
			at = int(keys[0][len(keys[0])-1]) % numConns
		}
		groups[at] = append(groups[at], w)
	}
	var results [numConns]sent
	var wait sync.WaitGroup
	for i := range results {
		c := r.master.conn(i)
		wait.Go(func() { results[i] = send(c, db, "plain", groups[i]) })
	}
	wait.Wait()
	for _, s := range append(results[:], send(r.master.conn(0), db, "plain", groups[numConns])) {
		r.check(s)
	}
}

// send sends calls to a server. With via "look", they are one transaction that begins with what their keys hold.
func send(c *redis.Client, db int, via string, calls []words) sent {
	p := c.Pipeline()
	p.Do(ctx, "SELECT", db)
	multi, script := via == "multi" || via == "look", via == "eval" || via == "fcall"
	if multi {
		calls = slices.DeleteFunc(slices.Clone(calls), tooFew)
	}
	s := sent{db: db, calls: calls, whole: multi || script}
	if multi {
		p.Do(ctx, "MULTI")
	}
	if via == "look" {
		s.keys = allKeys(calls)
		p.Eval(ctx, corpus.ReadKeys, s.keys)
	}
	if script {
		p.Do(ctx, asScript(via, calls)...)
	} else {
		for _, words := range calls {
			p.Do(ctx, corpus.Args(words)...)
		}
	}
	if multi {
		p.Do(ctx, "EXEC")
	}
	cmds, _ := p.Exec(ctx)
	if s.whole {
		s.read(cmds[len(cmds)-1].(*redis.Cmd))
		return s
	}
	for _, c := range cmds[1:] {
		s.replies = append(s.replies, replyText(c.(*redis.Cmd)))
	}
	return s
}

// read takes the replies out of the reply to a transaction or a script.
func (s *sent) read(c *redis.Cmd) {
	v, err := c.Slice()
	if s.keys != nil && len(v) > 0 {
		for key, found := range corpus.Values(s.keys, v[0].([]any)) {
			if found == nil {
				s.gone = append(s.gone, key)
			}
		}
		v = v[1:]
	}
	for i := range v {
		s.replies = append(s.replies, text(v[i]))
	}
	switch whole := replyText(c); {
	case whole == lost:
		s.replies = slices.Repeat([]string{lost}, len(s.calls))
	case err != nil || len(v) != len(s.calls):
		s.failed = whole
	}
}

// check compares replies with the model, which makes the calls.
func (r *run) check(s sent) {
	if s.failed != "" {
		r.differ("the calls %q got the reply %s", s.calls, s.failed)
	}
	for _, key := range s.gone {
		r.m.dbs[s.db].Put(key, nil)
	}
	for i, words := range s.calls {
		if s.replies[i] == lost {
			s.calls = s.calls[i:]
			r.lost = &s
			return
		}
		r.checkOne(s.db, words, s.replies[i])
	}
}

func (r *run) checkOne(db int, words []string, reply string) {
	r.stats.tally[numCalls]++
	if r.m.doubtful(db, words) && !strings.Contains(reply, "internal error") {
		r.m.doubt(db, words)
		return
	}
	want, exact := r.m.call(db, words)
	if r.stats.tally[numChecks]++; !fits(words, reply, want) {
		r.differ("%q in database %d, module's clock %d: reply %s, want %s%s", words, db, r.m.now, reply, want, r.shown(db, words))
	}
	if exact == "" {
		return
	}
	if r.stats.tally[numExact]++; reply != exact && (reply[0] != '-' || exact[0] != '-') {
		r.differ("%q in database %d, module's clock %d: reply %s, the exact models want %s%s", words, db, r.m.now, reply, exact, r.shown(db, words))
	}
}

// fits reports whether a reply is what is wanted. A script may write more after an error, and the server itself replies to
// a call with too few words. What GO.TOP counts is not known.
func fits(words []string, reply, want string) bool {
	switch {
	case strings.Contains(reply, "internal error"):
		return false
	case commands.Find(words[0]).NoKey && want[0] == '[':
		return reply[0] == '['
	case tooFew(words):
		return strings.HasPrefix(reply, "-ERR")
	}
	return reply == want
}

// shown says what the first key of a call holds after the calls.
func (r *run) shown(db int, words []string) (b string) {
	for _, key := range keysOf(words)[:min(1, len(keysOf(words)))] {
		for _, s := range []*server{r.master, r.twin} {
			values, err := s.read(db, key)
			b += fmt.Sprintf("; now the %s holds %s", s.name, show(values[key], err))
		}
		b += "; the model holds " + show(r.m.dbs[db].Get(key), nil)
	}
	return b
}

// settle finds out which of the calls that got no reply were made: the first few, until nothing differs, or all or none if
// the server makes them as a whole.
func (r *run) settle() {
	s := r.lost
	if s == nil {
		return
	}
	r.lost = nil
	all := r.dataset(r.master)
	differs := func() error { return attempt(func() { r.holds(all) }) }
	err := differs()
	for i := 0; err != nil && i < len(s.calls); i++ {
		if words := s.calls[i]; r.m.doubtful(s.db, words) {
			r.m.doubt(s.db, words)
		} else {
			r.m.call(s.db, words)
		}
		if !s.whole || i == len(s.calls)-1 {
			err = differs()
		}
	}
	must(err)
}
