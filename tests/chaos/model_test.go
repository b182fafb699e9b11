package main

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"gothrottle/commands"
	"gothrottle/commands/memory"
)

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
	calls := []words{{"GO.QUOTA", "a", "9", "60"}, {"GO.QUOTA", "b", "9", "60"}, {"GO.QUOTA", "a", "9", "60"}}
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
