package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gothrottle/commands"
	"gothrottle/commands/memory"
)

// A reply has the same text in RESP2, in RESP3 and in memory.
func TestText(t *testing.T) {
	for _, c := range []struct {
		v    any
		want string
	}{
		{[]any{int64(0), int64(5), []any{int64(1)}}, "[0 5 [1]]"},
		{[]any{"kind", "lease", "held", int64(1), "holders", []any{"b", int64(2), "a", int64(3)}}, "[held:1 holders:[a:3 b:2] kind:lease]"},
		{map[any]any{"kind": "lease", "held": int64(1), "holders": map[any]any{"b": int64(2), "a": int64(3)}}, "[held:1 holders:[a:3 b:2] kind:lease]"},
		{[]any{"kind", "throttle", "cells", []any{[]any{"in_use", nil}}}, "[cells:[[in_use:<nil>]] kind:throttle]"},
		{map[any]any{}, "[]"}, {[]any{}, "[]"}, {nil, "<nil>"},
	} {
		if got := text(c.v); got != c.want {
			t.Errorf("%v: %s, want %s", c.v, got, c.want)
		}
	}
}

func TestKeysOf(t *testing.T) {
	for call, want := range map[string]string{
		"go.throttle a 1 1 1": "a", "GO.RELEASE a KEY b": "a", "GO.POLICY p:1 KEY b": "p:1", "GO.TOP KEY": "", "GO.TOP": "",
		"GO.ALL a QUOTA 1 1 key b QUOTA 1 1 KEY a QUOTA 1 1 MS": "a b", "GO.ALL_RO a LEASE 1 1 KEY KEY b": "a KEY b",
	} {
		if got := strings.Join(slices.Compact(keysOf(strings.Fields(call))), " "); got != want {
			t.Errorf("%s: %s, want %s", call, got, want)
		}
	}
}

// The model keeps a key until the server's clock has passed the expiry. After the clock was set back, the server says which of
// the keys are there.
func TestModel_expiry(t *testing.T) {
	r := &run{m: newModel()}
	m := r.m
	call := func(want string, words ...string) {
		t.Helper()
		if got := m.call(0, words); got != want {
			t.Errorf("%q at %d, server's clock %d: %s, want %s", words, m.now, m.wall, got, want)
		}
	}
	m.now, m.wall = begin+3600*second, begin
	call("[0 5 4 -1 1]", "GO.QUOTA", "a", "5", "1")
	call("[0 5 4 -1 1]", "GO.QUOTA", "b", "5", "1")
	m.now += 60 * second
	call("[ends_in_ms:0 expires_in_ms:0 kind:quota used:0]", "GO.INFO", "a")
	server := map[string]*memory.Value{"0 b": m.dbs[0].Get("b"), "0 c": {Kind: commands.KindOther, Expire: 5}}
	r.takeExpired(server, int64(m.now)/1000)
	if m.dbs[0].Get("c") == nil {
		t.Error("a key that the server holds is not taken over")
	}
	call("<nil>", "GO.INFO", "a")
	call("[ends_in_ms:0 expires_in_ms:0 kind:quota used:0]", "GO.INFO", "b")
	m.wall = m.now
	call("<nil>", "GO.INFO", "b")
}

// Of calls that got no reply the first few were made, or all or none of a transaction.
func TestModel_makeUntil(t *testing.T) {
	calls := [][]string{{"GO.QUOTA", "a", "9", "60"}, {"GO.QUOTA", "b", "9", "60"}, {"GO.QUOTA", "a", "9", "60"}}
	for made := range 5 {
		for _, whole := range []bool{false, true} {
			server, m := newModel(), newModel()
			server.now, m.now = begin, begin
			for i := range made {
				server.call(0, append(slices.Clone(calls[i%3]), "2")[:4+i/3]) // the last one is another call
			}
			err := m.makeUntil(sent{calls: calls, whole: whole}, func() error {
				if !same(server.dbs[0].Get("a"), m.dbs[0].Get("a")) || !same(server.dbs[0].Get("b"), m.dbs[0].Get("b")) {
					return errors.New("different")
				}
				return nil
			})
			if want := made > 3 || whole && made%3 > 0; (err != nil) != want {
				t.Errorf("%d calls were made, all or none is %v: %v", made, whole, err)
			}
		}
	}
}

// A key of a call is there or gone while the server evicts keys.
func TestCheckEvicted(t *testing.T) {
	r := &run{m: newModel(), stats: newStats(), evicts: "allkeys-lru"}
	r.m.now, r.m.wall = begin, begin
	for _, c := range []struct {
		call, reply string
		fails       bool
		doubt       int
	}{
		{"GO.QUOTA a 5 60 2", "[0 5 3 -1 60]", false, 0},
		{"GO.QUOTA a 5 60 2", "[0 5 1 -1 60]", false, 0},    // it is there
		{"GO.QUOTA_RO a 5 60 -9", "[0 5 5 -1 0]", false, 0}, // no matter which
		{"GO.QUOTA_RO a 5 60 0", "[0 5 1 -1 60]", false, 0},
		{"GO.QUOTA a 5 60 1", "[0 5 4 -1 60]", false, 0}, // it is gone
		{"GO.QUOTA_RO a 5 60 9", "[0 5 4 -1 60]", true, 0},
		{"GO.QUOTA a 5 60 1", "-OOM command not allowed", false, 0},
		{"GO.QUOTA a 5 60 -9", "[0 5 5 -1 0]", false, 0},
		{"GO.QUOTA a 5 60 1", "[0 5 2 -1 60]", true, 0},
		{"GO.ALL a QUOTA 5 60 KEY b QUOTA 5 60", "[0]", false, 2},
		{"GO.QUOTA b 5 60", "[anything]", false, 2},
	} {
		err := r.checkOne(0, strings.Fields(c.call), c.reply)
		if (err != nil) != c.fails || len(r.m.dbs[0].doubt) != c.doubt {
			t.Errorf("%s: %s: %v, %d keys are in doubt", c.call, c.reply, err, len(r.m.dbs[0].doubt))
		}
	}
}

// A warning of the module and a crash of the server are found in a log.
func TestWarning(t *testing.T) {
	for text, want := range map[string]string{
		"1:M 1 Jan # Server initialized\n1:M 1 Jan * <gothrottle> fine": "",
		"1:M 1 Jan # <gothrottle> x\ny":                                 "1:M 1 Jan # <gothrottle> x",
		"a\n1:M # <gothrottle> gothrottle cannot be unloaded: a":        "",
		"a\n=== REDIS BUG REPORT START: x\n":                            "=== REDIS BUG REPORT START: x",
	} {
		file := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := warning(file); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
