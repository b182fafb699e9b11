package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"gothrottle/funnel"
)

// sent is calls that one client sends together, and what came back.
type sent struct {
	calls   [][]string
	replies []string
	now     funnel.Micros // the module's clock, if it was asked; 0: not known
	failed  string        // a reply that is not that of the calls
}

func (st *step) list() (all [][]string) {
	for _, w := range st.Calls {
		all = append(all, w)
	}
	return all
}

// calls makes calls and compares each reply with the model.
func (r *run) calls(st *step) error {
	list := st.list()
	if st.N == 1 {
		if err := r.deleteKeys("u"); err != nil {
			return err
		}
	}
	// A limiter looks different to a module whose clock is behind. So the replica is asked while the
	// two clocks agree.
	if st.Via == "replica" && !r.runs && r.twin.module.told == r.m.now {
		if err := r.inStep(); err != nil {
			return err
		}
		c := r.twin.connect(2 + st.Conn%2)
		defer c.Close()
		return r.check(st.DB, send(c, st.DB, "plain", list, false))
	}
	if st.Via == "parallel" {
		return r.parallel(st.DB, list)
	}
	if r.runs && (st.Via == "eval" || st.Via == "fcall") {
		return r.shortScripts(st, list)
	}
	start := time.Now()
	s := send(r.conn(st.Conn), st.DB, st.Via, list, r.runs)
	if len(list) == 1 {
		r.stats.took(time.Since(start))
	}
	return r.check(st.DB, s)
}

// shortScripts sends a few calls in each script: time may pass within a script.
func (r *run) shortScripts(st *step, list [][]string) error {
	for calls := range slices.Chunk(list[:min(len(list), 30)], 3) { // such a transaction may take 100 ms
		if err := r.check(st.DB, send(r.conn(st.Conn), st.DB, st.Via, calls, true)); err != nil {
			return err
		}
	}
	return nil
}

