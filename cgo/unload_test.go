package cgo_test

// No transcript unloads the module.

import (
	"slices"
	"strings"
	"testing"

	"gothrottle/commands"
)

// MODULE LOADEX with a CONFIG that nobody knows undoes a load: the server loads the module and unloads
// it at once. Redis 8 aborts if the module refuses. A second load then works as a first one, and it
// still has the module's ACL category, which the server has kept.
func TestUnload_undoesLoad(t *testing.T) {
	h := newHost(t)
	for range 3 {
		if !h.LoadThenUnload() {
			t.Fatalf("the unload was refused: %q", h.Log())
		}
	}
	if h.Log() != nil || h.Command("GO.THROTTLE") != nil {
		t.Errorf("log %q", h.Log())
	}
	if !h.Load("cl-throttle", "yes") {
		t.Fatalf("the second load was refused: %q", h.Log())
	}
	for _, row := range commands.Table {
		if c := h.Command(row.Name); c == nil || !row.NoKey && !strings.HasSuffix(c.Categories, " throttle") {
			t.Errorf("%s after the second load: %+v", row.Name, c)
		}
	}
	wantReply(t, h, "CL.THROTTLE k 15 30 60", "[0 16 15 -1 2]")
}

// The server's question for the keys of a call is no command: the module can still be unloaded.
func TestUnload_keysAsked(t *testing.T) {
	h := loaded(t)
	if got := h.Keys("GO.ALL", "k", "QUOTA", "1", "1"); !slices.Equal(got, []string{"k"}) {
		t.Errorf("keys %q", got)
	}
	if h.Info(""); !h.Unload() {
		t.Errorf("the unload was refused: %q", h.Log())
	}
}

// The module refuses an unload once a command has run, even one that was an error, and says why.
func TestUnload_refused(t *testing.T) {
	for _, line := range []string{"GO.THROTTLE k 15 30 60", "GO.THROTTLE_RO k 15 30 60", "GO.QUOTA k x 1", "GO.ALL k x 1 1", "CL.THROTTLE k"} {
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

// With the load argument module-name the module has redis-cell's name, in MODULE LIST and in INFO.
// Everything else is as without the argument.
func TestLoad_moduleName(t *testing.T) {
	for _, row := range []struct {
		name, args, busy string
		want             string // the module's name; "" if the load is refused
		log              string
	}{
		{"none", "", "", "gothrottle", ""},
		{"the module's own", "module-name gothrottle", "", "gothrottle", ""},
		{"redis-cell", "module-name redis-cell", "", "redis-cell", ""},
		{"any case of the argument", "Module-Name redis-cell cl-throttle no", "", "redis-cell", ""},
		{"the last one counts", "module-name redis-cell module-name gothrottle", "redis-cell", "gothrottle", ""},
		{"redis-cell itself is loaded", "", "redis-cell", "gothrottle", ""},
		{"redis-cell itself is loaded, and its name wanted", "module-name redis-cell", "redis-cell", "",
			"warning: <module> gothrottle not loaded: a module named redis-cell is loaded"},
		{"gothrottle is loaded already", "", "gothrottle", "", "warning: <module> gothrottle not loaded: a module named gothrottle is loaded"},
		{"another name", "module-name cell", "", "", "warning: <module> gothrottle not loaded: module-name must be gothrottle or redis-cell, not 'cell'"},
		{"another case of the name", "module-name Redis-Cell", "", "", "warning: <module> gothrottle not loaded: module-name must be gothrottle or redis-cell, not 'Redis-Cell'"},
		{"no name", "module-name", "", "", "warning: <module> gothrottle not loaded: module-name must be gothrottle or redis-cell, not ''"},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := newHost(t)
			if row.busy != "" {
				h.BusyName(row.busy)
			}
			if ok := h.Load(strings.Fields(row.args)...); ok != (row.want != "") {
				t.Fatalf("loaded: %t; log %q", ok, h.Log())
			}
			if got := strings.Join(h.Log(), "\n"); got != row.log {
				t.Errorf("log %q, want %q", got, row.log)
			}
			if row.want == "" {
				return
			}
			info := h.Info("")
			if !strings.HasPrefix(info, "# "+row.want+"\r\n"+row.want+"_version:") || h.Info(row.want) != info {
				t.Errorf("INFO %q", info)
			}
			if n := strings.Count(info, "\r\n"+row.want+"_"); n != strings.Count(info, "\r\n")-1 {
				t.Errorf("%d fields have the prefix in %q", n, info)
			}
			wantReply(t, h, "GO.THROTTLE k 15 30 60", "[0 16 15 -1 2]")
			if got := h.Command("GO.THROTTLE").Categories; got != "write fast throttle" {
				t.Errorf("categories %q", got)
			}
			if h.Unload(); !strings.HasPrefix(h.Log()[0], "warning: <"+row.want+"> gothrottle cannot be unloaded") {
				t.Errorf("log %q", h.Log())
			}
		})
	}
}
