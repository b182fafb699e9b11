package cgo_test

// This file follows a server as its replica does, and compares what it replicates with the reference.

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
	"gothrottle/commands/memory"
	"gothrottle/tests/corpus"
)

// valuesOf returns what keys of a server hold, without empty ones.
func valuesOf(h *fakehost.Host, keys ...string) map[string]*memory.Value {
	all := map[string]*memory.Value{}
	for _, key := range keys {
		if v := h.Get(key); v != nil && !v.Empty() {
			all[key] = v
		}
	}
	return all
}

// replica is the keyspace of another server. It executes effects and knows nothing of limiters.
type replica struct{ *corpus.Memory }

// copyOf returns a replica that holds what h holds now.
func copyOf(h *fakehost.Host, keys ...string) replica {
	r := replica{corpus.NewMemory()}
	for key, v := range valuesOf(h, keys...) {
		r.Put(key, v)
	}
	return r
}

// effects are what the module replicates, and the event that the server must publish for each.
var effects = map[string]fakehost.Event{
	"DEL":       {Class: 1 << 2, Name: "del"},
	"PEXPIREAT": {Class: 1 << 2, Name: "expire"},
	"SET":       {Class: 1 << 3, Name: "set"},
	"HSET":      {Class: 1 << 6, Name: "hset"},
	"HDEL":      {Class: 1 << 6, Name: "hdel"},
	"ZADD":      {Class: 1 << 7, Name: "zadd"},
	"ZREM":      {Class: 1 << 7, Name: "zrem"},
}

// apply executes one effect. It returns the events that the server must publish for the effect.
func (r replica) apply(words []string) (events []fakehost.Event, err error) {
	name, key := words[0], words[1]
	event, known := effects[name]
	if _, err := r.Do(0, words...); err != nil || !known { // as a replica, it does not look at the expiry of keys
		return nil, fmt.Errorf("effect %q: %v", words, err)
	}
	event.Key = key
	events = []fakehost.Event{event}
	if name == "SET" && words[3] == "PXAT" {
		events = append(events, fakehost.Event{Class: 1 << 2, Name: "expire", Key: key})
	}
	if name == "ZREM" && r.Get(key) == nil {
		events = append(events, fakehost.Event{Class: 1 << 2, Name: "del", Key: key})
	}
	return events, nil
}

// wantSame checks that the replica holds what the server holds.
func (r replica) wantSame(t *testing.T, h *fakehost.Host, what string, keys ...string) {
	t.Helper()
	if got, want := r.Dump(), corpus.Dump(valuesOf(h, keys...), 0); got != want {
		t.Errorf("%s: the replica holds\n%s\nthe server\n%s\neffects %q", what, got, want, h.Effects())
	}
}

// follow applies the effects of the latest call to a replica. It checks that the replica then holds
// what the server holds, and that events and signals match the effects.
func (r replica) follow(t *testing.T, h *fakehost.Host, what string, keys ...string) {
	t.Helper()
	var events []fakehost.Event
	signalled, changed := map[string]bool{}, map[string]bool{}
	for _, words := range h.Effects() {
		owed, err := r.apply(words)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		// The server replicates a DEL itself when it removes an expired key.
		if all, i := h.Events(), len(events); words[0] == "DEL" && i < len(all) && all[i].Name == "expired" {
			owed = []fakehost.Event{{Class: 1 << 8, Name: "expired", Key: words[1]}}
		}
		events = append(events, owed...)
		changed[words[1]] = true
	}
	if !slices.Equal(h.Events(), events) {
		t.Errorf("%s: events %v, want %v", what, h.Events(), events)
	}
	for _, key := range h.Signals() {
		signalled[key] = true
	}
	if !maps.Equal(signalled, changed) {
		t.Errorf("%s: signalled %v, changed %v", what, signalled, changed)
	}
	r.wantSame(t, h, what, keys...)
	for _, words := range h.Effects() {
		if v := r.Get(words[1]); v != nil && v.Expire == 0 && strings.Contains("HSET ZADD SET", words[0]) {
			t.Errorf("%s: %s has no expiry", what, words[1])
		}
	}
}

