package cgo_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"gothrottle/cgo"
	"gothrottle/cgo/fakehost"
	"gothrottle/commands"
	"gothrottle/commands/memory"
	"gothrottle/tests/corpus"
)

func init() { cgo.Version = "1.20.3" }

const (
	wrongType = "WRONGTYPE Operation against a key holding the wrong kind of value"
	foreign   = "ERR the hash at this key is not a rate limiter"
	damaged   = "ERR the rate limiter at this key is damaged"
)

const second = 1_000_000 // µs

// newHost returns a server that has not loaded the module. Its configuration has the policies of the
// samples. The test fails if the server has noticed a fault by the end.
func newHost(t *testing.T) *fakehost.Host {
	t.Helper()
	h := fakehost.New()
	cgo.ForgetPanics()
	h.Configure("gothrottle.policies", corpus.SamplePolicies)
	t.Cleanup(func() {
		for _, fault := range h.Faults() {
			t.Error("fault: ", fault)
		}
		h.Close()
	})
	return h
}

// loaded returns a server with the module.
func loaded(t *testing.T) *fakehost.Host {
	t.Helper()
	h := newHost(t)
	h.Configure("gothrottle.top-keys", "1000")
	if !h.Load() {
		t.Fatalf("load refused: %q", h.Log())
	}
	return h
}

// call runs a command line and returns its reply as text.
func call(h *fakehost.Host, line string) string {
	return strings.ReplaceAll(fmt.Sprint(h.Call(strings.Fields(line)...)), "<nil>", "(nil)")
}

// wantReply runs a command line and compares its reply.
func wantReply(t *testing.T, h *fakehost.Host, line, want string) {
	t.Helper()
	if got := call(h, line); got != want {
		t.Errorf("%s: reply %s, want %s", line, got, want)
	}
}

func isError(reply any) bool {
	_, failed := reply.(error)
	return failed
}

// tat returns the TAT that lies this many ns after now, as text.
func tat(h *fakehost.Host, nanos int64) string { return strconv.FormatInt(h.Now()*1000+nanos, 10) }

// Values of keys.
var list = &memory.Value{Kind: commands.KindOther}

func textOf(s string) *memory.Value { return &memory.Value{Kind: commands.KindString, Text: s} }

func hashOf(fieldsAndValues ...string) *memory.Value {
	v := &memory.Value{Kind: commands.KindHash}
	for i := 0; i < len(fieldsAndValues); i += 2 {
		v.SetField(fieldsAndValues[i], fieldsAndValues[i+1])
	}
	return v
}

func zsetOf(members ...member) *memory.Value {
	v := &memory.Value{Kind: commands.KindZset}
	for _, m := range members {
		v.Add(m)
	}
	return v
}

type member = memory.Member

func scored(score float64, text string) member { return member{Score: score, Text: text} }

// many returns a sorted set of n members, which come in its order.
func many(n int, member func(i int) member) *memory.Value {
	v := zsetOf()
	for i := range n {
		v.Set = append(v.Set, member(i))
	}
	return v
}

// slots returns n leases, from "0" on, each lapsing 1 µs before the one before it. The first one lapses so many µs after now.
func slots(h *fakehost.Host, n int, lapse int64) *memory.Value {
	return many(n, func(i int) member { return scored(-float64(h.Now()+lapse-int64(i)), fmt.Sprint("\x02", i)) })
}

// dump writes what all keys hold.
func dump(h *fakehost.Host) string {
	all := map[string]*memory.Value{}
	for _, key := range h.Names() {
		all[key] = h.Get(key)
	}
	return corpus.Dump(all, 0)
}

// expiryOf returns the expiry of a key, 0 if it has none.
func expiryOf(h *fakehost.Host, key string) int64 {
	if v := h.Get(key); v != nil {
		return v.Expire
	}
	return 0
}

// wantNothing checks that the latest call left the keyspace as it was before, and that it caused
// no effect, no event and no signal.
func wantNothing(t *testing.T, h *fakehost.Host, what, before string) {
	t.Helper()
	if after := dump(h); after != before {
		t.Errorf("%s: the keyspace was\n%s\nis\n%s", what, before, after)
	}
	if h.Effects() != nil || h.Events() != nil || h.Signals() != nil {
		t.Errorf("%s: effects %q, events %v, signals %q", what, h.Effects(), h.Events(), h.Signals())
	}
}

// wantUntouched checks that each of these calls replies want and changes nothing.
func wantUntouched(t *testing.T, h *fakehost.Host, want string, lines ...string) {
	t.Helper()
	before := dump(h)
	for _, line := range lines {
		wantReply(t, h, line, want)
		wantNothing(t, h, line, before)
	}
}

// manyKeys returns the words of n further keys of GO.ALL, each with these clauses.
func manyKeys(first, n int, clauses string) (words string) {
	for i := range n {
		words += fmt.Sprint(" KEY key", first+i, clauses)
	}
	return words
}
