package cgo

// A transcript has no handler that panics.

import (
	"errors"
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

func TestGuard(t *testing.T) {
	var nowhere *commands.Call
	for _, row := range []struct {
		name    string
		handler func(*commands.Call) commands.ErrorCode
		want    commands.ErrorCode
		reason  string // what the log says; "" if nothing
	}{
		{"admitted", func(*commands.Call) commands.ErrorCode { return commands.NoError }, commands.NoError, ""},
		{"error", func(*commands.Call) commands.ErrorCode { return commands.ErrDamaged }, commands.ErrDamaged, ""},
		{"panic", func(*commands.Call) commands.ErrorCode { panic("out of cheese") }, commands.ErrInternal, "out of cheese"},
		{"panic with an error", func(*commands.Call) commands.ErrorCode { panic(errors.New("no cheese")) }, commands.ErrInternal, "no cheese"},
		{"panic with nil", func(*commands.Call) commands.ErrorCode { panic(nil) }, commands.ErrInternal, "panic called with nil"},
		{"nil", func(*commands.Call) commands.ErrorCode { return commands.ErrorCode(nowhere.Now) }, commands.ErrInternal, "nil pointer dereference"},
		{"no handler", nil, commands.ErrInternal, "nil pointer dereference"},
		{"division", func(c *commands.Call) commands.ErrorCode { return commands.ErrorCode(1 / c.Replies) }, commands.ErrInternal, "divide by zero"},
	} {
		t.Run(row.name, func(t *testing.T) {
			log := listen(t)
			command := commands.Command{Name: "GO.TEST", Handler: row.handler}
			if got := guard(&command, (*commands.Command).Run, &commands.Call{}); got != row.want {
				t.Errorf("error %d, want %d", got, row.want)
			}
			switch {
			case row.reason == "":
				if len(*log) != 0 {
					t.Errorf("log %q", *log)
				}
			case len(*log) != 1 || !strings.HasPrefix((*log)[0], "panic in GO.TEST: ") ||
				!strings.Contains((*log)[0], row.reason) || !strings.Contains((*log)[0], "goroutine"):
				t.Errorf("log %q, want one with %q", *log, row.reason)
			}
		})
	}
}

// The barrier itself costs no allocation.
func TestGuard_allocations(t *testing.T) {
	command := commands.Command{Handler: func(*commands.Call) commands.ErrorCode { return commands.NoError }}
	call := &commands.Call{}
	if n := testing.AllocsPerRun(1000, func() { guard(&command, (*commands.Command).Run, call) }); n != 0 {
		t.Errorf("%v allocations per call", n)
	}
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
