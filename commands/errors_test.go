package commands

import (
	"strings"
	"testing"
)

// Each error text at least once, and every error that there is. What a key holds that
// is not ours stays as it is.
func TestErrors(t *testing.T) {
	seen := map[Error]bool{NoError: true, ErrInternal: true} // ErrInternal: package cgo's barrier
	s := newStore(t)
	future := s.now + 1_000_000
	put := func(name string, v *value) { v.expire = future; s.keys[name] = v }
	put("string", &value{kind: KindString, text: "hello"})
	put("list", &value{kind: KindOther})
	put("profile", &value{kind: KindHash, fields: map[string]int64{"name": 1}})
	put("broken", &value{kind: KindHash, fields: map[string]int64{fieldName(fieldTAT, 0): future * 1000, fieldName(fieldPeriod, 0): 0}})
	put("board", &value{kind: KindZset, set: []Entry{{Time: future, Member: "ann"}}})
	put("badscore", &value{kind: KindZset, set: []Entry{{Bad: 1, Member: "\x015"}}})
	put("mixed", &value{kind: KindZset, set: []Entry{{Time: 1, Member: "ann"}, {Time: future, Member: "\x015"}}})
	put("backward", &value{kind: KindZset, set: []Entry{{Time: future - 1, Member: "\x015"}, {Time: future, Member: "\x014"}}})
	for _, row := range []struct {
		line string
		want Error
	}{
		// Numbers.
		{"GO.THROTTLE k 1.5 30 60", ErrMaxBurstNotInteger},
		{"GO.THROTTLE k -1 30 60", ErrMaxBurstRange},
		{"GO.THROTTLE k 15 x 60", ErrCountNotInteger},
		{"GO.THROTTLE k 15 0 60", ErrCountRange},
		{"GO.THROTTLE k 15 30 60s", ErrPeriodNotInteger},
		{"GO.THROTTLE k 15 30 0", ErrPeriodRangeSeconds},
		{"GO.THROTTLE k 15 30 0 MS", ErrPeriodRangeMillis},
		{"GO.THROTTLE k 15 30 60 1x", ErrQuantityNotInteger},
		{"GO.THROTTLE k 15 30 60 1000000000002", ErrQuantityRange},
		{"GO.THROTTLE k 1 1 3153600000", ErrWindowTooLong},
		{"CL.THROTTLE k 15 1000000001 1", ErrRateTooHigh},
		{"CL.THROTTLE k 15 1000000000 1", NoError},
		{"GO.WINDOW k x 60", ErrLimitNotInteger},
		{"GO.WINDOW k 0 60", ErrLimitRange},
		{"GO.WINDOW k 1000000000001 60", ErrLimitRange},
		{"GO.WINDOW k 5 3153600001", ErrPeriodRangeSeconds},
		{"GO.WINDOW k 5 60 9999999999999", ErrQuantityRange},
		{"GO.QUOTA k 1e3 60", ErrLimitNotInteger},
		{"GO.QUOTA k 5 x", ErrPeriodNotInteger},
		{"GO.QUOTA k 5 60 1 ALIGN x", ErrOffsetNotInteger},
		{"GO.QUOTA k 5 60 1 ALIGN 3153600001", ErrOffsetRange},
		{"GO.LEASE k x 60 a", ErrLimitNotInteger},
		{"GO.LEASE k 1 x a", ErrTTLNotInteger},
		{"GO.LEASE k 1 0 a", ErrTTLRangeSeconds},
		{"GO.LEASE k 1 0 a MS", ErrTTLRangeMillis},
		{"GO.MTHROTTLE x k 1 1 1 1", ErrNumkeysNotInteger},
		{"GO.MTHROTTLE +1 k 1 1 1 1", ErrNumkeysNotInteger},
		{"GO.MTHROTTLE 01 k 1 1 1 1", ErrNumkeysNotInteger},
		{"GO.MTHROTTLE 0 k 1 1 1 1", ErrNumkeysRange},
		{"GO.MTHROTTLE -1 k 1 1 1 1", ErrNumkeysRange},
		{"GO.MTHROTTLE 129 k 1 1 1 1", ErrNumkeysRange},
		{"GO.MTHROTTLE 2 k k 1 1 1 1", ErrArity},
		{"GO.MTHROTTLE 2 k k 1 1 1 1 1 1 1 x", ErrQuantityNotInteger},
		{"GO.RELEASE k" + strings.Repeat(" a", releaseMost+1), ErrTooManyIDs},
		// Options.
		{"GO.THROTTLE k 15 30 60 XX", ErrUnknownOption},
		{"GO.THROTTLE k 15 30 60 EXACT", ErrUnknownOption},
		{"GO.THROTTLE k 15 30 60 MS 5", ErrUnknownOption},
		{"GO.THROTTLE k 15 30 60 ms MS", ErrRepeatedOption},
		{"GO.WINDOW k 5 60 ALIGN 0", ErrUnknownOption},
		{"GO.QUOTA k 5 60 ALIGN", ErrAlignWithoutOffset},
		{"GO.QUOTA k 5 60 ALIGN 0 ALIGN 0", ErrRepeatedOption},
		{"GO.LEASE k 1 60 a UPTO", ErrUnknownOption},
		{"GO.MTHROTTLE 1 k 1 1 1 1 UPTO", ErrUnknownOption},
		// Keys of another type.
		{"GO.THROTTLE list 15 30 60", ErrWrongType},
		{"GO.WINDOW profile 5 60", ErrWrongType},
		{"GO.QUOTA board 5 60", ErrWrongType},
		{"GO.LEASE string 5 60 a", ErrWrongType},
		{"GO.RELEASE string a", ErrWrongType},
		{"GO.MTHROTTLE 2 k board 1 1 1 1 1 1 1 1", ErrWrongType},
		// Keys of the right type that are not ours.
		{"GO.THROTTLE profile 15 30 60", ErrForeignHash},
		{"GO.THROTTLE broken 15 30 60", ErrDamaged},
		{"GO.QUOTA string 5 60", ErrForeignString},
		{"GO.WINDOW board 5 60", ErrForeignWindow},
		{"GO.WINDOW badscore 5 60", ErrForeignWindow},
		{"GO.WINDOW mixed 5 60", ErrForeignWindow},
		{"GO.WINDOW mixed 5 60 -1", ErrForeignWindow},
		{"GO.WINDOW backward 5 60", ErrDamaged},
		{"GO.LEASE board 5 60 a", ErrForeignLeases},
		{"GO.RELEASE board a", ErrForeignLeases},
		{"GO.RELEASE badscore a", ErrForeignLeases},
		{"GO.LEASE backward 5 60 a", ErrForeignLeases},
	} {
		_, got := s.do(row.line)
		seen[got] = true
		if got != row.want {
			t.Errorf("%.60q: %q, want %q", row.line, got.Text(), row.want.Text())
		}
	}
	if len(s.keys) != 9 { // and the one call that is right
		t.Errorf("%d keys, want the 8 there were and one more", len(s.keys))
	}
	for e := range NumErrors {
		if !seen[e] {
			t.Errorf("no row for %q", e.Text())
		}
	}
}

