package cgo_test

// No transcript unloads the module.

import (
	"strings"
	"testing"

	"gothrottle/commands"
)

// MODULE LOADEX with a CONFIG that nobody knows undoes a load: the server loads the module and unloads it at once. Redis 8
// aborts if the module refuses. Another load then works as a first one, with the module's ACL category, which the server has
// kept. The server's question for the keys of a call isn't a command, and neither is INFO. Once a command has run, even one
// that was an error, the module refuses and says why.
func TestUnload(t *testing.T) {
	h := newHost(t)
	for range 3 {
		if !h.Load() || h.Keys("GO.ALL", "k", "QUOTA", "1", "1") == nil || h.Info() == "" {
			t.Fatalf("load refused: %q", h.Log())
		}
		for _, row := range commands.Table {
			if c := h.Command(row.Name); c == nil || !row.NoKey && !strings.HasSuffix(c.Categories, " throttle") {
				t.Errorf("%s: %+v", row.Name, c)
			}
		}
		if !h.Unload() || h.Log() != nil || h.Command("GO.THROTTLE") != nil {
			t.Fatalf("log %q", h.Log())
		}
	}
	const want = "warning: <gothrottle> gothrottle cannot be unloaded: a Go runtime stays in its process. Restart the server to upgrade or remove it"
	for _, line := range []string{"GO.THROTTLE_RO k 15 30 60", "GO.QUOTA k x 1", "CL.THROTTLE k 15 30 60"} {
		h := loaded(t)
		call(h, line)
		if h.Unload() || strings.Join(h.Log(), "\n") != want {
			t.Errorf("after %s: log %q", line, h.Log())
		}
		wantReply(t, h, "GO.LEASE l 1 60 a", "[0 1 0 -1 60 0]")
	}
}
