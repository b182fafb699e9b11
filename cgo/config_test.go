package cgo_test

// Servers word a refused configuration in their own ways, and no transcript loads the module.

import (
	"slices"
	"testing"

	"gothrottle/cgo/fakehost"
)

// wantConfig compares the value of a configuration.
func wantConfig(t *testing.T, h interface{ ConfigGet(string) (string, bool) }, name, want string) {
	t.Helper()
	if got, found := h.ConfigGet(name); !found || got != want {
		t.Errorf("%s is %q, %t; want %q", name, got, found, want)
	}
}

// The server shows the policies as one line. A wrong value changes nothing, and its error names the
// place.
func TestConfig_policies(t *testing.T) {
	h := newHost(t)
	const name = "gothrottle.policies"
	h.Configure(name, "")
	if !h.Load() {
		t.Fatalf("log %q", h.Log())
	}
	wantConfig(t, h, name, "")
	for _, row := range []struct{ value, err, want string }{
		{"api THROTTLE 9 10 1s,\n\tTHROTTLE 999 1000 1h ;\r\n", "", "api THROTTLE 9 10 1s, THROTTLE 999 1000 1h ;"},
		{"api THROTTLE 9 10", "policy 1 (api): 'THROTTLE' needs max_burst, count and period", "api THROTTLE 9 10 1s, THROTTLE 999 1000 1h ;"},
		{"new QUOTA 1 1s; api QUOTA 1 1s; x\x00y QUOTA 1 1s", "policy 3: a name must be 1 to 64 of a-z 0-9 _ - . and not 'x?y'",
			"api THROTTLE 9 10 1s, THROTTLE 999 1000 1h ;"},
		{" login QUOTA 20 1d ALIGN -1h", "", "login QUOTA 20 1d ALIGN -1h"},
		{"login QUOTA 20 1d ALIGN -1h", "", "login QUOTA 20 1d ALIGN -1h"},
		{"%s%n", "policy 1: a name must be 1 to 64 of a-z 0-9 _ - . and not '%s%n'", "login QUOTA 20 1d ALIGN -1h"},
		{" ", "", ""},
	} {
		if got := h.ConfigSet(name, row.value); got != row.err {
			t.Errorf("%q: error %q, want %q", row.value, got, row.err)
		}
		wantConfig(t, h, name, row.want)
	}
	if h.Log() != nil {
		t.Errorf("log %q", h.Log())
	}
}

// A load takes the policies of the configuration file, whatever policies an undone load had. The name of the module is the
// first part of a configuration's name.
func TestConfig_load(t *testing.T) {
	h := newHost(t)
	h.Configure("gothrottle.policies", "a QUOTA 1 1s")
	h.Configure("gothrottle.policies", "b  QUOTA 2 1s;")
	h.Configure("redis-cell.policies", "c QUOTA 3 1s")
	if !h.LoadThenUnload() {
		t.Fatalf("log %q", h.Log())
	}
	if _, found := h.ConfigGet("gothrottle.policies"); found {
		t.Error("the configuration outlived the module")
	}
	for _, row := range []struct{ name, other, want string }{{"redis-cell", "gothrottle", "c QUOTA 3 1s"}, {"gothrottle", "redis-cell", "b QUOTA 2 1s;"}} {
		if !h.Load("module-name", row.name) {
			t.Fatalf("log %q", h.Log())
		}
		wantConfig(t, h, row.name+".policies", row.want)
		if _, found := h.ConfigGet(row.other + ".policies"); found || !h.Unload() {
			t.Errorf("as %s there is a configuration of %s: %t", row.name, row.other, found)
		}
	}
	// A server without the setting has no policies.
	h.Close()
	h = fakehost.New()
	t.Cleanup(h.Close)
	if !h.Load() {
		t.Fatalf("log %q", h.Log())
	}
	wantConfig(t, h, "gothrottle.policies", "")
}

// The module refuses to load with a wrong value. It then loads with a right one.
func TestConfig_refusedLoad(t *testing.T) {
	const refused = "warning: <gothrottle> gothrottle not loaded: "
	for _, row := range []struct {
		value, fail string
		log         []string
	}{
		{"a QUOTA 1 1s; b QUOTA 1", "", []string{
			"warning: Issue during loading of configuration gothrottle.policies : policy 2 (b): 'QUOTA' needs limit and period",
			refused + "a value of its configuration is wrong"}},
		{"", "LoadConfigs", []string{refused + "a value of its configuration is wrong"}},
		{"", "RegisterStringConfig", []string{refused + "the server refused its configuration"}},
	} {
		h := newHost(t)
		h.Configure("gothrottle.policies", row.value)
		if row.fail != "" {
			h.Add(fakehost.Failing, row.fail)
		}
		if h.Load() || !slices.Equal(h.Log(), row.log) {
			t.Errorf("%q: log %q", row.value, h.Log())
		}
		if h.Command("GO.THROTTLE") != nil {
			t.Error("a command was left behind")
		}
		h.Restore()
		h.Configure("gothrottle.policies", "a QUOTA 1 1s")
		if !h.Load() {
			t.Errorf("the second load: log %q", h.Log())
		}
		wantConfig(t, h, "gothrottle.policies", "a QUOTA 1 1s")
	}
}
