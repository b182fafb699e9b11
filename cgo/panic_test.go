package cgo_test

import (
	"slices"
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
	"gothrottle/commands"
)

// breakHandler puts another handler in place of GO.THROTTLE's until the test ends.
func breakHandler(t *testing.T, handler func(*commands.Call) commands.Error) (mend func()) {
	t.Helper()
	row := &commands.Table[0]
	was := row.Handler
	mend = func() { row.Handler = was }
	row.Handler = handler
	t.Cleanup(mend)
	return mend
}

// A handler that panics gives an error reply and a line in the log. What the handler had asked for
// before does not happen. The next call finds the key unchanged.
func TestPanic(t *testing.T) {
	var nowhere *commands.Call
	for _, row := range []struct {
		name, reason string
		fail         func(*commands.Call)
	}{
		{"panic", "out of cheese", func(*commands.Call) { panic("out of cheese") }},
		{"nil dereference", "invalid memory address or nil pointer dereference",
			func(*commands.Call) { nowhere.Limited++ }},
		{"index", "index out of range [99] with length 5", func(c *commands.Call) { c.Args[len(c.Args)+94] = "" }},
		{"panic with nil", "panic called with nil argument", func(*commands.Call) { panic(nil) }},
		{"format verbs", "100%s%n", func(*commands.Call) { panic("100%s%n") }},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := loaded(t)
			wantReply(t, h, "GO.THROTTLE k 15 30 60", "[0 16 15 -1 2]")
			before, errors := h.Dump(), counters(t, h, "go.throttle")[2]

			mend := breakHandler(t, func(c *commands.Call) commands.Error {
				if err := brokenThrottle(c); err != commands.NoError {
					return err
				}
				row.fail(c)
				return commands.NoError
			})
			wantReply(t, h, "GO.THROTTLE k 15 30 60 2", "ERR internal error, see the server's log")
			wantNothing(t, h, "panic", before)
			if got := counters(t, h, "go.throttle")[2]; got != errors+1 {
				t.Errorf("%d errors counted, want %d", got, errors+1)
			}
			log := strings.Join(h.Log(), "\n")
			if !strings.HasPrefix(log, "warning: <module> panic in GO.THROTTLE: ") || !strings.Contains(log, row.reason) {
				t.Errorf("log %q", log)
			}
			if !strings.Contains(log, "brokenThrottle") && !strings.Contains(log, "panic_test.go") {
				t.Errorf("the log does not say where it was: %q", log)
			}

			mend()
			wantReply(t, h, "GO.THROTTLE k 15 30 60", "[0 16 14 -1 4]")
		})
	}
}

// brokenThrottle asks for a change of everything that GO.THROTTLE may change.
func brokenThrottle(c *commands.Call) commands.Error {
	c.Keys[0].Remove = 1
	c.Cells[0].Set = 3
	c.Keys[0].ExpireFrom, c.Keys[0].ExpireTo = 1, 2
	c.Limited, c.Replies = 1, 5
	return commands.NoError
}

// A handler may panic after it has read more entries of a sorted set than fit on the stack.
// The call changes nothing and leaks no memory.
func TestPanic_entries(t *testing.T) {
	h := loaded(t)
	for range 100 {
		call(h, "GO.WINDOW k 100 60")
		h.Advance(1000)
	}
	before, alive := h.Dump(), h.Alive()
	window := slices.IndexFunc(commands.Table, func(c commands.Command) bool { return c.Name == "GO.WINDOW" })
	was := commands.Table[window].Handler
	defer func() { commands.Table[window].Handler = was }()
	for n := range 100 {
		commands.Table[window].Handler = func(c *commands.Call) commands.Error {
			commands.TheHost.Head(c, commands.Beginning, h.Now(), n)
			commands.TheHost.Last(c, 1)
			commands.TheHost.Find(c, 1, "1")
			c.Entries[0].Drop = 1
			panic(n)
		}
		wantReply(t, h, "GO.WINDOW k 100 60", "ERR internal error, see the server's log")
		wantNothing(t, h, "panic", before)
	}
	if h.Alive() != alive {
		t.Errorf("alive %v, before %v", h.Alive(), alive)
	}
}

// A call that a listener makes may panic. The outer call is not affected.
func TestPanic_reentrance(t *testing.T) {
	h := loaded(t)
	h.Listen(func(e fakehost.Event) {
		if e.Name != "hset" {
			return
		}
		mend := breakHandler(t, func(*commands.Call) commands.Error { panic("inside") })
		wantReply(t, h, "GO.THROTTLE k 15 30 60", "ERR internal error, see the server's log")
		mend()
	})
	wantReply(t, h, "CL.THROTTLE k 15 30 60", "[0 16 15 -1 2]")
	wantReply(t, h, "GO.THROTTLE k 15 30 60", "[0 16 14 -1 4]")
}
