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

// The server shows the policies as one line. A wrong value changes nothing. A load takes the value of the configuration file, or
// none, whatever an undone load had. The name of the module is the first part of the configuration's name.
func TestConfig_policies(t *testing.T) {
	h := newHost(t)
	h.Configure("gothrottle.policies", "b  QUOTA 2 1s;")
	for _, row := range []struct{ module, initial string }{{"gothrottle", "b QUOTA 2 1s;"}, {"redis-cell", ""}} {
		if !h.Load("module-name", row.module) {
			t.Fatalf("log %q", h.Log())
		}
		name := row.module + ".policies"
		wantConfig(t, h, name, row.initial)
		for _, set := range []struct{ value, err string }{
			{"a QUOTA 1 1s ;\n\tb  QUOTA 2 1s", ""},
			{"a QUOTA 1 1s,", "policy 1 (a), clause 2: a clause is missing"},
			{"%s%n", "policy 1: a name must be 1 to 64 of a-z 0-9 _ - . and not '%s%n'"},
		} {
			if got := h.ConfigSet(name, set.value); got != set.err {
				t.Errorf("%q: error %q, want %q", set.value, got, set.err)
			}
			wantConfig(t, h, name, "a QUOTA 1 1s ; b QUOTA 2 1s")
		}
		if !h.Unload() || h.Log() != nil {
			t.Errorf("log %q", h.Log())
		}
	}
}

// The module refuses to load with a wrong value. It then loads with a right one.
func TestConfig_refusedLoad(t *testing.T) {
	const refused = "warning: <gothrottle> gothrottle not loaded: "
	for _, row := range []struct {
		value, fail string
		log         []string
	}{
		{"a QUOTA 1 1s; b QUOTA 1", "", []string{
			"warning: <module> Issue during loading of configuration gothrottle.policies : policy 2 (b): 'QUOTA' needs limit and period",
			refused + "a value of its configuration is wrong"}},
		{"", "LoadConfigs", []string{refused + "a value of its configuration is wrong"}},
		{"", "RegisterStringConfig", []string{refused + "the server refused its configuration"}},
	} {
		h := newHost(t)
		h.Configure("gothrottle.policies", row.value)
		h.Add(fakehost.Failing, row.fail)
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
