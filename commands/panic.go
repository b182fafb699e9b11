//go:build gothrottle_panic

package commands

// GO.PANIC key [NIL] is for tests of the panic barrier: a module built with this tag is not for use.
func init() {
	Table = append(Table, Command{
		Name:       "GO.PANIC",
		Summary:    "Panics, or uses a nil pointer.",
		Complexity: "O(1)",
		Since:      "0.1.0",
		Flags:      "write deny-oom fast",
		Arity:      -2,
		MaxArity:   3,
		Args: []Arg{
			{Name: "key", Type: ArgKey, Summary: "Left alone."},
			{Name: "NIL", Type: ArgToken, Optional: true, Summary: "Use a nil pointer."},
		},
		State:   KindHash,
		Handler: runPanic,
	})
}

// runPanic first asks for changes, none of which may happen.
func runPanic(c *Call) ErrorCode {
	c.Keys[0].Becomes = Absent
	c.Cells[0].Set = wholeFields
	c.Replies = 5
	switch {
	case len(c.Args) < 2:
	case c.Args[1] == "nil":
		var nowhere *Call
		c.Now = nowhere.Now
	case c.Args[1] == "long":
		for range 150_000_000 {
			c.Replies ^= 1
		}
	}
	panic("GO.PANIC was called")
}
