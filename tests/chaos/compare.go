package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"

	"gothrottle/commands/memory"
	"gothrottle/tests/corpus"
	servers "gothrottle/tests/server"
)

// read returns what keys of a database hold; nil for those that are not there.
func (s *server) read(db int, keys ...string) (map[string]*memory.Value, error) {
	p := s.client.Pipeline()
	p.Do(ctx, "SELECT", db)
	c := p.Eval(ctx, corpus.ReadKeys, keys)
	p.Do(ctx, "SELECT", 0)
	_, _ = p.Exec(ctx)
	found, err := c.Slice()
	all := map[string]*memory.Value{}
	for i := range found {
		all[keys[i]] = corpus.Value(found[i].([]any))
	}
	return all, err
}

// dataset returns every key of a server, by database and name, but for the clock's.
func (r *run) dataset(s *server) map[string]*memory.Value {
	all := map[string]*memory.Value{}
	for db := range databases {
		p := s.client.Pipeline()
		p.Do(ctx, "SELECT", db)
		names := p.Keys(ctx, "*")
		p.Do(ctx, "SELECT", 0)
		_, _ = p.Exec(ctx)
		values, err := s.read(db, names.Val()...)
		if err != nil {
			r.differ("the keys of the %s: %v", s.name, err)
		}
		for name, v := range values {
			if v != nil && name != probeKey {
				all[fmt.Sprintf("%d %s", db, name)] = v
			}
		}
	}
	return all
}

// show writes what a key holds.
func show(v *memory.Value, err error) string {
	if v == nil {
		return fmt.Sprint("nothing ", err)
	}
	return fmt.Sprintf("%+v", *v)
}

// alike compares two data sets. A key whose expiry is near may be in one of them only if the clock runs.
func (r *run) alike(what string, want, got map[string]*memory.Value) {
	all := maps.Clone(want)
	maps.Copy(all, got)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		a, b := want[key], got[key]
		if !same(a, b) && !(r.m.blur > 0 && (a == nil || b == nil) && (r.expires(a) || r.expires(b))) {
			r.differ("%s: %s is %s, want %s", what, key, show(b, nil), show(a, nil))
		}
	}
}

// expires reports whether a key expires about now, or has expired.
func (r *run) expires(v *memory.Value) bool {
	return v != nil && v.Expire > 0 && v.Expire <= int64(r.m.wall/1000)+1+r.m.blur
}

// holds checks that the keys hold what the model holds, and that a key of a limiter has an expiry.
func (r *run) holds(all map[string]*memory.Value) {
	want, got := map[string]*memory.Value{}, maps.Clone(all)
	for db, d := range r.m.dbs {
		for _, name := range d.Keys() {
			if v := d.Get(name); !v.Expired(r.m.wall) {
				want[fmt.Sprintf("%d %s", db, name)] = v
			}
		}
		for name := range d.doubt {
			key := fmt.Sprintf("%d %s", db, name)
			delete(want, key)
			delete(got, key)
		}
	}
	r.alike("the master", want, got)
}

// attach makes the other servers replicas of the master.
func (r *run) attach() {
	for _, s := range []*server{r.twin, r.plain} {
		r.accept(s, "REPLICAOF", "127.0.0.1", r.master.Port)
	}
}

// inStep waits until the replicas have received everything.
func (r *run) inStep() {
	r.eventually("the replicas have received everything", func() bool {
		for _, s := range []*server{r.twin, r.plain} {
			if s.info("replication", "master_link_status") != "up" ||
				s.info("replication", "slave_repl_offset") != r.master.info("replication", "master_repl_offset") {
				return false
			}
		}
		return true
	})
}

// compare checks what must hold at all times.
func (r *run) compare() {
	r.inStep()
	all := r.dataset(r.master)
	r.look()
	r.holds(all)
	r.inStep() // keys that a look found expired
	for _, s := range []*server{r.twin, r.plain} {
		copied := r.dataset(s)
		r.look()
		r.alike("the "+s.name, all, copied)
	}
	r.healthy(r.master, r.twin)
	r.stats.compared += len(all)
	r.stats.sample(r.master)
}

// healthy checks that the module did not panic or warn, and that no server reports a crash.
func (r *run) healthy(all ...*server) {
	for _, s := range all {
		if n := s.info("gothrottle", "gothrottle_panics"); n != "0" {
			r.differ("the module's panics: %q", n)
		}
		if line := warning(s.LogFile); line != "" {
			r.differ("the log of the %s: %s", s.name, line)
		}
	}
}

var warningLine = regexp.MustCompile(`(?m)^.*(?:# <(?:gothrottle|module)>|=== REDIS BUG REPORT|=== VALKEY BUG REPORT).*$`)

// warning returns a line of the log in which the module warns, or the server reports a crash. Valkey
// 9.1 asks modules to unload when it ends.
func warning(file string) string {
	b, _ := os.ReadFile(file)
	for _, line := range warningLine.FindAll(b, -1) {
		if !bytes.Contains(line, []byte("cannot be unloaded")) {
			return string(line)
		}
	}
	return ""
}

// dataBytes is the memory of the data, without that of clients and buffers.
func dataBytes(s *server) int64 {
	return s.number("memory", "used_memory") - s.number("memory", "used_memory_overhead")
}

// mostLeft bounds the memory that may be in use after FLUSHALL beyond that of the start, in bytes.
const mostLeft = 2 << 20

// emptied checks that FLUSHALL gives all memory back.
func (r *run) emptied() {
	r.master.ask("FLUSHALL", "SYNC")
	r.m.clear()
	r.master.ask("SCRIPT", "FLUSH", "SYNC")
	left := int64(0)
	err := servers.Await("all memory is free after FLUSHALL", func() bool { // a thread may still free what was deleted before
		left = dataBytes(r.master) - r.memory
		return r.master.info("memory", "lazyfree_pending_objects") == "0" && left <= mostLeft
	})
	if err != nil {
		r.differ("%d bytes are left after FLUSHALL: %v", left, err)
	}
}
