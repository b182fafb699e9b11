package cgo_test

// No transcript has users, clusters, or servers with threads.

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
)

const (
	noPermission = "NOPERM No permissions to access a key"
	crossSlot    = "CROSSSLOT Keys in request don't hash to the same slot"
	tryAgain     = "TRYAGAIN Multiple keys request during rehashing of slot"
)

// is says what Set sets.
type is map[int]int

func (s is) set(h *fakehost.Host) {
	for what, n := range s {
		h.Set(what, n)
	}
}

// keysOf returns GO.ALL with a peek at each of these keys.
func keysOf(command string, keys ...string) []string {
	var words []string
	for _, key := range keys {
		words = append(words, "KEY", key, "QUOTA", "9", "60", "0")
	}
	words[0] = command
	return words
}

// The module lets the server ask for keys only if the server does so on its main thread. The server can undo a load and load
// the module again in another mode.
func TestAccess_asked(t *testing.T) {
	for _, row := range []struct {
		name    string
		is      is
		renamed string
		fails   int // how CONFIG GET fails
		asked   bool
	}{
		{"one thread", nil, "", 0, true},
		{"four threads", is{fakehost.IOThreads: 4}, "", 0, false},
		{"Redis 7.4.9 with four threads", is{fakehost.Version: 0x070409, fakehost.IOThreads: 4}, "", 0, true},
		{"Redis 8.0.0 with ten threads", is{fakehost.Version: 0x080000, fakehost.IOThreads: 10}, "", 0, false},
		{"Valkey, which has a version of Redis, with four threads", is{fakehost.Valkey: 1, fakehost.Version: 0x070204, fakehost.IOThreads: 4}, "", 0, false},
		{"no such setting", is{fakehost.IOThreads: 0}, "", 0, false},
		{"CONFIG renamed", nil, "CONFIG", 0, false},
		{"CONFIG refused", nil, "", fakehost.NoReply, false},
		{"no text for a value", nil, "", fakehost.Integers, false},
		{"Redis cluster", is{fakehost.Cluster: 1}, "", 0, true},
		{"Valkey", is{fakehost.Valkey: 1}, "", 0, true},
		{"Valkey cluster", is{fakehost.Valkey: 1, fakehost.Cluster: 1}, "", 0, false},
	} {
		h := newHost(t)
		h.Set(fakehost.IOThreads, 4)
		if !h.Load() || !h.Unload() {
			t.Fatalf("an earlier load: %q", h.Log())
		}
		h.Set(fakehost.IOThreads, 1)
		row.is.set(h)
		h.Add(fakehost.Renamed, row.renamed)
		h.CallsFail(row.fails, 1)
		before := h.Alive()
		if !h.Load() {
			t.Fatalf("%s: load refused: %q", row.name, h.Log())
		}
		if after := h.Alive(); after != before {
			t.Errorf("%s: alive %v, before %v", row.name, after, before)
		}
		want := []string{"a"}
		if row.asked {
			want = append(want, "b")
		}
		for _, name := range []string{"GO.ALL", "GO.ALL_RO"} {
			if asked := strings.Contains(h.Command(name).Flags, "getkeys-api"); asked != row.asked {
				t.Errorf("%s: %s is asked: %t", row.name, name, asked)
			}
			if got := h.Keys(keysOf(name, "a", "b")...); !slices.Equal(got, want) {
				t.Errorf("%s: the server sees the keys %q of %s", row.name, got, name)
			}
		}
		wantReply(t, h, "GO.ALL a QUOTA 9 60 KEY aa QUOTA 9 60", "[0 9 8 -1 60 0 [0 9 8 -1 60] [0 9 8 -1 60]]")
	}
}

// unasked returns a server with the module that does not ask a command for its keys.
func unasked(t *testing.T, s is) *fakehost.Host {
	t.Helper()
	h := newHost(t)
	h.Set(fakehost.IOThreads, 4)
	s.set(h)
	if !h.Load() {
		t.Fatalf("load refused: %q", h.Log())
	}
	return h
}

// The module asks whether the user may run the command on each further key, and says so in the server's ACL log if the user
// may not. It does not ask for the first key, which the server has checked. A refused call changes nothing and opens no key.
func TestAccess_furtherKeys(t *testing.T) {
	for _, row := range []struct {
		is        is
		forbidden []string
		log       []string
	}{
		{nil, []string{"a"}, nil},
		{is{fakehost.Database: 3}, []string{"b"}, []string{"alice b"}},
		{is{fakehost.Valkey: 1}, []string{"b", "c"}, []string{"alice b"}},
		{is{fakehost.Valkey: 1, fakehost.Database: 3}, []string{"c"}, []string{"alice c"}},
	} {
		for _, command := range []string{"GO.ALL", "go.all_ro"} {
			h := unasked(t, row.is)
			call(h, "GO.QUOTA a 9 60")
			h.Add(fakehost.Forbidden, row.forbidden...)
			opened := h.Count(fakehost.Opened)
			before := dump(h)
			got := h.Call(keysOf(command, "a", "b", "c")...)
			if row.log == nil {
				if checked := h.ACLChecks(); isError(got) || !slices.Equal(checked, []string{"b", "c"}) {
					t.Errorf("%s: %v, asked for %q", command, got, checked)
				}
			} else if now := h.Count(fakehost.Opened); fmt.Sprint(got) != noPermission || now != opened {
				t.Errorf("%s without %q: %v, %d keys were opened", command, row.forbidden, got, now-opened)
			}
			if log := h.ACLLog(); !slices.Equal(log, row.log) {
				t.Errorf("%s without %q: ACL log %q", command, row.forbidden, log)
			}
			wantNothing(t, h, command, before)
		}
	}
}

