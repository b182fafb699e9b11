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

// keysOf returns GO.ALL with a peek at each of these keys.
func keysOf(command string, keys ...string) []string {
	var words []string
	for _, key := range keys {
		words = append(words, "KEY", key, "QUOTA", "9", "60", "0")
	}
	words[0] = command
	return words
}

// wantAsked checks how the module has registered its commands that may have several keys, and which
// keys the server sees.
func wantAsked(t *testing.T, h *fakehost.Host, what string, asked bool) {
	t.Helper()
	for _, row := range []struct{ name, flags, keySpec string }{
		{"GO.ALL", "write deny-oom", "0x32"}, {"GO.ALL_RO", "readonly", "0x11"},
	} {
		flags, keySpec, keys := row.flags, row.keySpec, []string{"a"}
		if asked {
			flags, keySpec, keys = flags+" getkeys-api", strings.Replace(keySpec, "0x", "0x2", 1), []string{"a", "b"}
		}
		c := h.Command(row.name)
		if c.Flags != flags || !strings.Contains(c.Info, "keys: flags="+keySpec+" index=1 range=0,1,0\n") {
			t.Errorf("%s: %s has the flags %q and is described as\n%s", what, row.name, c.Flags, c.Info)
		}
		if got := h.Keys(keysOf(row.name, "a", "b")...); !slices.Equal(got, keys) {
			t.Errorf("%s: the server sees the keys %q of %s, want %q", what, got, row.name, keys)
		}
	}
	for _, name := range []string{"GO.THROTTLE", "GO.QUOTA_RO", "GO.POLICY", "GO.POLICY_RO"} {
		if c := h.Command(name); strings.Contains(c.Flags, "getkeys-api") {
			t.Errorf("%s: %s has the flags %q", what, name, c.Flags)
		}
	}
}

// The module lets the server ask for keys only if the server does so on its main thread.
func TestAccess_asked(t *testing.T) {
	valkeyCluster := func(h *fakehost.Host) { h.BeValkey(); h.BeCluster() }
	for _, row := range []struct {
		name  string
		setup func(*fakehost.Host)
		asked bool
	}{
		{"one thread", func(h *fakehost.Host) {}, true},
		{"four threads", func(h *fakehost.Host) { h.IOThreads(4) }, false},
		{"ten threads", func(h *fakehost.Host) { h.IOThreads(10) }, false},
		{"Redis 7.4.9 with four threads", func(h *fakehost.Host) { h.ServerVersion(0x070409); h.IOThreads(4) }, true},
		{"Redis 8.0.0 with four threads", func(h *fakehost.Host) { h.ServerVersion(0x080000); h.IOThreads(4) }, false},
		{"Valkey, which tells a version of Redis, with four threads", func(h *fakehost.Host) { h.BeValkey(); h.ServerVersion(0x070204); h.IOThreads(4) }, false},
		{"no such setting", func(h *fakehost.Host) { h.IOThreads(0) }, false},
		{"CONFIG renamed", func(h *fakehost.Host) { h.RenameAway("CONFIG") }, false},
		{"CONFIG refused", func(h *fakehost.Host) { h.CallsFail(fakehost.NoReply, 1) }, false},
		{"no text for a value", func(h *fakehost.Host) { h.CallsFail(fakehost.Integers, 1) }, false},
		{"Redis cluster", (*fakehost.Host).BeCluster, true},
		{"Valkey", (*fakehost.Host).BeValkey, true},
		{"Valkey with four threads", func(h *fakehost.Host) { h.BeValkey(); h.IOThreads(4) }, false},
		{"Valkey cluster", valkeyCluster, false},
	} {
		h := newHost(t)
		row.setup(h)
		before := h.Alive()
		if !h.Load() {
			t.Fatalf("%s: load refused: %q", row.name, h.Log())
		}
		wantAsked(t, h, row.name, row.asked)
		if after := h.Alive(); after[3] != before[3] {
			t.Errorf("%s: alive %v, before %v", row.name, after, before)
		}
		wantReply(t, h, "GO.ALL a QUOTA 9 60 KEY a{a} QUOTA 9 60", "[0 9 8 -1 60 0 [0 9 8 -1 60] [0 9 8 -1 60]]")
	}
}

