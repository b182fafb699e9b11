package main

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

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
	return corpus.Values(keys, found), err
}

// dataset returns every key of a server, by database and name.
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
			if v != nil {
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

// alike compares two data sets.
func (r *run) alike(what string, want, got map[string]*memory.Value) {
	all := maps.Clone(want)
	maps.Copy(all, got)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if a, b := want[key], got[key]; !reflect.DeepEqual(a, b) {
			r.differ("%s: %s is %s, want %s", what, key, show(b, nil), show(a, nil))
		}
	}
}

// holds checks that the keys hold what the model holds, and that a key of a limiter has an expiry.
func (r *run) holds(all map[string]*memory.Value) {
	want, got := r.m.dataset(), maps.Clone(all)
	maps.DeleteFunc(want, func(_ string, v *memory.Value) bool { return v.Expired(r.m.wall) })
	maps.DeleteFunc(got, func(key string, _ *memory.Value) bool {
		d, name := r.m.at(key)
		return d.doubt[name]
	})
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
	for _, s := range []*server{r.twin, r.plain} {
		if err := s.InStep(r.master.Server); err != nil {
			r.differ("the %s: %v: %s; master: %s", s.name, err, s.tail(), r.master.tail())
		}
	}
}

// compare checks what must hold at all times.
func (r *run) compare() {
	r.inStep()
	all := r.dataset(r.master)
	r.holds(all)
	r.copies(all)
}

// copies checks that the replicas hold all that the master holds, and that the servers are well.
func (r *run) copies(all map[string]*memory.Value) {
	r.inStep() // keys that a look found expired
	for _, s := range []*server{r.twin, r.plain} {
		r.alike("the "+s.name, all, r.dataset(s))
	}
	r.healthy()
	r.stats.tally[numCompared] += len(all)
}

var warning = regexp.MustCompile(`# <(?:gothrottle|module)>|=== REDIS BUG REPORT|=== VALKEY BUG REPORT`)

// healthy checks that the module did not panic or warn, and that no server reports a crash. Valkey 9.1 asks modules to
// unload when it ends.
func (r *run) healthy() {
	for _, s := range r.servers() {
		if n := s.info("gothrottle", "gothrottle_panics"); n != "0" && !s.Bare {
			r.differ("the module's panics: %q", n)
		}
		for line := range strings.Lines(s.Log()) {
			if warning.MatchString(line) && !strings.Contains(line, "cannot be unloaded") {
				r.differ("the log of the %s: %s", s.name, line)
			}
		}
	}
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