// A call with one key makes no check, nor does a call that is an error, nor any call if the server asks
// for the keys.
func TestAccess_noCheck(t *testing.T) {
	noCheck := func(h *fakehost.Host, words ...string) {
		t.Helper()
		h.ResetCounts()
		if h.Call(words...); h.ACLChecks() != nil || h.Count(fakehost.Commands) != 0 {
			t.Errorf("%q: asked for %q, made %d calls", words, h.ACLChecks(), h.Count(fakehost.Commands))
		}
	}
	for _, s := range []is{nil, {fakehost.Cluster: 1}} {
		h := unasked(t, s)
		h.Add(fakehost.Elsewhere, "a") // the server would have refused the call
		noCheck(h, keysOf("GO.ALL", "a")...)
		noCheck(h, "GO.ALL_RO", "a", "THROTTLE", "1", "1", "1", "THROTTLE", "2", "1", "1")
		noCheck(h, append(keysOf("GO.ALL", "a", "b"), "wrong")...)
	}
	h := loaded(t)
	h.Set(fakehost.Cluster, 1)
	h.Add(fakehost.Forbidden, "b")
	h.Add(fakehost.Elsewhere, "b")
	noCheck(h, keysOf("GO.ALL", "a", "b")...)
}

// A call without a user is the server's own and may use all keys. A user that was deleted may use none.
func TestAccess_user(t *testing.T) {
	h := unasked(t, nil)
	h.Add(fakehost.Forbidden, "b")
	h.Set(fakehost.NoUser, 1)
	wantReply(t, h, "GO.ALL a QUOTA 9 60 KEY b QUOTA 9 60", "[0 9 8 -1 60 0 [0 9 8 -1 60] [0 9 8 -1 60]]")
	h = unasked(t, nil)
	h.Set(fakehost.Forgotten, 1)
	wantUntouched(t, h, noPermission, "GO.ALL a QUOTA 9 60 KEY b QUOTA 9 60", "GO.ALL_RO a QUOTA 9 60 KEY b QUOTA 9 60")
	wantReply(t, h, "GO.ALL a QUOTA 9 60", "[0 9 8 -1 60 0 [0 9 8 -1 60]]")
}

// All keys of a call must have the slot of the first one. In the fake host the first byte of a key says its slot.
func TestAccess_crossSlot(t *testing.T) {
	h := unasked(t, is{fakehost.Cluster: 1})
	if got := h.Call(keysOf("GO.ALL", "b", "bx", "by")...); isError(got) {
		t.Error(got)
	}
	for _, keys := range [][]string{{"b", "a"}, {"b", "c"}, {"b", "bx", "a"}, {"b", "bx", "c"}} {
		opened := h.Count(fakehost.Opened)
		errors := counters(t, h, "all")[3]
		take := strings.ReplaceAll(strings.Join(keysOf("GO.ALL", keys...), " "), " 60 0", " 60 1")
		wantUntouched(t, h, crossSlot, take, strings.Replace(take, "GO.ALL", "GO.ALL_RO", 1))
		if now := h.Count(fakehost.Opened); now != opened || counters(t, h, "all")[3] != errors+1 {
			t.Errorf("%s: %d keys were opened, counters %v", keys, now-opened, counters(t, h, "all"))
		}
	}
}

// While a slot moves, some of its keys may be at another node. The call then has no effect, whichever key that is. The user's
// permission is checked before: a user learns nothing about a forbidden key.
func TestAccess_tryAgain(t *testing.T) {
	const line = "GO.ALL ka QUOTA 9 60 KEY kb QUOTA 9 60 KEY kc QUOTA 9 60"
	for _, elsewhere := range []string{"ka", "kb", "kc"} {
		h := unasked(t, is{fakehost.Cluster: 1})
		h.Add(fakehost.Elsewhere, "kd")
		wantReply(t, h, line, "[0 9 8 -1 60 0 [0 9 8 -1 60] [0 9 8 -1 60] [0 9 8 -1 60]]")
		h.Add(fakehost.Elsewhere, elsewhere)
		wantUntouched(t, h, tryAgain, line, strings.Replace(line, "GO.ALL", "GO.ALL_RO", 1))
		h.Add(fakehost.Forbidden, "kb", "b")
		wantUntouched(t, h, noPermission, line, "GO.ALL a QUOTA 9 60 KEY b QUOTA 9 60")
	}
}

// In a cluster EXISTS shows whether all keys are at this node. If it fails, the slot of the keys is moving. If no
// call at all runs, that proves nothing about the slot: then the call goes on, after all other checks. The log
// says so once.
func TestAccess_callsFail(t *testing.T) {
	const line, crossing = "GO.ALL ka QUOTA 9 60 0 KEY kb QUOTA 9 60 0", "GO.ALL a QUOTA 9 60 0 KEY b QUOTA 9 60 0"
	const reply = "[0 9 9 -1 0 0 [0 9 9 -1 0] [0 9 9 -1 0]]"
	for _, kind := range callFailures {
		h := unasked(t, is{fakehost.Cluster: 1})
		h.CallsFail(kind, 1)
		wantUntouched(t, h, tryAgain, line)
		wantUntouched(t, h, reply, line)
		h.CallsFail(kind, 0)
		wantUntouched(t, h, reply, line, line)
		wantUntouched(t, h, crossSlot, crossing)
		h.Add(fakehost.Renamed, "PING") // nothing shows now that no call runs
		wantUntouched(t, h, tryAgain, line)
		h.Add(fakehost.Forbidden, "kb")
		wantUntouched(t, h, noPermission, line)
		if n := strings.Count(strings.Join(h.Log(), "\n"), "restart this node"); n != 1 {
			t.Errorf("%d warnings in the log %q", n, h.Log())
		}
	}
}