func TestErrorTexts(t *testing.T) {
	seen := map[string]bool{}
	for e := NoError + 1; e < NumErrors; e++ {
		text := e.Text()
		code, sentence, _ := strings.Cut(text, " ")
		if code != strings.ToUpper(code) || sentence == "" || strings.HasSuffix(text, ".") || seen[text] {
			t.Errorf("error %d: %q", e, text)
		}
		seen[text] = true
	}
}

// A row must be complete, and must say the same thing twice the same way.
func TestTable(t *testing.T) {
	for _, c := range Table {
		required := 1
		for _, a := range c.Args {
			switch {
			case a.Type == ArgBlock:
				required += len(a.Sub)
			case !a.Optional:
				required++
			}
			if a.Name == "" || a.Summary == "" {
				t.Errorf("%s: argument %+v lacks a text", c.Name, a)
			}
		}
		if c.Least() != required {
			t.Errorf("%s: arity %d, but %d words are required", c.Name, c.Arity, required)
		}
		if c.Summary == "" || c.Complexity == "" || c.Since == "" || c.Handler == nil || c.Name != strings.ToUpper(c.Name) {
			t.Errorf("%s: incomplete row", c.Name)
		}
		if c.WordsPerKey == 0 && c.Args[0].Type != ArgKey {
			t.Errorf("%s: the first word must be the key", c.Name)
		}
	}
}