// The server can undo a load and load the module again in another mode. The last load counts.
func TestAccess_loadedAgain(t *testing.T) {
	h := newHost(t)
	for _, threads := range []int{4, 1, 4, 1} {
		h.IOThreads(threads)
		if !h.Load() {
			t.Fatalf("load refused: %q", h.Log())
		}
		wantAsked(t, h, fmt.Sprint(threads, " threads"), threads == 1)
		if !h.Unload() {
			t.Fatalf("unload refused: %q", h.Log())
		}
	}
}

// unasked returns a server with the module that does not ask a command for its keys.
func unasked(t *testing.T) *fakehost.Host {
	t.Helper()
	h := newHost(t)
	h.IOThreads(4)
	if !h.Load() {
		t.Fatalf("load refused: %q", h.Log())
	}
	return h
}

// errorsOf returns how many errors the module has counted for a command.
func errorsOf(t *testing.T, h *fakehost.Host, command string) int {
	return counters(t, h, strings.ToLower(strings.TrimPrefix(command, "GO.")))[3]
}

// A call on a further key that the user may not use is an error and changes nothing. The server's ACL
// log names the key.
func TestAccess_forbidden(t *testing.T) {
	for _, row := range []struct {
		forbidden []string
		log       string
	}{
		{[]string{"b"}, "alice b"}, {[]string{"c"}, "alice c"}, {[]string{"b", "c"}, "alice b"},
	} {
		for _, command := range []string{"GO.ALL", "GO.ALL_RO"} {
			h := unasked(t)
			h.Forbid(row.forbidden...)
			call(h, "GO.QUOTA a 9 60")
			call(h, "GO.QUOTA c 9 60")
			opened, _ := h.Opened()
			errors := errorsOf(t, h, command)
			line := command + " a QUOTA 9 60 KEY b QUOTA 9 60 KEY c QUOTA 9 60"
			wantUntouched(t, h, noPermission, line)
			if now, _ := h.Opened(); now != opened {
				t.Errorf("%s: %d keys were opened", line, now-opened)
			}
			if got := h.ACLLog(); !slices.Equal(got, []string{row.log}) {
				t.Errorf("%s without %q: ACL log %q", line, row.forbidden, got)
			}
			if got := errorsOf(t, h, command) - errors; got != 1 {
				t.Errorf("%s: counted %d errors", line, got)
			}
		}
	}
}

// The module asks whether the user may run the command on each further key: the host knows no other
// question. It does not ask for the first key, which the server has checked.
func TestAccess_furtherKeys(t *testing.T) {
	want := []string{"b", "c"}
	for _, row := range []struct{ command, server string }{
		{"GO.ALL", "Redis"}, {"go.all_ro", "Redis"}, {"GO.ALL", "Valkey 8.1"}, {"GO.ALL", "Valkey 9.1"}, {"GO.ALL_RO", "Valkey 9.1"},
	} {
		h := newHost(t)
		h.IOThreads(4)
		h.SelectDB(3)
		if row.server != "Redis" {
			h.BeValkey()
		}
		if row.server == "Valkey 8.1" {
			h.Hide("ACLCheckPermissions")
		}
		if !h.Load() {
			t.Fatalf("load refused: %q", h.Log())
		}
		h.Forbid("a") // the server would have refused the call
		if got := h.Call(keysOf(row.command, "a", "b", "c")...); got.Err != "" {
			t.Errorf("%v: %v", row, got)
		}
		if got := h.ACLChecks(); !slices.Equal(got, want) || h.ACLLog() != nil {
			t.Errorf("%v: checks %q, want %q; ACL log %q", row, got, want, h.ACLLog())
		}
	}
}