// parallel shares calls out to all clients by their keys: no two clients use the same key, so the
// order of the clients does not matter.
func (r *run) parallel(db int, list [][]string) error {
	var groups [numConns][][]string
	for _, words := range list {
		if isAll(words) {
			groups[0] = append(groups[0], words)
			continue
		}
		key := "0"
		if len(words) > 1 && words[1] != "" {
			key = words[1]
		}
		groups[int(key[len(key)-1])%numConns] = append(groups[int(key[len(key)-1])%numConns], words)
	}
	groups = apart(groups)
	var results [numConns]sent
	var wait sync.WaitGroup
	for i := range groups {
		c := r.conn(i)
		wait.Add(1)
		go func() {
			defer wait.Done()
			if len(groups[i]) > 0 {
				results[i] = send(c, db, "plain", groups[i], r.runs)
			}
		}()
	}
	wait.Wait()
	for i := range results {
		if len(groups[i]) > 0 {
			if err := r.check(db, results[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// apart moves the calls whose keys a call of the first group names into the first group.
func apart(groups [numConns][][]string) [numConns][][]string {
	named := map[string]bool{}
	for _, words := range groups[0] {
		for _, word := range words {
			named[word] = true
		}
	}
	for i := 1; i < numConns; i++ {
		groups[i] = slices.DeleteFunc(groups[i], func(words []string) bool {
			if len(words) > 1 && named[words[1]] {
				groups[0] = append(groups[0], words)
				return true
			}
			return false
		})
	}
	return groups
}

// send sends calls to a server. If ask is set, they are one transaction that also tells the time of
// the module's clock.
func send(c *redis.Client, db int, via string, calls [][]string, ask bool) (s sent) {
	s.calls = calls
	p := c.Pipeline()
	p.Do(ctx, "SELECT", db)
	multi := via == "multi" || ask
	if ask {
		s.calls = slices.DeleteFunc(slices.Clone(calls), tooFew)
		calls = s.calls
	}
	if multi {
		p.Do(ctx, "MULTI")
	}
	before := 0
	if ask {
		(*run)(nil).ask(p)
		before = 3
	}
	switch via {
	case "eval":
		p.Do(ctx, append([]any{"EVAL", script, 0}, flat(calls)...)...)
	case "fcall":
		p.Do(ctx, append([]any{"FCALL", "chaos", 0}, flat(calls)...)...)
	default:
		for _, words := range calls {
			p.Do(ctx, anys(words)...)
		}
	}
	if ask {
		(*run)(nil).ask(p)
	}
	if multi {
		p.Do(ctx, "EXEC")
	}
	cmds, _ := p.Exec(ctx)
	s.read(cmds, via, multi, before)
	return s
}

// read takes the replies out of those of a pipeline.
func (s *sent) read(cmds []redis.Cmder, via string, multi bool, before int) {
	last := cmds[len(cmds)-1].(*redis.Cmd)
	script := via == "eval" || via == "fcall"
	switch {
	case multi:
		v, err := last.Slice()
		switch {
		case replyText(last) == lost:
			s.lose()
		case err != nil || len(v) < 2*before:
			s.failed = replyText(last)
		default:
			s.readTransaction(v, before, script)
		}
	case script && replyText(last) == lost:
		s.lose()
	case script:
		s.replies, s.failed = within(last, s.calls)
	default:
		for i, words := range s.calls {
			s.replies = append(s.replies, reply(cmds[1+i].(*redis.Cmd), words))
		}
	}
}

func (s *sent) readTransaction(v []any, before int, script bool) {
	if before > 0 && text(v[before-1]) == text(v[len(v)-1]) { // no time passed
		_, end, _ := strings.Cut(text(v[before-1]), "@")
		if n, err := strconv.ParseInt(end, 10, 64); err == nil {
			s.now = funnel.Micros(n/1000) - probePeriod
		}
	}
	rest := v[before : len(v)-before]
	if script && len(rest) == 1 {
		inner, ok := rest[0].([]any)
		if !ok {
			s.failed = text(rest[0])
			return
		}
		rest = inner
	}
	s.replies, s.failed = each(rest, s.calls)
}

// lose says that no reply came.
func (s *sent) lose() {
	s.replies = slices.Repeat([]string{lost}, len(s.calls))
}

// check compares replies with the model, which takes the calls.
func (r *run) check(db int, s sent) error {
	if s.failed != "" && r.evicts != "" {
		return nil
	}
	if s.failed != "" {
		return r.differ("the calls %q got the reply %s", s.calls, s.failed)
	}
	if r.runs {
		r.m.wall = r.runningWall()
		if s.now != 0 {
			r.m.now = s.now
		}
	}
	for i, words := range s.calls {
		if s.replies[i] == lost || r.runs && s.now == 0 {
			r.lostCall(db, words)
			continue
		}
		if err := r.checkOne(db, words, s.replies[i]); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) checkOne(db int, words []string, reply string) error {
	r.stats.calls++
	want := r.m.call(db, words, false)
	fits := want.fits(reply)
	if fits && !want.any {
		r.stats.checks++
	}
	switch {
	case r.evicts != "" && strings.HasPrefix(reply, "-OOM"):
		return nil
	case r.evicts != "" && r.evicts != "noeviction":
		return r.checkEvicted(db, words, reply, &want)
	case fits:
		want.commit()
		return nil
	}
	return r.differ("%q in database %d, module's clock %d: reply %s, want %s%s", words, db, r.m.now, reply, want.String(), r.shown(db, words))
}

// checkEvicted compares a reply with the model while the server evicts keys. A key of the call may be gone.
// If the reply fits both states of the key, nothing is known of the key any more. Of a call with several
// keys only some may be gone, so then nothing is known either.
func (r *run) checkEvicted(db int, words []string, reply string, want *want) error {
	fresh := r.m.call(db, words, true)
	switch {
	case isAll(words) && !strings.Contains(reply, "internal error"), want.fits(reply) && fresh.fits(reply):
		r.lostCall(db, words)
	case want.fits(reply):
		want.commit()
	case fresh.fits(reply):
		fresh.commit()
	default:
		return r.differ("%q in database %d, while keys are evicted: reply %s, want %s or %s", words, db, reply, want, &fresh)
	}
	return nil
}

// shown tells what the first key of a call holds after the calls.
func (r *run) shown(db int, words []string) (b string) {
	if len(words) < 2 || r.master.Exited() {
		return ""
	}
	for _, s := range []*server{r.master, r.twin} {
		b += fmt.Sprintf("; now the %s holds %v", s.name, r.dataset(s)[fmt.Sprintf("%d %s", db, words[1])])
	}
	return b
}

// lostCall says that a call may have been made or not.
func (r *run) lostCall(db int, words []string) {
	c, ok := parse(words, r.m.rules)
	if !ok || c.ro {
		return
	}
	if c.name == "GO.RELEASE" {
		r.m.forget(db, c.key)
	}
	r.m.unclear(db, &c).commit()
}
