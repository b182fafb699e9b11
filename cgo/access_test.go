package cgo_test

// No transcript has users, clusters, or servers with threads.

import (
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
	valkeyCluster := func(h *fakehost.Host) { h.Set(fakehost.Valkey, 1); h.Set(fakehost.Cluster, 1) }
	for _, row := range []struct {
		name  string
		setup func(*fakehost.Host)
		asked bool
	}{
		{"one thread", func(h *fakehost.Host) {}, true},
		{"four threads", func(h *fakehost.Host) { h.Set(fakehost.IOThreads, 4) }, false},
		{"Redis 7.4.9 with four threads", func(h *fakehost.Host) { h.Set(fakehost.Version, 0x070409); h.Set(fakehost.IOThreads, 4) }, true},
		{"Redis 8.0.0 with ten threads", func(h *fakehost.Host) { h.Set(fakehost.Version, 0x080000); h.Set(fakehost.IOThreads, 10) }, false},
		{"Valkey, which has a version of Redis, with four threads", func(h *fakehost.Host) {
			h.Set(fakehost.Valkey, 1)
			h.Set(fakehost.Version, 0x070204)
			h.Set(fakehost.IOThreads, 4)
		}, false},
		{"no such setting", func(h *fakehost.Host) { h.Set(fakehost.IOThreads, 0) }, false},
		{"CONFIG renamed", func(h *fakehost.Host) { h.Add(fakehost.Renamed, "CONFIG") }, false},
		{"CONFIG refused", func(h *fakehost.Host) { h.CallsFail(fakehost.NoReply, 1) }, false},
		{"no text for a value", func(h *fakehost.Host) { h.CallsFail(fakehost.Integers, 1) }, false},
		{"Redis cluster", func(h *fakehost.Host) { h.Set(fakehost.Cluster, 1) }, true},
		{"Valkey", func(h *fakehost.Host) { h.Set(fakehost.Valkey, 1) }, true},
		{"Valkey cluster", valkeyCluster, false},
		{"another mode before", func(h *fakehost.Host) { h.Set(fakehost.IOThreads, 4); h.LoadThenUnload(); h.Set(fakehost.IOThreads, 1) }, true},
	} {
		h := newHost(t)
		row.setup(h)
		before := h.Alive()
		if !h.Load() {
			t.Fatalf("%s: load refused: %q", row.name, h.Log())
		}
		if after := h.Alive(); after[3] != before[3] {
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
		wantReply(t, h, "GO.ALL a QUOTA 9 60 KEY a{a} QUOTA 9 60", "[0 9 8 -1 60 0 [0 9 8 -1 60] [0 9 8 -1 60]]")
	}
}

// unasked returns a server with the module that does not ask a command for its keys.
func unasked(t *testing.T, setup ...func(*fakehost.Host)) *fakehost.Host {
	t.Helper()
	h := newHost(t)
	h.Set(fakehost.IOThreads, 4)
	for _, f := range setup {
		f(h)
	}
	if !h.Load() {
		t.Fatalf("load refused: %q", h.Log())
	}
	return h
}

// The module asks whether the user may run the command on each further key, and says so in the server's ACL log if the user
// may not. It does not ask for the first key, which the server has checked. A refused call changes nothing and opens no key.
func TestAccess_furtherKeys(t *testing.T) {
	for _, row := range []struct {
		server    func(*fakehost.Host)
		forbidden []string
		log       []string
	}{
		{func(h *fakehost.Host) {}, []string{"a"}, nil},
		{func(h *fakehost.Host) { h.Set(fakehost.Database, 3) }, []string{"b"}, []string{"alice b"}},
		{func(h *fakehost.Host) { h.Set(fakehost.Valkey, 1) }, []string{"b", "c"}, []string{"alice b"}},
		{func(h *fakehost.Host) { h.Set(fakehost.Valkey, 1); h.Set(fakehost.Database, 3) }, []string{"c"}, []string{"alice c"}},
		{func(h *fakehost.Host) { h.Set(fakehost.Valkey, 1); h.Add(fakehost.Hidden, "ACLCheckPermissions") }, []string{"c"}, []string{"alice c"}}, // Valkey 8.1
	} {
		for _, command := range []string{"GO.ALL", "go.all_ro"} {
			h := unasked(t, row.server)
			call(h, "GO.QUOTA a 9 60")
			h.Add(fakehost.Forbidden, row.forbidden...)
			opened := h.Count(fakehost.Opened)
			before := dump(h)
			got := h.Call(keysOf(command, "a", "b", "c")...)
			if row.log == nil {
				if checked := h.ACLChecks(); got.Err != "" || !slices.Equal(checked, []string{"b", "c"}) {
					t.Errorf("%s: %v, asked for %q", command, got, checked)
				}
			} else if now := h.Count(fakehost.Opened); got.Err != noPermission || now != opened {
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
	for _, server := range []func(*fakehost.Host){func(h *fakehost.Host) {}, func(h *fakehost.Host) { h.Set(fakehost.Cluster, 1) }} {
		h := unasked(t, server)
		h.Add(fakehost.Elsewhere, "a") // the server would have refused the call
		noCheck(h, keysOf("GO.ALL", "a")...)
		noCheck(h, "GO.ALL_RO", "a", "THROTTLE", "1", "1", "1", "THROTTLE", "2", "1", "1")
		noCheck(h, append(keysOf("GO.ALL", "a", "b"), "wrong")...)
	}
	h := newHost(t)
	h.Set(fakehost.Cluster, 1)
	if !h.Load() {
		t.Fatal(h.Log())
	}
	h.Add(fakehost.Forbidden, "b")
	h.Add(fakehost.Elsewhere, "b")
	noCheck(h, keysOf("GO.ALL", "a", "b")...)
}

// A call without a user is the server's own and may use all keys. A user that was deleted may use none.
func TestAccess_user(t *testing.T) {
	h := unasked(t)
	h.Add(fakehost.Forbidden, "b")
	h.Set(fakehost.NoUser, 1)
	wantReply(t, h, "GO.ALL a QUOTA 9 60 KEY b QUOTA 9 60", "[0 9 8 -1 60 0 [0 9 8 -1 60] [0 9 8 -1 60]]")
	h = unasked(t)
	h.Set(fakehost.Forgotten, 1)
	wantUntouched(t, h, noPermission, "GO.ALL a QUOTA 9 60 KEY b QUOTA 9 60", "GO.ALL_RO a QUOTA 9 60 KEY b QUOTA 9 60")
	wantReply(t, h, "GO.ALL a QUOTA 9 60", "[0 9 8 -1 60 0 [0 9 8 -1 60]]")
}

// clustered returns a node of a cluster that does not ask a command for its keys.
func clustered(t *testing.T) *fakehost.Host {
	t.Helper()
	return unasked(t, func(h *fakehost.Host) { h.Set(fakehost.Cluster, 1) })
}

// All keys of a call must have the slot of the first one. Only the text in the first pair of braces
// counts, unless it is empty.
func TestAccess_crossSlot(t *testing.T) {
	h := clustered(t)
	for _, row := range []struct {
		keys string
		same bool
	}{
		{"a b", false}, {"{a}x y{a}", true}, {"{a}x y{a} z{b}", false}, {"a{b}c{d} b", true}, {"a{b}c{d} d", false},
		{"{}a {}b", false}, {"{}{a} a", false}, {"{a a", false}, {"a} a", false}, {"}a{ a", false}, {"{{a}} {a", true},
	} {
		words := keysOf("GO.ALL", strings.Fields(row.keys)...)
		if row.same {
			if got := h.Call(words...); got.Err != "" {
				t.Errorf("%s: %v", row.keys, got)
			}
			continue
		}
		opened := h.Count(fakehost.Opened)
		errors := counters(t, h, "all")[3]
		take := strings.ReplaceAll(strings.Join(words, " "), " 60 0", " 60 1")
		wantUntouched(t, h, crossSlot, take, strings.Replace(take, "GO.ALL", "GO.ALL_RO", 1))
		if now := h.Count(fakehost.Opened); now != opened || counters(t, h, "all")[3] != errors+1 {
			t.Errorf("%s: %d keys were opened, counters %v", row.keys, now-opened, counters(t, h, "all"))
		}
	}
}

// While a slot moves, some of its keys may be at another node. The call then has no effect, whichever key that is. The user's
// permission is checked before: a user learns nothing about a forbidden key.
func TestAccess_tryAgain(t *testing.T) {
	const line = "GO.ALL a{s} QUOTA 9 60 KEY b{s} QUOTA 9 60 KEY c{s} QUOTA 9 60"
	for _, elsewhere := range []string{"a{s}", "b{s}", "c{s}"} {
		h := clustered(t)
		if h.Add(fakehost.Elsewhere, "d{s}"); call(h, line).Err != "" {
			t.Error(h.Reply())
		}
		h.Add(fakehost.Elsewhere, elsewhere)
		wantUntouched(t, h, tryAgain, line, strings.Replace(line, "GO.ALL", "GO.ALL_RO", 1))
		h.Add(fakehost.Forbidden, "b{s}", "b")
		wantUntouched(t, h, noPermission, line, "GO.ALL a QUOTA 9 60 KEY b QUOTA 9 60")
	}
}

// In a cluster EXISTS shows whether all keys are at this node. If it fails, the slot of the keys is moving. If no
// call at all runs, that proves nothing about the slot: then the call goes on, after all other checks. The log
// says so once.
func TestAccess_callsFail(t *testing.T) {
	const line, crossing = "GO.ALL a{s} QUOTA 9 60 0 KEY b{s} QUOTA 9 60 0", "GO.ALL a QUOTA 9 60 0 KEY b QUOTA 9 60 0"
	const reply = "[0 9 9 -1 0 0 [0 9 9 -1 0] [0 9 9 -1 0]]"
	for _, kind := range callFailures {
		h := clustered(t)
		h.CallsFail(kind, 1)
		wantUntouched(t, h, tryAgain, line)
		wantUntouched(t, h, reply, line)
		h.CallsFail(kind, 0)
		wantUntouched(t, h, reply, line, line)
		wantUntouched(t, h, crossSlot, crossing)
		h.Add(fakehost.Renamed, "PING") // nothing shows now that no call runs
		wantUntouched(t, h, tryAgain, line)
		h.Add(fakehost.Forbidden, "b{s}")
		wantUntouched(t, h, noPermission, line)
		if n := strings.Count(strings.Join(h.Log(), "\n"), "restart this node"); n != 1 {
			t.Errorf("%d warnings in the log %q", n, h.Log())
		}
	}
}