// aclFunctions are the functions by which the module checks access, besides Call.
var aclFunctions = []string{"GetCurrentUserName", "GetModuleUserFromUserName", "ACLCheckCommandPermissions", "ACLCheckPermissions", "ACLAddLogEntry",
	"GetContextFlags"}

// wantNoCheck runs a command and checks that the module checks no access.
func wantNoCheck(t *testing.T, h *fakehost.Host, words ...string) {
	t.Helper()
	h.ResetAPICalls()
	h.Call(words...)
	for _, function := range append(aclFunctions, "Call") {
		if n := h.APICallsOf(function); n != 0 {
			t.Errorf("%q: %d calls of %s", words, n, function)
		}
	}
}

// A call with one key makes no check, nor does a call that is an error, nor any call if the server asks
// for the keys.
func TestAccess_noCheck(t *testing.T) {
	for _, cluster := range []bool{false, true} {
		h := unasked(t)
		if cluster {
			h.BeCluster()
		}
		h.Elsewhere("a") // the server would have refused the call
		wantNoCheck(t, h, keysOf("GO.ALL", "a")...)
		wantNoCheck(t, h, keysOf("GO.ALL_RO", "a")...)
		wantNoCheck(t, h, "GO.ALL", "a", "THROTTLE", "1", "1", "1", "THROTTLE", "2", "1", "1")
		wantNoCheck(t, h, "GO.THROTTLE", "a", "1", "1", "1")
		wantNoCheck(t, h, append(keysOf("GO.ALL", "a", "b"), "wrong")...)
	}
	h := newHost(t)
	h.BeCluster()
	if !h.Load() {
		t.Fatal(h.Log())
	}
	h.Forbid("b")
	h.Elsewhere("b")
	wantNoCheck(t, h, keysOf("GO.ALL", "a", "b")...)
}

// A call without a user is the server's own and may use all keys. A user that was deleted may use none.
func TestAccess_user(t *testing.T) {
	h := unasked(t)
	h.Forbid("b")
	h.NoUser()
	wantReply(t, h, "GO.ALL a QUOTA 9 60 KEY b QUOTA 9 60", "[0 9 8 -1 60 0 [0 9 8 -1 60] [0 9 8 -1 60]]")
	if h.ACLChecks() != nil || h.ACLLog() != nil {
		t.Errorf("checks %q, ACL log %q", h.ACLChecks(), h.ACLLog())
	}
	h = unasked(t)
	h.ForgetUser()
	wantUntouched(t, h, noPermission, "GO.ALL a QUOTA 9 60 KEY b QUOTA 9 60", "GO.ALL_RO a QUOTA 9 60 KEY b QUOTA 9 60")
	wantReply(t, h, "GO.ALL a QUOTA 9 60", "[0 9 8 -1 60 0 [0 9 8 -1 60]]")
}

// clustered returns a node of a cluster that does not ask a command for its keys.
func clustered(t *testing.T) *fakehost.Host {
	t.Helper()
	h := unasked(t)
	h.BeCluster() // it counts for each call
	return h
}

// All keys of a call must have the slot of the first one. Only the text in the first pair of braces
// counts, unless it is empty.
func TestAccess_crossSlot(t *testing.T) {
	h := clustered(t)
	for _, row := range []struct {
		keys string
		same bool
	}{
		{"a b", false}, {"{a} a", true}, {"{a}x y{a}", true}, {"{a}x y{a} z{a}", true}, {"{a}x y{a} z{b}", false},
		{"a{b}c{d} b", true}, {"a{b}c{d} d", false}, {"a{b}c{d} {b}", true}, {"{}a {}b", false}, {"{}a a", false}, {"{}{a} a", false},
		{"{a a", false}, {"{a {a}", false}, {"a} a", false}, {"}a{ a", false}, {"{{a}} {a", true},
	} {
		words := keysOf("GO.ALL", strings.Fields(row.keys)...)
		if row.same {
			if got := h.Call(words...); got.Err != "" {
				t.Errorf("%s: %v", row.keys, got)
			}
			continue
		}
		h.ResetAPICalls()
		errors := errorsOf(t, h, "GO.ALL")
		take := strings.ReplaceAll(strings.Join(words, " "), " 60 0", " 60 1")
		wantUntouched(t, h, crossSlot, take, strings.Replace(take, "GO.ALL", "GO.ALL_RO", 1))
		if n := h.APICallsOf("OpenKey") + h.APICallsOf("Call"); n != 0 {
			t.Errorf("%s: %d keys were opened or looked for", row.keys, n)
		}
		if got := errorsOf(t, h, "GO.ALL") - errors; got != 1 {
			t.Errorf("%s: counted %d errors", row.keys, got)
		}
	}
}

