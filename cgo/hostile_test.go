package cgo_test

// No transcript has another module in the server.

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
	"gothrottle/commands"
)

// hostileActions are what another module does to a key when it hears an event.
var hostileActions = []struct {
	name string
	do   func(h *fakehost.Host, key string)
}{
	{"SET", func(h *fakehost.Host, key string) { h.Put(key, textOf("theirs")) }},
	{"HSET", func(h *fakehost.Host, key string) { h.Put(key, hashOf("theirs", "theirs")) }},
	{"DEL", func(h *fakehost.Host, key string) { h.Delete(key) }},
	{"a key that has expired", func(h *fakehost.Host, key string) {
		h.Put(key, textOf("theirs"))
		h.Expire(key, h.Now()/1000-1)
	}},
	{"a call", func(h *fakehost.Host, key string) { call(h, "GO.ALL "+key+" THROTTLE 3 1 60") }},
	{"PEXPIRE", func(h *fakehost.Host, key string) {
		if h.Get(key) != nil {
			h.Expire(key, h.Now()/1000-1)
		}
	}},
	{"RENAME", func(h *fakehost.Host, key string) {
		if h.Get(key) != nil {
			h.Delete("elsewhere")
			h.Rename(key, "elsewhere")
		}
	}},
}

// hostileCalls have up to three keys, a to c, and the calls that make these keys.
var hostileCalls = []struct{ line, makes string }{
	{"GO.THROTTLE a 3 1 60", "GO.THROTTLE a 3 1 60"},
	{"GO.THROTTLE a 3 1 60 -3", "GO.THROTTLE a 3 1 60"},
	{"GO.WINDOW a 3 60", "GO.WINDOW a 3 60"},
	{"GO.QUOTA a 3 60", "GO.QUOTA a 3 60"},
	{"GO.LEASE a 3 60 x", "GO.LEASE a 3 60 y"},
	{"GO.RELEASE a y", "GO.LEASE a 3 60 y"},
	{"GO.INFO a", "GO.THROTTLE a 3 1 60"},
	{"GO.ALL a THROTTLE 3 1 60 KEY b WINDOW 3 60 KEY c QUOTA 3 60", "GO.THROTTLE a 3 1 60; GO.WINDOW b 3 60; GO.QUOTA c 3 60"},
	{"GO.ALL a LEASE 3 60 x KEY b THROTTLE 3 1 60 -3 KEY c WINDOW 3 60", "GO.LEASE a 3 60 y; GO.THROTTLE b 3 1 60; GO.WINDOW c 3 60"},
	{"GO.ALL a QUOTA 3 60 -3 KEY b QUOTA 3 60 KEY c THROTTLE 3 1 60", "GO.QUOTA a 3 60; GO.QUOTA b 3 60; SET c"},
	{"GO.ALL_RO a THROTTLE 3 1 60 KEY b WINDOW 3 60 KEY c QUOTA 3 60", "GO.THROTTLE a 3 1 60; GO.WINDOW b 3 60; GO.QUOTA c 3 60"},
}

// place puts each key of a call into the state that a digit says: absent, there, or expired.
func place(h *fakehost.Host, makes, states string) {
	for i, line := range strings.Split(makes, "; ") {
		key := strings.Fields(line)[1]
		switch h.Delete(key); {
		case states[i] == '0':
			continue
		case strings.HasPrefix(line, "SET"): // as redis-cell
			h.Put(key, textOf(tat(h, 1e9)))
		default:
			call(h, line)
		}
		if states[i] == '2' {
			h.Expire(key, h.Now()/1000-1)
		}
	}
}

// hostileEvents are events in which it does so. The last one comes when the call is over.
var hostileEvents = []string{"expired", "keymiss", "new", "expire"}

