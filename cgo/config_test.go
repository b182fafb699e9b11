package cgo_test

// Servers word a refused configuration in their own ways, and no transcript loads the module.

import "testing"

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