// The reference's table of effects names just the commands that are replicated, and just the events.
func TestReference_effects(t *testing.T) {
	effects := section(t, "Effects")
	cell := func(h *fakehost.Host) { h.Put("k", textOf(tat(h, 2_500_000_000))) }
	for row, calls := range map[string][]struct {
		before func(*fakehost.Host)
		line   string
	}{
		"GO.THROTTLE: admitted, a new rate, a lockout begins": {
			{nil, "GO.THROTTLE k 15 30 60"},
			{run(0, "GO.THROTTLE k 15 30 60"), "GO.THROTTLE k 15 30 60"},
			{run(0, "GO.THROTTLE k 15 7 60 5"), "GO.THROTTLE k 15 30 60"},
			{run(0, "GO.THROTTLE k 0 30 60"), "GO.THROTTLE k 0 30 60 LOCKOUT 60"},
			{run(3*second, "GO.THROTTLE k 0 30 60", "GO.THROTTLE k 0 30 60 LOCKOUT 1"), "GO.THROTTLE k 0 30 60"},
		},
		"refund to full, no lockout":         {{run(0, "GO.THROTTLE k 15 30 60"), "GO.THROTTLE k 15 30 60 -1"}, {run(0, "GO.QUOTA k 9 60"), "GO.QUOTA k 9 60 -1"}},
		"redis-cell's string taken over":     {{cell, "GO.THROTTLE k 15 30 60"}},
		"GO.WINDOW, GO.LEASE":                {{run(2*second, "GO.WINDOW k 9 1"), "GO.WINDOW k 9 1"}, {run(2*second, "GO.LEASE k 9 1 a"), "GO.LEASE k 9 1 b"}},
		"GO.QUOTA":                           {{nil, "GO.QUOTA k 9 60"}, {run(0, "GO.QUOTA k 9 60"), "GO.QUOTA k 9 60"}},
		"GO.RELEASE, RELEASE clauses":        {{run(0, "GO.LEASE k 9 60 a", "GO.LEASE k 9 9 b"), "GO.RELEASE k a"}, {run(0, "GO.LEASE k 9 60 a"), "GO.RELEASE k a"}},
		"GO.LEASE denied, slots have lapsed": {{run(2*second, "GO.LEASE k 9 1 a", "GO.LEASE k 9 60 b"), "GO.LEASE k 1 60 c"}},
		"the last two, if some have several slots": {
			{run(0, "GO.LEASE k 9 60 a", "GO.LEASE k 9 90 b 3", "GO.LEASE k 9 9 c 2"), "GO.RELEASE k b"},
			{run(2*second, "GO.LEASE k 9 1 a 2"), "GO.LEASE k 1 60 c 0"},
		},
		"otherwise denied, peek, refund of nothing, error": {{run(0, "GO.QUOTA k 1 60"), "GO.QUOTA k 1 60"}, {run(0, "GO.QUOTA k 1 60"), "GO.QUOTA k 1 60 0"}, {run(2*second, "GO.ALL k THROTTLE 9 9 9 THROTTLE 1 1 9"), "GO.THROTTLE k 9 9 9 -1"}, {nil, "GO.QUOTA k x 1"}},
	} {
		_, rest, found := strings.Cut(effects, "\n| "+row+" | ")
		cell, _, _ := strings.Cut(rest, " |\n")
		if !found {
			t.Errorf("the reference has no row %q", row)
			continue
		}
		var replicated, heard []string
		for _, c := range calls {
			h := loaded(t)
			if c.before != nil {
				c.before(h)
			}
			call(h, c.line)
			for _, words := range h.Effects() {
				replicated = append(replicated, words[0])
			}
			for _, event := range h.Events() {
				heard = append(heard, event.Name)
			}
		}
		events := strings.ToLower(strings.NewReplacer("PEXPIREAT", "expire", "PXAT", "expire").Replace(cell))
		wantNames(t, row+": effects", replicated, cell, "[A-Z]{3,}")
		wantNames(t, row+": events", heard, events, "hset|hdel|zadd|zrem|set|del|expire")
	}
}

// wantNames compares names with those in a cell of a table, in any order.
func wantNames(t *testing.T, what string, names []string, cell, name string) {
	t.Helper()
	listed := regexp.MustCompile(`\b(`+name+`)\b`).FindAllString(cell, -1)
	listed = slices.DeleteFunc(listed, func(word string) bool { return slices.Contains([]string{"PXAT", "KEEPTTL"}, word) })
	slices.Sort(listed)
	slices.Sort(names)
	if !slices.Equal(slices.Compact(listed), slices.Compact(names)) {
		t.Errorf("%s: the reference has %q, the module has %q", what, listed, names)
	}
}
