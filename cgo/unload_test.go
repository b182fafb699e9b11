package cgo_test

// No transcript unloads the module.

import (
	"slices"
	"testing"

	"gothrottle/commands"
)

// MODULE LOADEX with a CONFIG that nobody knows undoes a load: the server loads the module and unloads
// it at once. Redis 8 aborts if the module refuses. A second load then works as a first one, and it
// still has the module's ACL category, which the server has kept.
func TestUnload_undoesLoad(t *testing.T) {
	h := newHost(t)
	for range 2 {
		if !h.LoadThenUnload() {
			t.Fatalf("the unload was refused: %q", h.Log())
		}
	}
	if h.Log() != nil || h.Command("GO.THROTTLE") != nil {
		t.Errorf("log %q", h.Log())
	}
	if !h.Load() {
		t.Fatalf("the second load was refused: %q", h.Log())
	}
	for _, row := range commands.Table {
		if c := h.Command(row.Name); c == nil || !row.NoKey && !slices.Contains([]string{"read fast throttle", "write fast throttle", "read slow throttle", "write slow throttle"}, c.Categories) {
			t.Errorf("%s after the second load: %+v", row.Name, c)
		}
	}
	// The server's question for the keys of a call isn't a command, and neither is INFO: the module can still be unloaded.
	if got := h.Keys("GO.ALL", "k", "QUOTA", "1", "1"); !slices.Equal(got, []string{"k"}) {
		t.Errorf("keys %q", got)
	}
	if h.Info(""); !h.Unload() {
		t.Errorf("the unload was refused: %q", h.Log())
	}
}

// The module refuses an unload once a command has run, even one that was an error, and says why.
func TestUnload_refused(t *testing.T) {
	for _, line := range []string{"GO.THROTTLE_RO k 15 30 60", "GO.QUOTA k x 1", "CL.THROTTLE k 15 30 60"} {
		h := loaded(t)
		call(h, line)
		if h.Unload() {
			t.Fatalf("unloaded after %s", line)
		}
		want := "warning: <gothrottle> gothrottle cannot be unloaded: a Go runtime stays in its process. " +
			"Restart the server to upgrade or remove it"
		if !slices.Equal(h.Log(), []string{want}) {
			t.Errorf("log %q", h.Log())
		}
		wantReply(t, h, "GO.LEASE l 1 60 a", "[0 1 0 -1 60 0]")
	}
}
