package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"gothrottle/commands"
	"gothrottle/tests/corpus"
	"gothrottle/tests/world"
)

// right reports whether a call is right and all its keys have the tag.
func (c *clusterRun) right(tag string, w words) bool {
	_, err := c.blank.Do(c.m.now, w...)
	for _, key := range c.blank.Keys() {
		c.blank.Delete(key)
	}
	keys := keysOf(w)
	return err == nil && len(keys) > 0 && !slices.ContainsFunc(keys, func(key string) bool { return !strings.Contains(key, "{"+tag+"}") })
}

// batch makes n calls at keys of one slot: each alone, as a pipeline, in a transaction or in a script.
func (c *clusterRun) batch(tag string, n int) {
	via := world.Pick(c.g.Rand, "alone", "pipeline", "multi", "eval")
	var calls []words
	c.g.Tag = "{" + tag + "}"
	for range n {
		w := c.g.Call()
		if commands.Find(w[0]).NoKey {
			continue // each node counts its own keys
		}
		// In a cluster of Valkey the module itself replies TRYAGAIN, after other calls of a transaction were
		// made. go-redis takes such an error within an array for the reply to all of them.
		if via == "alone" || via == "pipeline" || c.right(tag, w) && (len(keysOf(w)) == 1 || !c.lab.valkey()) {
			calls = append(calls, w)
		}
	}
	conn := c.g.IntN(2)
	switch {
	case len(calls) == 0:
	case via == "pipeline":
		c.send(tag, conn, len(calls), calls)
	case via == "alone":
		c.send(tag, conn, 1, calls)
	default:
		c.together(tag, conn, via, calls)
	}
}

// send sends calls, n at a time.
func (c *clusterRun) send(tag string, conn, n int, calls []words) {
	for calls := range slices.Chunk(calls, n) {
		at := c.owner[tag]
		p := c.nodes[at].conn(conn).Pipeline()
		for _, w := range calls {
			p.Do(ctx, corpus.Args(w)...)
		}
		cmds, _ := p.Exec(ctx)
		for i, w := range calls {
			c.follow(tag, at, conn, w, replyText(cmds[i].(*redis.Cmd)), 0)
		}
	}
}

// refusedInScript is what servers say of a call whose keys, or some of them, are not here.
var refusedInScript = regexp.MustCompile(` non local key| during rehashing of the slot`)

// together makes calls of which the server makes all or none. If it makes none, they are made alone.
func (c *clusterRun) together(tag string, conn int, via string, calls []words) {
	at := c.owner[tag]
	got := send(c.nodes[at].conn(conn), 0, via, calls)
	c.stats.tally["calls by "+via]++
	if kind, _, _ := strings.Cut(got.failed, " "); got.failed != "" {
		if !slices.Contains([]string{"-ASK", "-MOVED", "-TRYAGAIN", "-EXECABORT"}, kind) {
			c.differ("the calls %q got the reply %s", calls, got.failed)
		}
		c.say("node %d: %d calls by %s: %s", at, len(calls), via, got.failed)
		c.send(tag, conn, 1, calls)
		return
	}
	for i, w := range calls {
		if via == "eval" && refusedInScript.MatchString(got.replies[i]) {
			c.stats.tally["refused within a script"]++ // the script itself made a key of a slot that moves absent
			continue
		}
		c.made(at, w, got.replies[i])
	}
}

// made compares the reply to a call that a node has made with the model.
func (c *clusterRun) made(at int, w words, got string) {
	c.say("node %d at %d: %q: %s", at, c.m.now, w, got)
	c.checkOne(0, w, got)
}

// mostRedirects bounds how often one call is redirected.
const mostRedirects = 5

// follow compares the reply of a node with the model, or follows it to another node.
func (c *clusterRun) follow(tag string, at, conn int, w words, got string, redirects int) {
	kind, rest, _ := strings.Cut(got, " ")
	switch kind {
	case "-MOVED", "-ASK":
		_, port, _ := strings.Cut(rest, ":")
		to := slices.IndexFunc(c.nodes[:], func(n *server) bool { return n.Port == port })
		if !c.right(tag, w) {
			return // a wrong word was taken for a key of another node
		}
		if to < 0 || redirects == mostRedirects {
			c.differ("%q: %s", w, got)
		}
		c.stats.tally["replies "+kind[1:]]++
		c.say("node %d: %q: %s", at, w, got)
		p := c.nodes[to].conn(conn).Pipeline()
		if kind == "-ASK" {
			p.Do(ctx, "ASKING")
		} else {
			c.owner[tag] = to
		}
		p.Do(ctx, corpus.Args(w)...)
		cmds, _ := p.Exec(ctx)
		c.follow(tag, to, conn, w, replyText(cmds[len(cmds)-1].(*redis.Cmd)), redirects+1)
	case "-TRYAGAIN":
		c.stats.tally["replies TRYAGAIN"]++
		c.later = append(c.later, w)
	case lost:
		c.differ("%q: no reply", w)
	default:
		if kind != "-CROSSSLOT" || c.right(tag, w) {
			c.made(at, w, got)
		}
	}
}

// again makes the calls that got TRYAGAIN. Those that get it again wait on.
func (c *clusterRun) again(tag string) {
	calls := c.later
	c.later = nil
	c.send(tag, c.g.IntN(2), 1, calls)
}
