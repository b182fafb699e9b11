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
		h.CallsFail(row.fails, "CONFIG")
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

// The module refuses a call of several keys if the user may not use a further key, which the server's ACL log then shows; if the
// keys have several slots; and if one is at another node while the slot moves. It asks in this order, so a user learns nothing
// about a forbidden key. The server has checked the first key, and all keys if it asks for them: the module does not check these
// again. A refused call changes nothing and opens no key. In the fake host the first byte of a key says its slot.
func TestAccess_refused(t *testing.T) {
	cluster := is{fakehost.Cluster: 1}
	for _, row := range []struct {
		is                         is
		keys, forbidden, elsewhere string
		want                       string // "": the call is admitted
		log                        string
	}{
		{nil, "a b c", "a", "", "", ""},
		{is{fakehost.Database: 3}, "a b c", "b", "", noPermission, "alice b"},
		{is{fakehost.Valkey: 1}, "a b c", "b c", "", noPermission, "alice b"},
		{is{fakehost.Valkey: 1, fakehost.Database: 3}, "a b c", "c", "", noPermission, "alice c"},
		{is{fakehost.NoUser: 1}, "a b", "b", "", "", ""}, // the call is the server's own
		{is{fakehost.NoUser: 1, fakehost.Valkey: 1, fakehost.Version: 0x080001}, "a b", "b", "", "", ""},
		{is{fakehost.Valkey: 1, fakehost.Version: 0x080001}, "a b", "b", "", noPermission, "alice b"},
		{is{fakehost.Forgotten: 1}, "a b", "", "", noPermission, ""},
		{is{fakehost.Forgotten: 1}, "a", "", "", "", ""},
		{cluster, "b bx by", "", "", "", ""},
		{cluster, "b a", "", "", crossSlot, ""},
		{cluster, "b c", "", "", crossSlot, ""},
		{cluster, "b bx a", "", "", crossSlot, ""},
		{cluster, "b bx c", "", "", crossSlot, ""},
		{cluster, "a b", "b", "", noPermission, "alice b"},
		{cluster, "ka kb kc", "", "kd", "", ""},
		{cluster, "ka kb kc", "", "ka", tryAgain, ""},
		{cluster, "ka kb kc", "", "kb", tryAgain, ""},
		{cluster, "ka kb kc", "", "kc", tryAgain, ""},
		{cluster, "ka kb kc", "kb", "ka", noPermission, "alice kb"},
		{cluster, "ka", "", "ka", "", ""},
		{is{fakehost.IOThreads: 1, fakehost.Cluster: 1}, "a b", "b", "b", "", ""}, // the server asks
	} {
		for _, name := range []string{"all", "all_ro"} {
			h, keys := unasked(t, row.is), strings.Fields(row.keys)
			call(h, "GO.QUOTA "+keys[0]+" 9 60")
			h.Add(fakehost.Forbidden, strings.Fields(row.forbidden)...)
			h.Add(fakehost.Elsewhere, row.elsewhere)
			opened, errors, before := h.Count(fakehost.Opened), number(t, h, name+"_errors"), dump(h)
			line := strings.ReplaceAll(strings.Join(keysOf("GO."+name, keys...), " "), " 60 0", " 60 1")
			got := call(h, line)
			if row.want == "" && got[0] != '[' || row.want != "" && got != row.want || strings.Join(h.ACLLog(), ", ") != row.log {
				t.Errorf("%+v, %s: %s, ACL log %q", row, line, got, h.ACLLog())
			}
			if row.want == "" {
				continue
			}
			wantNothing(t, h, line, before)
			if now := h.Count(fakehost.Opened); now != opened || number(t, h, name+"_errors") != errors+1 {
				t.Errorf("%+v, %s: %d keys were opened, INFO %v", row, line, now-opened, numbers(h))
			}
		}
	}
}

// In a cluster EXISTS shows whether all keys are at this node. If it fails, the slot of the keys is moving. If no call
// at all runs, that proves nothing about the slot: then the call goes on, after all other checks. The log says so once.
func TestAccess_callsFail(t *testing.T) {
	const line, crossing = "GO.ALL ka QUOTA 9 60 0 KEY kb QUOTA 9 60 0", "GO.ALL a QUOTA 9 60 0 KEY b QUOTA 9 60 0"
	const reply = "[0 9 9 -1 0 0 [0 9 9 -1 0] [0 9 9 -1 0]]"
	for _, kind := range callFailures {
		h := unasked(t, is{fakehost.Cluster: 1})
		h.CallsFail(kind, "EXISTS")
		wantUntouched(t, h, tryAgain, line)
		h.CallsFail(0)
		wantUntouched(t, h, reply, line)
		h.CallsFail(kind, "EXISTS", "PING")
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

// A second load fails, and changes nothing about the first one. Valkey can change io-threads meanwhile.
func TestAccess_secondLoad(t *testing.T) {
	h := unasked(t, nil)
	h.Add(fakehost.Forbidden, "b")
	h.Set(fakehost.IOThreads, 1)
	if h.Load() {
		t.Error("two loads")
	}
	wantReply(t, h, strings.Join(keysOf("GO.ALL", "a", "b"), " "), noPermission)
}

// No reply shows which keys the module names to the server, which checks them for ACL and cluster. The fake host reports a fault
// if the module opens any other key.
func TestAll_keys(t *testing.T) {
	h := loaded(t)
	for _, row := range []struct {
		words string
		want  []string
	}{
		{"a THROTTLE 1 1 1 THROTTLE 1 1 1 2 KEY 1 WINDOW 1 1 EXACT key QUOTA LEASE 1 1 KEY KEY b LEASE 1 1 MS ms", []string{"a", "1", "QUOTA", "b"}},
		{"KEY QUOTA 1 1 ALIGN 5 KEY MS QUOTA 1 1 3 align 2 KEY THROTTLE WINDOW 1 1 MS", []string{"KEY", "MS", "THROTTLE"}},
		{"a QUOTA x y KEY b QUOTA 1 1", []string{"a", "b"}}, // an error, but the keys are clear
		{"a QUOTA 1 1 KEY", nil}, {"a QUOTA 1 1 KEY b", nil}, {"a QUOTA 1", nil}, {"a LIMIT 1 1 1", nil},
		{"a QUOTA 1 1 KEY a QUOTA 1 1", nil}, {"a QUOTA 1 1 WINDOW 1 1", nil}, {"a QUOTA 1 1 x", nil},
	} {
		for _, name := range []string{"GO.ALL", "go.all_ro"} {
			words := append([]string{name}, strings.Fields(row.words)...)
			if got := h.Keys(words...); !slices.Equal(got, row.want) {
				t.Errorf("%q: keys %q, want %q", words, got, row.want)
			}
		}
	}
	for _, line := range []string{"GO.LEASE k 1 1 KEY", "GO.RELEASE k KEY l", "GO.POLICY k 1"} { // the server never asks the module for one key
		words := strings.Fields(line)
		if got := h.Keys(words...); !slices.Equal(got, []string{"k"}) || strings.Contains(h.Command(words[0]).Flags, "getkeys-api") {
			t.Errorf("%s: keys %q", line, got)
		}
	}
}
