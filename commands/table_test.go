package commands_test

import (
	"strings"
	"testing"

	"gothrottle/commands"
)

// A row is complete, and its arity says what its arguments say.
func TestTable(t *testing.T) {
	for i, c := range commands.Table {
		if c.Summary == "" || c.Complexity == "" || c.Since == "" || c.Handler == nil || c.Name != strings.ToUpper(c.Name) {
			t.Errorf("%s: incomplete row", c.Name)
		}
		if commands.Find(c.Name) != &commands.Table[i] {
			t.Errorf("%s: two rows", c.Name)
		}
		if c.NoKey == (c.Args[0].Type == commands.ArgKey) {
			t.Errorf("%s: the first word must be a key", c.Name)
		}
		if (c.Plan == nil) == (c.State == commands.KindAbsent) != c.NoKey {
			t.Errorf("%s: a row has a Plan or a State, unless the command has no key", c.Name)
		}
		if strings.HasSuffix(c.Name, "_RO") && c.Writes() {
			t.Errorf("%s: a command whose name ends in _RO must not write", c.Name)
		}
		if required := 1 + words(c.Args); c.Least() != required {
			t.Errorf("%s: at least %d words, but its arguments need %d", c.Name, c.Least(), required)
		}
		eachArg(c.Args, func(a commands.Arg) {
			if a.Name == "" || a.Summary == "" || (len(a.Sub) > 0) != (a.Type == commands.ArgBlock || a.Type == commands.ArgOneOf) {
				t.Errorf("%s: incomplete argument %+v", c.Name, a)
			}
		})
	}
}

// eachArg calls f for every argument, also for those within others.
func eachArg(args []commands.Arg, f func(commands.Arg)) {
	for _, a := range args {
		f(a)
		eachArg(a.Sub, f)
	}
}

// words returns the least number of words that arguments take.
func words(args []commands.Arg) (n int) {
	for _, a := range args {
		if a.Optional {
			continue
		}
		if a.Token != "" {
			n++
		}
		switch a.Type {
		case commands.ArgBlock:
			n += words(a.Sub)
		case commands.ArgOneOf:
			least := words(a.Sub[:1])
			for i := range a.Sub {
				least = min(least, words(a.Sub[i:i+1]))
			}
			n += least
		default:
			n++
		}
	}
	return n
}
