package main

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"gothrottle/commands/memory"
	"gothrottle/tests/corpus"
)

// dataset returns what every key of a server holds. A node of a cluster must not reply ASK for keys of slots that come to it.
func (r *run) dataset(s *server) map[string]*memory.Value {
	all, found, p := map[string]*memory.Value{}, map[string]*redis.Cmd{}, s.client.Pipeline()
	for _, name := range s.client.Keys(ctx, "*").Val() {
		p.Do(ctx, "ASKING")
		found[name] = p.Eval(ctx, corpus.ReadKeys, []string{name})
	}
	_, _ = p.Exec(ctx)
	for name, cmd := range found {
		reply, err := cmd.Slice()
		if err != nil {
			r.differ("%s of the %s: %v", name, s.name, err)
		}
		if v := corpus.Values([]string{name}, reply)[name]; v != nil {
			all[name] = v
		}
	}
	return all
}

// alike compares two data sets.
func (r *run) alike(what string, want, got map[string]*memory.Value) {
	all := maps.Clone(want)
	maps.Copy(all, got)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if a, b := want[key], got[key]; !reflect.DeepEqual(a, b) {
			r.differ("the %s at %d: %s is %+v, want %+v", what, r.m.now, key, b, a)
		}
	}
	r.tally["keys that were compared"] += len(all)
}

// holds checks that the master's keys hold what the model holds.
func (r *run) holds(all map[string]*memory.Value) { r.alike("master", r.m.dataset(), all) }

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

// compare checks what must hold at all times: the master holds what the model holds, and the replicas what the master holds.
func (r *run) compare() {
	r.inStep()
	all := r.dataset(r.master)
	r.holds(all)
	r.inStep() // keys that a look found expired
	for _, s := range []*server{r.twin, r.plain} {
		r.alike(s.name, all, r.dataset(s))
	}
	r.healthy()
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
