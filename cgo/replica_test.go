package cgo_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"gothrottle/cgo/fakehost"
)

// replica is the keyspace of another server. It executes effects and knows nothing of limiters.
type replica map[string]*replicaKey

// replicaKey is a string, or a hash if fields is not nil, or a sorted set if scores is not.
type replicaKey struct {
	text   string
	fields map[string]string
	scores map[string]float64
	expire int64
}

// copyOf returns a replica that holds what h holds now.
func copyOf(h *fakehost.Host, keys ...string) replica {
	r := replica{}
	for _, key := range keys {
		if h.TypeOf(key) == "none" {
			continue
		}
		k := &replicaKey{text: h.StringOf(key), fields: h.HashOf(key), expire: h.ExpireOf(key)}
		if h.TypeOf(key) == "zset" {
			k.scores = map[string]float64{}
			for _, m := range h.ZsetOf(key) {
				k.scores[m.Text] = m.Score
			}
		}
		r[key] = k
	}
	return r
}

// apply executes one effect. It returns the events that the server must publish for the effect.
func (r replica) apply(words []string) (events []fakehost.Event, err error) {
	const generic, text, hash, zset = 1 << 2, 1 << 3, 1 << 6, 1 << 7
	name, key := words[0], words[1]
	k := r[key]
	bad := fmt.Errorf("unexpected effect %q on %+v", words, k)
	event := func(class int, name string) {
		events = append(events, fakehost.Event{Class: class, Name: name, Key: key})
	}
	if k == nil {
		k = &replicaKey{expire: fakehost.NoExpiry}
		switch name {
		case "HSET":
			k.fields = map[string]string{}
		case "ZADD":
			k.scores = map[string]float64{}
		case "SET":
		default:
			return nil, bad
		}
		r[key] = k
	}
	switch {
	case name == "DEL" && len(words) == 2:
		delete(r, key)
		event(generic, "del")
	case name == "HSET" && k.fields != nil && len(words) >= 4 && len(words)%2 == 0:
		for i := 2; i < len(words); i += 2 {
			k.fields[words[i]] = words[i+1]
		}
		event(hash, "hset")
	case name == "HDEL" && len(words) >= 3:
		for _, field := range words[2:] {
			if _, there := k.fields[field]; !there {
				return nil, bad
			}
			delete(k.fields, field)
		}
		event(hash, "hdel")
	case name == "ZADD" && k.scores != nil && len(words) == 4:
		score, err := strconv.ParseFloat(words[2], 64)
		if err != nil {
			return nil, err
		}
		if old, there := k.scores[words[3]]; there && old == score {
			return nil, bad // the server publishes no event for a ZADD that changes nothing
		}
		k.scores[words[3]] = score
		event(zset, "zadd")
	case name == "ZREM" && len(words) >= 3:
		for _, member := range words[2:] {
			if _, there := k.scores[member]; !there {
				return nil, bad
			}
			delete(k.scores, member)
		}
		event(zset, "zrem")
		if len(k.scores) == 0 {
			delete(r, key)
			event(generic, "del")
		}
	case name == "SET" && k.fields == nil && k.scores == nil && len(words) >= 4:
		k.text = words[2]
		event(text, "set")
		if words[3] == "PXAT" && len(words) == 5 {
			event(generic, "expire")
			k.expire, err = strconv.ParseInt(words[4], 10, 64)
		} else if words[3] != "KEEPTTL" || len(words) != 4 || k.expire == fakehost.NoExpiry {
			return nil, bad
		}
	case name == "PEXPIREAT" && len(words) == 3:
		k.expire, err = strconv.ParseInt(words[2], 10, 64)
		event(generic, "expire")
	default:
		return nil, bad
	}
	return events, err
}

// follow applies the effects of the latest call to a replica. It checks that the replica then holds
// what the server holds, and that events and signals match the effects.
func (r replica) follow(t *testing.T, h *fakehost.Host, what string, keys ...string) {
	t.Helper()
	var events []fakehost.Event
	told, changed := map[string]bool{}, map[string]bool{}
	for _, words := range h.EffectWords() {
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
		told[key] = true
	}
	if !maps.Equal(told, changed) {
		t.Errorf("%s: signalled %v, changed %v", what, told, changed)
	}
	if want, got := fmt.Sprint(flat(copyOf(h, keys...))), fmt.Sprint(flat(r)); want != got {
		t.Errorf("%s: the replica holds %s, the server %s; effects %q", what, got, want, h.Effects())
	}
	for key, k := range r {
		if k.expire == fakehost.NoExpiry && changed[key] {
			t.Errorf("%s: %s has no expiry", what, key)
		}
	}
}

// flat makes replicas comparable as text. Package fmt prints maps in the order of their keys.
func flat(r replica) map[string]replicaKey {
	keys := map[string]replicaKey{}
	for name, key := range r {
		keys[name] = *key
	}
	return keys
}
