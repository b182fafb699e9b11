package cgo_test

// This file follows a server as its replica does.

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"gothrottle/cgo/fakehost"
	"gothrottle/commands"
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

// effects are what the module replicates: the kind of key that the effect changes, and the event that the server must publish.
var effects = map[string]struct {
	kind  commands.Kind
	makes bool // the key need not be there
	class int
	event string
}{
	"DEL":       {0, false, 1 << 2, "del"},
	"PEXPIREAT": {0, false, 1 << 2, "expire"},
	"SET":       {commands.KindString, true, 1 << 3, "set"},
	"HSET":      {commands.KindHash, true, 1 << 6, "hset"},
	"HDEL":      {commands.KindHash, false, 1 << 6, "hdel"},
	"ZADD":      {commands.KindZset, true, 1 << 7, "zadd"},
	"ZREM":      {commands.KindZset, false, 1 << 7, "zrem"},
}

// apply executes one effect. It returns the events that the server must publish for the effect.
func (r replica) apply(words []string) (events []fakehost.Event, err error) {
	name, key := words[0], words[1]
	e, before := effects[name], r.Get(key)
	_, err = r.Do(0, words...) // as a replica, it does not look at the expiry of keys
	after := r.Get(key)
	elements := func(v *memory.Value) int {
		if v == nil {
			return 0
		}
		return len(v.Fields) + len(v.Set)
	}
	removed := elements(before) - elements(after)
	switch {
	case err != nil, before == nil && !e.makes, before != nil && e.kind != 0 && e.kind != before.Kind,
		(name == "HDEL" || name == "ZREM") && (removed == 0 || removed != len(words)-2),
		name == "ZADD" && before != nil && slices.Equal(before.Set, after.Set), // the server publishes no event for that
		name == "SET" && len(words) == 4 && (words[3] != "KEEPTTL" || after.Expire == 0):
		return nil, fmt.Errorf("unexpected effect %q on %+v", words, before)
	}
	events = []fakehost.Event{{Class: e.class, Name: e.event, Key: key}}
	if name == "SET" && len(words) == 5 {
		events = append(events, fakehost.Event{Class: 1 << 2, Name: "expire", Key: key})
	}
	if name == "ZREM" && after == nil {
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
	signalled, changed, made := map[string]bool{}, map[string]bool{}, map[string]bool{}
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
		made[words[1]] = made[words[1]] || effects[words[0]].makes
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
	for key := range made {
		if v := r.Get(key); made[key] && v != nil && v.Expire == 0 {
			t.Errorf("%s: %s has no expiry", what, key)
		}
	}
}