// Another module may change any key in any event, also in those that the server sends inside of the
// API functions that the module calls. No handle is open then, and what the other module has written
// stays. Calls that it makes take full effect. The fake host reports a fault for a handle that is open.
func TestHostile(t *testing.T) {
	h := loaded(t)
	heard := map[string]int{}
	all := len(hostileCalls) * 27 * len(hostileEvents) * len(hostileActions) * 3
	for i := 0; i < all; i += all / rounds(all) {
		c, i := hostileCalls[i%len(hostileCalls)], i/len(hostileCalls)
		states, i := fmt.Sprint(i%3, i/3%3, i/9%3), i/27
		event, i := hostileEvents[i%len(hostileEvents)], i/len(hostileEvents)
		action, target := hostileActions[i%len(hostileActions)], []string{"a", "b", "c"}[i/len(hostileActions)]
		what := fmt.Sprintf("%s, states %s; %s %s in %s", c.line, states, action.name, target, event)
		place(h, c.makes, strings.ReplaceAll(states, " ", ""))
		wrote, r := false, copyOf(h, "a", "b", "c")
		h.Listen(func(e fakehost.Event) {
			if open := h.Alive()[1]; e.Name == "expire" && open != 0 {
				t.Errorf("%s: %d keys are open", what, open)
			}
			// A server's own command would not survive what removes a key that is being made. Nor would it
			// survive a key that expired and is there again, if its module makes it again whenever it expires.
			if e.Name != event || event == "new" && e.Key == target || e.Key == target && action.name == "a key that has expired" {
				return
			}
			heard[event+" "+action.name]++
			action.do(h, target)
			wrote = true
		})
		call(h, c.line)
		h.Listen(func(fakehost.Event) {})
		if v := h.Get(target); wrote && (action.name == "SET" && (v == nil || v.Text != "theirs") || action.name == "HSET" && (v == nil || len(v.Fields) != 1)) {
			t.Errorf("%s: not theirs: %q", what, dump(h))
		}
		if action.name == "a call" && event == "expire" {
			for _, effect := range h.Effects() {
				_, _ = r.Do(0, effect...)
			}
			r.wantSame(t, h, what, "a", "b", "c")
		}
		if faults := h.Faults(); len(faults) > 0 {
			t.Fatalf("%s: %q", what, faults)
		}
	}
	if len(heard) != len(hostileEvents)*len(hostileActions) {
		t.Errorf("it never did some of its actions in some events: %v", heard)
	}
}

// A module that makes a key again when it expires, and lets another key of the call expire: the call is an error.
func TestHostile_neverStable(t *testing.T) {
	h := loaded(t)
	h.Put("a", textOf("theirs"))
	h.Put("b", textOf("theirs"))
	h.Expire("a", h.Now()/1000-1)
	h.Listen(func(e fakehost.Event) {
		if e.Name == "expired" {
			h.Put(e.Key, textOf("theirs"))
			h.Expire(map[string]string{"a": "b", "b": "a"}[e.Key], h.Now()/1000-1)
		}
	})
	wantReply(t, h, "GO.ALL a QUOTA 3 60 KEY b QUOTA 3 60", "ERR another module keeps changing the keys of this call")
}

// A module may move a key away while the key is being made, or append to it. The call then sets no
// expiry and replicates nothing.
func TestHostile_changedInNew(t *testing.T) {
	renames, appends := func(h *fakehost.Host) { h.Rename("k", "elsewhere") }, func(h *fakehost.Host) { h.Append("k", "theirs") }
	const several = "GO.ALL k QUOTA 3 60 KEY l QUOTA 3 60 0"
	for _, row := range []struct {
		line   string
		action func(*fakehost.Host)
	}{
		{"GO.THROTTLE k 3 1 60", renames}, {"GO.WINDOW k 3 60", renames}, {"GO.LEASE k 3 60 a", renames}, {"GO.QUOTA k 3 60", renames},
		{several, renames}, {"GO.QUOTA k 3 60", appends}, {several, appends},
	} {
		h := loaded(t)
		h.Listen(func(e fakehost.Event) {
			if e.Name == "new" {
				row.action(h)
			}
		})
		got := call(h, row.line)
		if got[0] != '[' || h.Effects() != nil || expiryOf(h, "k") != 0 || expiryOf(h, "elsewhere") != 0 {
			t.Errorf("%s: %s, effects %q; %q", row.line, got, h.Effects(), dump(h))
		}
	}
}

