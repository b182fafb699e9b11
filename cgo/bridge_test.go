package cgo

// A transcript has no handler that panics.

import (
	"runtime"
	"strings"
	"testing"
	"weak"

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

// INFO shows no memory: the counters of policies that neither are in force nor were before are free.
func TestShowPolicies_frees(t *testing.T) {
	var first weak.Pointer[commands.PolicyCounts]
	for i, text := range []string{"a QUOTA 1 1s", "b QUOTA 1 1s", "c QUOTA 1 1s"} {
		setPolicies(text)
		apply(0, instant{calls: int64(i)})
		if i == 0 {
			first = weak.Make(&policies.value.counts[0])
		}
	}
	runtime.GC()
	if first.Value() != nil {
		t.Error("the counters of the first policies are still there")
	}
	setPolicies("")
	apply(0, instant{calls: 3})
}
