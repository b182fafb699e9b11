package commands

import (
	"slices"
	"strings"
	"testing"
)

// A row is complete, and its arity says what its arguments say.
func TestTable(t *testing.T) {
	for i, c := range Table {
		if c.Summary == "" || c.Complexity == "" || c.Since == "" || c.Handler == nil || c.Name != strings.ToUpper(c.Name) {
			t.Errorf("%s: incomplete row", c.Name)
		}
		if findCommand(c.Name) != &Table[i] {
			t.Errorf("%s: two rows", c.Name)
		}
		if c.NoKey == (c.Args[0].Type == ArgKey) {
			t.Errorf("%s: the first word must be a key", c.Name)
		}
		if (c.Plan == nil) == (c.State == KindAbsent) != c.NoKey {
			t.Errorf("%s: a row has a Plan or a State, unless the command has no key", c.Name)
		}
		if strings.HasSuffix(c.Name, "_RO") && c.Writes() {
			t.Errorf("%s: a command whose name ends in _RO must not write", c.Name)
		}
		if required := 1 + words(c.Args); c.Least() != required {
			t.Errorf("%s: at least %d words, but its arguments need %d", c.Name, c.Least(), required)
		}
		eachArg(c.Args, func(a Arg) {
			if a.Name == "" || a.Summary == "" || (len(a.Sub) > 0) != (a.Type == ArgBlock || a.Type == ArgOneOf) {
				t.Errorf("%s: incomplete argument %+v", c.Name, a)
			}
		})
	}
}

// eachArg calls f for every argument, also for those within others.
func eachArg(args []Arg, f func(Arg)) {
	for _, a := range args {
		f(a)
		eachArg(a.Sub, f)
	}
}

// words returns the least number of words that arguments take.
func words(args []Arg) (n int) {
	for _, a := range args {
		if a.Optional {
			continue
		}
		if a.Token != "" {
			n++
		}
		switch a.Type {
		case ArgBlock:
			n += words(a.Sub)
		case ArgOneOf:
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

// The sample of a row replies what the row says, twice.
func TestTable_samples(t *testing.T) {
	for _, c := range Table {
		s := newStore(t)
		if name, _, _ := strings.Cut(c.Sample.Call, " "); name != c.Name {
			t.Errorf("%s: the sample calls %s", c.Name, name)
			continue
		}
		for i, want := range []string{c.Sample.First, c.Sample.Second} {
			if got := s.told(c.Sample.Call); got != want {
				t.Errorf("%s: reply %d is %s, the row says %s", c.Sample.Call, i+1, got, want)
			}
		}
		if changed := len(s.keys) > 0; changed != (c.Sample.Effect != "") {
			t.Errorf("%s: effect %q, keys %v", c.Sample.Call, c.Sample.Effect, s.keys)
		}
	}
}

// The wrong calls of a row are the errors that the row says.
func TestTable_wrongCalls(t *testing.T) {
	for _, c := range Table {
		if len(c.Wrong) == 0 && c.Writes() && len(c.Args) > 1 {
			t.Errorf("%s: the row has no WrongCall", c.Name)
		}
		for _, wrong := range c.Wrong {
			if name, _, _ := strings.Cut(wrong.Call, " "); name != c.Name {
				t.Errorf("%s: a wrong call calls %s", c.Name, name)
				continue
			}
			s := newStore(t)
			if _, err := s.do(wrong.Call); err != wrong.Want || len(s.keys) > 0 {
				t.Errorf("%.60s: %q, want %q; keys %v", wrong.Call, err.Text(), wrong.Want.Text(), s.keys)
			}
		}
	}
}

// A read-only twin replies what its command would, and changes nothing.
func TestReadOnly(t *testing.T) {
	lines := []string{
		"GO.THROTTLE k 4 1 60 3 UPTO", "GO.WINDOW k 5 60 3 EXACT UPTO", "GO.QUOTA k 5 60 3 MS ALIGN 7 UPTO",
		"GO.LEASE k 1 60 a", "GO.LEASE k 1 60 b MS",
		"GO.ALL k THROTTLE 9 10 60 4 THROTTLE 9 1 60 1 KEY l WINDOW 9 60 4 KEY m QUOTA 9 60 KEY n LEASE 9 60 a",
	}
	for _, c := range Table {
		lines = append(lines, c.Sample.Call)
	}
	for _, line := range lines {
		name, words, _ := strings.Cut(line, " ")
		twin := findCommand(name + "_RO")
		if twin == nil {
			continue
		}
		s := newStore(t)
		for range 3 {
			before := s.dump()
			told := []string{s.told(twin.Name + " " + words), s.told(twin.Name + " " + words)}
			if after := s.dump(); told[0] != told[1] || after != before {
				t.Errorf("%s: %v; the keys were\n%s\nand are\n%s", twin.Name, told, before, after)
			}
			if done := s.told(line); !slices.Contains(told, done) {
				t.Errorf("%s: %s, but the twin told %s", line, done, told[0])
			}
		}
	}
}
