package cgo_test

import (
	"testing"

	"gothrottle/cgo/fakehost"
)

// A transcript always counts 1000 keys, in database 0. The configuration top-keys says how many are counted. A changed value
// empties the table.
func TestTop(t *testing.T) {
	h := newHost(t)
	h.Load()
	wantConfig(t, h, "gothrottle.top-keys", "0")
	for _, row := range []struct {
		value string
		err   string
		db    int
		want  string // the reply after the key k is denied again
	}{
		{"2", "", 0, "[[0:k 1 0]]"},
		{"2", "", 7, "[[0:k 1 0] [7:k 1 0]]"},
		{"10001", "argument must be between 0 and 10000 inclusive", 7, "[[7:k 2 0] [0:k 1 0]]"},
		{"0", "", 7, "ERR no denials are counted: set gothrottle.top-keys to more than 0"},
		{"10000", "", 7, "[[7:k 1 0]]"},
	} {
		if got := h.ConfigSet("gothrottle.top-keys", row.value); got != row.err {
			t.Errorf("%s: %q, want %q", row.value, got, row.err)
		}
		h.Set(fakehost.Database, row.db)
		call(h, "GO.QUOTA k 1 60 9")
		wantReply(t, h, "GO.TOP", row.want)
	}
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
