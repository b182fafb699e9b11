package cgo_test

import (
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
)

// A transcript always counts 1000 keys, in database 0. The configuration top-keys says how many are counted. A changed value empties the table. The
// name of a key begins with the number of the database.
func TestTop(t *testing.T) {
	const name = "gothrottle.top-keys"
	h := newHost(t)
	if !h.Load() {
		t.Fatalf("load refused: %q", h.Log())
	}
	wantConfig(t, h, name, "0")
	size := func(value, err string) {
		t.Helper()
		if got := h.ConfigSet(name, value); got != err {
			t.Errorf("%s: %q, want %q", value, got, err)
		}
	}
	deny := func(key string, times int) {
		for range times {
			call(h, "GO.QUOTA "+key+" 1 60 9")
		}
	}
	long := strings.Repeat("x", 200)
	size("2", "")
	deny("a", 3)
	h.Set(fakehost.Database, 7)
	deny(long, 2)
	counted := "[[0:a 3 0] [7:" + x126 + " 2 0]]"
	wantReply(t, h, "GO.TOP", counted)
	size("2", "")
	size("-1", "argument must be between 0 and 10000 inclusive")
	size("10001", "argument must be between 0 and 10000 inclusive")
	wantReply(t, h, "GO.TOP", counted)
	deny("b", 1)
	wantReply(t, h, "GO.TOP", "[[0:a 3 0] [7:b 3 2]]")
	size("0", "")
	deny("b", 1)
	wantReply(t, h, "GO.TOP", "ERR no denials are counted: set gothrottle.top-keys to more than 0")
	size("10000", "")
	deny("b", 1)
	wantReply(t, h, "GO.TOP", "[[7:b 1 0]]")
}

// Go allocates no memory for a denial that is counted, even if a key takes the place of another.
func TestTop_allocations(t *testing.T) {
	h := loaded(t)
	h.ConfigSet("gothrottle.top-keys", "1")
	p, db := h.Prepare("GO.QUOTA", "q", "1", "60", "2"), 0
	defer p.Free()
	if n := testing.AllocsPerRun(100, func() {
		db++
		h.Set(fakehost.Database, db)
		p.Run()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	wantReply(t, h, "GO.TOP", "[[101:q 101 100]]")
}

var x126 = strings.Repeat("x", 126)
