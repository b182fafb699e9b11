package cgo_test

import (
	"testing"

	"gothrottle/cgo/fakehost"
)

// No transcript has databases, or a server without the configuration top-keys. To set its value again changes nothing.
func TestTop(t *testing.T) {
	h := newHost(t)
	h.Load()
	wantConfig(t, h, "gothrottle.top-keys", "0")
	for db, want := range []string{"[[0:k 1 0]]", "[[0:k 1 0] [1:k 1 0]]"} {
		if text := h.ConfigSet("gothrottle.top-keys", "2"); text != "" {
			t.Error(text)
		}
		h.Set(fakehost.Database, db)
		call(h, "GO.QUOTA k 1 60 9")
		wantReply(t, h, "GO.TOP", want)
	}
	for _, value := range []string{"-1", "10001"} {
		if got := h.ConfigSet("gothrottle.top-keys", value); got != "argument must be between 0 and 10000 inclusive" {
			t.Errorf("%s: %q", value, got)
		}
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
