package cgo_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"gothrottle/cgo/fakehost"
)

// replica is another server's keyspace, which hears effects and knows no limiter.
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

// apply executes one effect; it returns the events that the server owes for it.
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
			return nil, bad // the server would not say a word
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

// follow applies the effects of the latest call to a replica and checks that it then
// holds what the server holds, and that events and signals were those of the effects.
func (r replica) follow(t *testing.T, h *fakehost.Host, what string, keys ...string) {
	t.Helper()
	var events []fakehost.Event
	told, changed := map[string]bool{}, map[string]bool{}
	for _, words := range h.EffectWords() {
		owed, err := r.apply(words)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		// The server's own DEL.
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

// flat makes replicas comparable as text: maps print in order.
func flat(r replica) map[string]replicaKey {
	keys := map[string]replicaKey{}
	for name, key := range r {
		keys[name] = *key
	}
	return keys
}

// effectRow is one way in which a decision can end: what happened before, the call on
// the key k, its reply and what is replicated.
type effectRow struct {
	name    string
	before  func(*fakehost.Host)
	line    string
	reply   string
	effects string
}

// wantEffects runs the rows, each on a server of its own, with a replica that follows.
func wantEffects(t *testing.T, rows []effectRow) {
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			h := loaded(t)
			if row.before != nil {
				row.before(h)
			}
			before, r := h.Dump(), copyOf(h, "k", "l", "m")
			wantReply(t, h, row.line, row.reply)
			if got := effects(h); got != row.effects {
				t.Errorf("effects %q, want %q", got, row.effects)
			}
			if row.effects == "" {
				wantNothing(t, h, row.line, before)
			}
			r.follow(t, h, row.line, "k", "l", "m")
		})
	}
}

// run makes these calls before the one of a row, and then lets time pass.
func run(pause int64, lines ...string) func(*fakehost.Host) {
	return func(h *fakehost.Host) {
		for _, line := range lines {
			if got := call(h, line); got.Err != "" {
				panic(line + ": " + got.Err)
			}
		}
		h.Advance(pause)
	}
}
