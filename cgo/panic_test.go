package cgo_test

// No transcript has a handler that panics.

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
	"gothrottle/commands"
)

const internalError = "ERR internal error, see the server's log"

// rowOf returns the row of a command. The row is as before when the test ends.
func rowOf(t *testing.T, name string) *commands.Command {
	t.Helper()
	row := &commands.Table[slices.IndexFunc(commands.Table, func(c commands.Command) bool { return c.Name == name })]
	was := *row
	t.Cleanup(func() { *row = was })
	return row
}

// A handler that panics gives an error reply and a line in the log. What it had asked for before does not happen, however many
// entries it had read: the next call finds the keys unchanged, and no memory leaks. INFO counts the panics.
func TestPanic(t *testing.T) {
	const line = "GO.ALL w WINDOW 100 60 KEY q QUOTA 999 60 KEY t THROTTLE 999 1 60"
	var nowhere *commands.Call
	for reason, fail := range map[string]func(*commands.Call){
		"invalid memory address or nil pointer dereference": func(*commands.Call) { nowhere.Replies++ },
		"index out of range [99] with length 15":            func(c *commands.Call) { c.Args[len(c.Args)+84] = "" },
		"panic called with nil argument":                    func(*commands.Call) { panic(nil) },
		"100%s%n":                                           func(*commands.Call) { panic("100%s%n") },
		"too late":                                          func(c *commands.Call) { c.ErrWord = 1; panic(errors.New("too late")) },
	} {
		t.Run(reason, func(t *testing.T) {
			h := loaded(t)
			for range 100 {
				call(h, line)
				h.Advance(1000)
			}
			before, alive, failed, panics := dump(h), h.Alive(), number(t, h, "all_errors"), number(t, h, "panics")
			row := rowOf(t, "GO.ALL")
			was := row.Handler
			for n := range 100 {
				row.Handler = func(c *commands.Call) commands.ErrorCode {
					was(c)
					c.Host().Oldest(c, 0, commands.NoTime, c.Now, n)
					c.Host().Newest(c, 0, 1)
					c.Host().Rank(c, 0, int64(n))
					c.Host().Find(c, 0, 1, "1")
					c.Keys[0].Entries[0].Drop, c.Keys[1].Becomes, c.Cells[0].Set = 1, commands.Absent, 3
					c.Keys[2].Becomes, c.Keys[2].ExpireFrom, c.Keys[2].ExpireTo = commands.Hash, 1, 2
					c.Outcome, c.Replies = commands.Limited, 5
					fail(c)
					return commands.NoError
				}
				wantReply(t, h, line, internalError)
				wantNothing(t, h, "panic", before)
			}
			if h.Alive() != alive {
				t.Errorf("alive %v, before %v", h.Alive(), alive)
			}
			if n, p := number(t, h, "all_errors")-failed, number(t, h, "panics")-panics; n != 100 || p != 100 {
				t.Errorf("INFO counts %d errors and %d panics", n, p)
			}
			for _, line := range h.Log() {
				if strings.Contains(line, "\n") || len(line) > 1000 {
					t.Errorf("log line %q", line)
				}
			}
			log := strings.Join(h.Log(), "\n")
			if !strings.HasPrefix(log, "warning: <module> panic in GO.ALL: ") || !strings.Contains(log, reason) || !strings.Contains(log, "panic_test.go") {
				t.Errorf("the log does not say what it was and where: %q", log)
			}
		})
	}
}

// Each panic is counted. Of one place, one a second is logged, with the number of those that were not.
func TestPanic_manyAreLoggedOnceASecond(t *testing.T) {
	h := loaded(t)
	for _, name := range []string{"GO.THROTTLE", "GO.QUOTA"} {
		rowOf(t, name).Handler = func(*commands.Call) commands.ErrorCode { panic("out of cheese") }
	}
	panics := number(t, h, "panics")
	for i, step := range []struct {
		line    string
		advance int64  // µs before the call
		log     string // the first line of the log and, if there is one, that of the panics that were not logged
	}{
		{"GO.THROTTLE k 1 1 1", 0, "panic in GO.THROTTLE: out of cheese"},
		{"GO.THROTTLE l 1 1 1", 0, ""},
		{"GO.QUOTA k 1 1", 0, "panic in GO.QUOTA: out of cheese"},
		{"GO.THROTTLE k 1 1 1", 999_999, ""},
		{"GO.THROTTLE k 1 1 1", 1, "panic in GO.THROTTLE: out of cheese\n2 more panics in GO.THROTTLE were not logged before this one"},
		{"GO.THROTTLE k 1 1 1", 999_999, ""},
		{"GO.QUOTA k 1 1", 1, "panic in GO.QUOTA: out of cheese"},
	} {
		h.Advance(step.advance)
		h.ClearLog()
		wantReply(t, h, step.line, internalError)
		log := strings.ReplaceAll(strings.Join(h.Log(), "\n"), "warning: <module> ", "")
		if !strings.HasPrefix(log, step.log) || strings.Contains(log, "more panics") != strings.Contains(step.log, "more panics") || step.log == "" && log != "" {
			t.Errorf("call %d: log %q", i, log)
		}
	}
	if n := number(t, h, "panics") - panics; n != 7 {
		t.Errorf("INFO counts %d panics", n)
	}
}

// A plan that panics gives an error reply: no key is opened. The server's question for the keys of a call finds none.
func TestPanic_plan(t *testing.T) {
	h := loaded(t)
	rowOf(t, "GO.ALL").Plan = func(c *commands.Call) commands.ErrorCode { panic("no plan") }
	opened := h.Count(fakehost.Opened)
	panics := number(t, h, "panics")
	wantUntouched(t, h, internalError, "GO.ALL k THROTTLE 1 1 1 KEY l QUOTA 1 1")
	if now := h.Count(fakehost.Opened); now != opened {
		t.Errorf("%d keys were opened", now-opened)
	}
	// The host asks for the keys before it runs the call.
	if n := number(t, h, "panics") - panics; n != 2 {
		t.Errorf("INFO counts %d panics, want 2", n)
	}
	if keys := h.Keys("GO.ALL", "k", "QUOTA", "1", "1"); keys != nil {
		t.Errorf("keys %q", keys)
	}
}
