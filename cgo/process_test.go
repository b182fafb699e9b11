package cgo_test

// No transcript forks the server.

import (
	"strings"
	"testing"

	"gothrottle/commands"
	"gothrottle/tests/corpus"
)

// Nothing enters Go in a forked child.
func TestForked(t *testing.T) {
	h := loaded(t)
	h.BeChild()
	before := dump(h)
	for _, row := range commands.Table {
		line := strings.ReplaceAll(corpus.Samples[row.Name].Call, "KEY", "k")
		wantReply(t, h, line, commands.ErrForked.Text())
		wantNothing(t, h, line, before)
	}
	if keys := h.Keys("GO.ALL", "k", "QUOTA", "1", "1"); keys != nil {
		t.Errorf("keys %q", keys)
	}
	if got := h.ConfigSet("gothrottle.policies", "a QUOTA 1 1s"); got != "a forked process cannot read policies" {
		t.Errorf("error %q", got)
	}
	h = newHost(t)
	if h.BeChild(); h.Load() {
		t.Error("the module was loaded")
	}
}
