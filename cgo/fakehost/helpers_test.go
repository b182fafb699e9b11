package fakehost_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gothrottle/cgo"
	"gothrottle/cgo/fakehost"
)

func init() { cgo.Version = "1.20.3" }

// newHost returns a server that has not loaded the module. At its end it must have
// nothing to complain about.
func newHost(t testing.TB) *fakehost.Host {
	t.Helper()
	h := fakehost.New()
	t.Cleanup(func() {
		for _, fault := range h.Faults() {
			t.Error("fault: ", fault)
		}
		h.Close()
	})
	return h
}

// loaded returns a server with the module.
func loaded(t testing.TB, args ...string) *fakehost.Host {
	t.Helper()
	h := newHost(t)
	if !h.Load(args...) {
		t.Fatalf("load refused: %q", h.Log())
	}
	return h
}

// call runs a command line.
func call(h *fakehost.Host, line string) fakehost.Reply { return h.Call(strings.Fields(line)...) }

// wantReply runs a command line and compares its reply.
func wantReply(t *testing.T, h *fakehost.Host, line, want string) {
	t.Helper()
	if got := call(h, line).String(); got != want {
		t.Errorf("%s: reply %s, want %s", line, got, want)
	}
}

var longNumber = regexp.MustCompile(`\b[0-9]{13,19}\b`)

// relative writes the absolute times in a text as distances from now: T+ns for a TAT,
// M+ms for an expiry.
func relative(h *fakehost.Host, text string) string {
	return longNumber.ReplaceAllStringFunc(text, func(number string) string {
		n, _ := strconv.ParseInt(number, 10, 64)
		switch len(number) {
		case 19:
			return fmt.Sprintf("T%+d", n-h.Now()*1000)
		case 13:
			return fmt.Sprintf("M%+d", n-h.Now()/1000)
		}
		return number
	})
}

// tat is the TAT that many ns from now, as a hash or redis-cell holds it.
func tat(h *fakehost.Host, nanos int64) string { return strconv.FormatInt(h.Now()*1000+nanos, 10) }

func effects(h *fakehost.Host) string { return relative(h, strings.Join(h.Effects(), "; ")) }

// wantNothing checks that a call changed nothing and told nobody anything.
func wantNothing(t *testing.T, h *fakehost.Host, what string, before []string) {
	t.Helper()
	if after := h.Dump(); !slices.Equal(before, after) {
		t.Errorf("%s: the keyspace was %q, is %q", what, before, after)
	}
	if h.Effects() != nil || h.Events() != nil || h.Signals() != nil {
		t.Errorf("%s: effects %q, events %v, signals %q", what, h.Effects(), h.Events(), h.Signals())
	}
}

// replica is another server's keyspace, which hears effects and knows no limiter.
type replica map[string]*replicaKey

type replicaKey struct {
	text   string
	fields map[string]string
	expire int64
}

// copyOf returns a replica that holds what h holds now.
func copyOf(h *fakehost.Host, keys ...string) replica {
	r := replica{}
	for _, key := range keys {
		if h.TypeOf(key) != "none" {
			r[key] = &replicaKey{h.StringOf(key), h.HashOf(key), h.ExpireOf(key)}
		}
	}
	return r
}

// apply executes one effect; it returns the event that the server owes for it.
func (r replica) apply(words []string) (fakehost.Event, error) {
	const generic, hash = 1 << 2, 1 << 6
	name, key := words[0], words[1]
	k := r[key]
	switch name {
	case "DEL":
		if k == nil {
			return fakehost.Event{}, fmt.Errorf("%q of no key", words)
		}
		delete(r, key)
		return fakehost.Event{Class: generic, Name: "del", Key: key}, nil
	case "HSET":
		if k == nil {
			k = &replicaKey{fields: map[string]string{}, expire: fakehost.NoExpiry}
			r[key] = k
		}
		if k.fields == nil {
			return fakehost.Event{}, fmt.Errorf("%q of a string", words)
		}
		for i := 2; i < len(words); i += 2 {
			k.fields[words[i]] = words[i+1]
		}
		return fakehost.Event{Class: hash, Name: "hset", Key: key}, nil
	case "HDEL":
		for _, field := range words[2:] {
			if _, there := k.fields[field]; !there {
				return fakehost.Event{}, fmt.Errorf("%q: no field %s", words, field)
			}
			delete(k.fields, field)
		}
		return fakehost.Event{Class: hash, Name: "hdel", Key: key}, nil
	case "PEXPIREAT":
		at, err := strconv.ParseInt(words[2], 10, 64)
		k.expire = at
		return fakehost.Event{Class: generic, Name: "expire", Key: key}, err
	}
	return fakehost.Event{}, fmt.Errorf("unexpected effect %q", words)
}

// follow applies the effects of the latest call to a replica and checks that it then
// holds what the server holds, and that events and signals were those of the effects.
func (r replica) follow(t *testing.T, h *fakehost.Host, what string, keys ...string) {
	t.Helper()
	var events []fakehost.Event
	told, changed := map[string]bool{}, map[string]bool{}
	for i, words := range h.EffectWords() {
		event, err := r.apply(words)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if all := h.Events(); i < len(all) && all[i].Name == "expired" {
			event = fakehost.Event{Class: 1 << 8, Name: "expired", Key: event.Key}
		}
		events = append(events, event)
		changed[event.Key] = true
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
}

// flat makes replicas comparable as text: maps print in order.
func flat(r replica) map[string]replicaKey {
	keys := map[string]replicaKey{}
	for name, key := range r {
		keys[name] = *key
	}
	return keys
}
