package cgo

// A transcript has no handler that panics.

import (
	"strings"
	"testing"

	"gothrottle/commands"
)

// ForgetPanics makes the module log the next panic of each place.
func ForgetPanics() { lastPanics = map[string]lastPanic{} }

// listen has logPanic write to the returned slice until the test ends.
func listen(t *testing.T) *[]string {
	var lines []string
	ForgetPanics()
	was := logPanic
	logPanic = func(text string) { lines = append(lines, text) }
	t.Cleanup(func() { logPanic = was })
	return &lines
}

// A panic while policies are read is an error of the configuration.
func TestSetPolicies_panic(t *testing.T) {
	log := listen(t)
	parsePolicies = func(string) (*commands.Policies, error) { panic("out of cheese") }
	t.Cleanup(func() { parsePolicies = commands.ParsePolicies })
	if text, ok := setPolicies("a QUOTA 1 1s"); ok || text != "internal error, see the server's log" {
		t.Errorf("%q, %t", text, ok)
	}
	if len(*log) != 1 || !strings.HasPrefix((*log)[0], "panic in the configuration policies: out of cheese\n") {
		t.Errorf("log %q", *log)
	}
}
