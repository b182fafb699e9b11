package cgo_test

// This file follows a server as its replica does.

import (
	"fmt"
	"maps"
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
	for _, words := range h.Effects() { // a denied call may write the sum of the slots that stay, and leaves the expiry as it is
		sum := words[len(words)-1] == "\x04"
		if v := r.Get(words[1]); v != nil && v.Expire == 0 && !sum && strings.Contains("HSET ZADD SET", words[0]) {
			t.Errorf("%s: %s has no expiry", what, words[1])
		}
	}
}