// A call inside a call leaves the outer one as it is. A command filter of another module makes it while the module runs ZRANGE,
// for a denied lease.
func TestHostile_callInsideCall(t *testing.T) {
	rowOf(t, "GO.HELP").Handler = func(*commands.Call) commands.ErrorCode { panic("inside") }
	var replies []string
	for _, inner := range []string{"", "GO.ALL d THROTTLE 8 1 60 THROTTLE 7 1 60 THROTTLE 6 1 60", "GO.ALL d THROTTLE 8 1 60 KEY e WINDOW 0 60", "GO.ALL d THROTTLE 8 1 60 UPTO", "GO.HELP"} {
		h, heard := loaded(t), false
		for _, ttl := range []string{"10", "20", "30"} {
			call(h, "GO.LEASE b 3 "+ttl+" "+ttl)
		}
		h.Listen(func(e fakehost.Event) {
			if heard = heard || e.Name == "filter"; inner != "" {
				h.Call(strings.Fields(inner)...)
			}
		})
		if replies = append(replies, call(h, "GO.ALL a THROTTLE 3 1 60 KEY b LEASE 2 60 y KEY c WINDOW 9 60 2")); !heard {
			t.Error("no command was filtered")
		}
	}
	for _, reply := range replies {
		if reply != replies[0] || strings.HasPrefix(reply, "ERR") {
			t.Errorf("%s, without a call inside %s", reply, replies[0])
		}
	}
}

// The module runs ZRANGE, ZCOUNT and GET amid a call, and a command filter of another module may then remove a key of the call,
// expire it or put another one in its place. That is an error, for which the fake host finds no key open.
func TestHostile_changedInFilter(t *testing.T) {
	const changing = "ERR another module keeps changing the keys of this call"
	for _, row := range []struct{ line, target, want string }{
		{"GO.LEASE l 100 60 y", "l", changing}, {"GO.INFO l", "l", changing}, {"GO.INFO q", "q", "ERR the string at this key is not a rate limiter"},
		{"GO.ALL l LEASE 100 60 y KEY q QUOTA 9 60", "q", changing}, {"GO.ALL_RO q QUOTA 9 60 KEY l LEASE 100 60 y", "q", changing},
	} {
		long := hostileActions[0]
		long.do = func(h *fakehost.Host, key string) { h.Put(key, textOf(strings.Repeat("theirs", 1e5))) } // more than fits anywhere
		for _, action := range append(slices.Clone(hostileActions), long) {
			h, heard := loaded(t), false
			call(h, "GO.QUOTA q 9 60")
			for i := range 130 {
				call(h, fmt.Sprintf("GO.LEASE l 200 60 %d", i))
			}
			h.Listen(func(e fakehost.Event) {
				if e.Name == "filter" {
					heard = true
					action.do(h, row.target)
				}
			})
			got := call(h, row.line)
			if !heard || got != row.want && action.name != "a call" {
				t.Errorf("%s, %s %s: %s", row.line, action.name, row.target, got)
			}
		}
	}
}

// A string that another module replaces by one of the same length while the key is closed is read again.
func TestHostile_anotherOfThatLength(t *testing.T) {
	h := loaded(t)
	call(h, "GO.QUOTA q 9 60")
	for i := range 130 {
		call(h, fmt.Sprintf("GO.LEASE l 200 60 %d", i))
	}
	h.Listen(func(e fakehost.Event) {
		if v := h.Get("q"); e.Name == "filter" && v.Text[0] == '1' {
			v.Text = "5" + v.Text[1:]
			h.Put("q", v)
		}
	})
	wantReply(t, h, "GO.ALL l LEASE 100 60 y KEY q QUOTA 9 60", "[1 100 0 60 60 0 [1 100 0 60 60 0] [0 9 4 -1 60]]")
}