// While a slot moves, some of its keys may be at another node. The call then has no effect, whichever
// key that is.
func TestAccess_tryAgain(t *testing.T) {
	for _, elsewhere := range []string{"a{s}", "b{s}", "c{s}"} {
		h := clustered(t)
		h.Elsewhere(elsewhere)
		const line = "GO.ALL a{s} QUOTA 9 60 KEY b{s} QUOTA 9 60 KEY c{s} QUOTA 9 60"
		wantUntouched(t, h, tryAgain, line, strings.Replace(line, "GO.ALL", "GO.ALL_RO", 1))
	}
	h := clustered(t)
	h.Elsewhere("d{s}")
	var keys []string
	for i := range 32 {
		keys = append(keys, fmt.Sprint("key", i, "{s}"))
	}
	if got := h.Call(keysOf("GO.ALL", keys...)...); got.Err != "" {
		t.Error(got)
	}
	h.Elsewhere(keys[31])
	if got := h.Call(keysOf("GO.ALL", keys...)...); got.Err != tryAgain {
		t.Error(got)
	}
}

// The user's permission is checked before the slot: a user learns nothing about a forbidden key.
func TestAccess_permissionFirst(t *testing.T) {
	h := clustered(t)
	h.Forbid("b", "b{a}")
	h.Elsewhere("b{a}")
	wantUntouched(t, h, noPermission, "GO.ALL a QUOTA 9 60 KEY b QUOTA 9 60", "GO.ALL a QUOTA 9 60 KEY b{a} QUOTA 9 60")
	if got := h.ACLLog(); !slices.Equal(got, []string{"alice b", "alice b{a}"}) {
		t.Errorf("ACL log %q", got)
	}
}

// In a cluster EXISTS shows whether all keys are at this node. If it fails, the slot of the keys is moving. If no
// call at all runs, that proves nothing about the slot: then the call goes on, after all other checks. The log
// says so once.
func TestAccess_callsFail(t *testing.T) {
	const line, crossing = "GO.ALL a{s} QUOTA 9 60 0 KEY b{s} QUOTA 9 60 0", "GO.ALL a QUOTA 9 60 0 KEY b QUOTA 9 60 0"
	const reply = "[0 9 9 -1 0 0 [0 9 9 -1 0] [0 9 9 -1 0]]"
	for _, kind := range callFailures {
		for _, both := range []string{line, strings.Replace(line, "GO.ALL", "GO.ALL_RO", 1)} {
			h := clustered(t)
			h.CallsFail(kind, 1)
			wantUntouched(t, h, tryAgain, both)
			wantUntouched(t, h, reply, both)
			h.CallsFail(kind, 0)
			wantUntouched(t, h, reply, both, both)
			wantUntouched(t, h, crossSlot, strings.Replace(both, "b{s}", "b", 1), crossing)
			h.RenameAway("PING") // nothing shows now that no call runs
			wantUntouched(t, h, tryAgain, both)
			h.Forbid("b{s}")
			wantUntouched(t, h, noPermission, both)
			if n := strings.Count(strings.Join(h.Log(), "\n"), "restart this node"); n != 1 {
				t.Errorf("%d warnings in the log %q", n, h.Log())
			}
		}
	}
	h := clustered(t)
	h.Elsewhere("b{s}")
	h.RenameAway("PING")
	wantUntouched(t, h, tryAgain, line)
}
