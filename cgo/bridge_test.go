package cgo

// A transcript has no handler that panics.

import (
	"strings"
	"testing"

	"gothrottle/commands"
)

// ForgetPanics makes the module log the next panic of each place.
func ForgetPanics() { lastPanics = map[string]lastPanic{} }

// A panic while policies are read is an error of the configuration.
func TestSetPolicies_panic(t *testing.T) {
	ForgetPanics()
	log, was := "", logPanic
	t.Cleanup(func() { logPanic, parsePolicies = was, commands.ParsePolicies })
	logPanic = func(text string) { log += text }
	parsePolicies = func(string) (*commands.Policies, error) { panic("out of cheese") }
	if text, ok := setPolicies("a QUOTA 1 1s"); ok || text != "internal error, see the server's log" {
		t.Errorf("%q, %t", text, ok)
	}
	if !strings.HasPrefix(log, "panic in the configuration policies: out of cheese\n") {
		t.Errorf("log %q", log)
	}
}
