package cgo_test

// No transcript has 32 clauses, shows which keys are opened, or has listeners.

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
)

const clauseA = " THROTTLE 15 30 60"

// A transcript with 32 clauses on each number of keys would be long. The fake host checks each call for leaks.
func TestAll_32(t *testing.T) {
	for distinct := 1; distinct <= 32; distinct++ {
		h := loaded(t)
		line := "GO.ALL key0" + clauseA + manyKeys(1, distinct-1, clauseA) + strings.Repeat(clauseA, 32-distinct)
		wantReply(t, h, line, "[0 16 15 -1 2 0"+strings.Repeat(" [0 16 15 -1 2]", 32)+"]")
		if wantReply(t, h, strings.ReplaceAll(line, clauseA, clauseA+" -1"), "[0 16 16 -1 0 0"+strings.Repeat(" [0 16 16 -1 0]", 32)+"]"); dump(h) != "" {
			t.Errorf("left %q", dump(h))
		}
	}
}

// The keys may hold more cells than the call uses. The module then takes memory from the server, which no transcript sees.
func TestAll_furtherCells(t *testing.T) {
	h := loaded(t)
	var keys []string
	for i := range 20 {
		keys = append(keys, fmt.Sprint("key", i))
		call(h, "GO.ALL "+keys[i]+strings.Repeat(clauseA, i+1))
	}
	line := "GO.ALL " + strings.Join(keys, clauseA+" KEY ") + clauseA
	for i := range 5 {
		r := copyOf(h, keys...)
		if got := call(h, line); !strings.HasPrefix(got, fmt.Sprintf("[0 16 %d -1 ", 14-i)) {
			t.Error(got)
		}
		r.follow(t, h, "further", keys...)
	}
	h.PutField("key15", "64", "5") // the TAT of a 17th cell, without its period
	wantUntouched(t, h, foreign, line)
}

// No reply shows it: the keys that the module names to the server are the keys that it opens, whatever the words look
// like. Otherwise the server would check the wrong keys for ACL and cluster. The fake host reports a
// fault if the module opens any other key.
func TestAll_keys(t *testing.T) {
	h := loaded(t)
	for _, row := range []struct {
		words string
		want  []string
	}{
		{"a THROTTLE 1 1 1 THROTTLE 1 1 1 2 KEY 1 WINDOW 1 1 EXACT key QUOTA LEASE 1 1 KEY KEY b LEASE 1 1 MS ms", []string{"a", "1", "QUOTA", "b"}},
		{"KEY QUOTA 1 1 ALIGN 5 KEY MS QUOTA 1 1 3 align 2 KEY THROTTLE WINDOW 1 1 MS", []string{"KEY", "MS", "THROTTLE"}},
		{"a QUOTA x y KEY b QUOTA 1 1", []string{"a", "b"}}, // an error, but the keys are clear
		{"a QUOTA 1 1 KEY", nil}, {"a QUOTA 1 1 KEY b", nil}, {"a QUOTA 1", nil}, {"a LIMIT 1 1 1", nil},
		{"a QUOTA 1 1 KEY a QUOTA 1 1", nil}, {"a QUOTA 1 1 WINDOW 1 1", nil}, {"a QUOTA 1 1 x", nil},
	} {
		for _, name := range []string{"GO.ALL", "go.all_ro"} {
			words := append([]string{name}, strings.Fields(row.words)...)
			if got := h.Keys(words...); !slices.Equal(got, row.want) {
				t.Errorf("%q: keys %q, want %q", words, got, row.want)
			}
			h.ResetCounts()
			got := h.Call(words...)
			if n := h.Count(fakehost.Opened); n < len(row.want) || row.want == nil && n > 0 {
				t.Errorf("%q: reply %v, opened %d keys", words, got, n)
			}
		}
	}
	binary := "\x00 \r\n" + strings.Repeat("\xff", 1000)
	if got := h.Keys("GO.ALL", "", "QUOTA", "1", "1", "KEY", binary, "QUOTA", "1", "1"); !slices.Equal(got, []string{"", binary}) {
		t.Errorf("keys %q", got)
	}
	for _, line := range []string{"GO.LEASE k 1 1 KEY", "GO.RELEASE k KEY l", "GO.POLICY k 1"} { // the server never asks the module for one key
		h.ResetCounts()
		if got := h.Keys(strings.Fields(line)...); !slices.Equal(got, []string{"k"}) || h.Count(fakehost.Asked) != 0 {
			t.Errorf("%s: keys %q", line, got)
		}
	}
}

// A transcript has no listeners: one that hears the event of one key may make a call on any key of the first call. All keys
// are closed by then. Both calls take full effect.
func TestAll_reentrance(t *testing.T) {
	const three = "GO.ALL k" + clauseA + " KEY l" + clauseA + " KEY m" + clauseA
	for _, inner := range []string{
		three, "GO.THROTTLE l 15 30 60 -16", "GO.THROTTLE m 15 30 60 99", "GO.ALL k" + clauseA + clauseA + clauseA,
		"GO.WINDOW w 10 60", "GO.LEASE s 10 60 a", "GO.QUOTA q 10 60", "GO.ALL l" + clauseA + " -1 THROTTLE 1 1 x", "GO.WINDOW k 10 60",
	} {
		h := loaded(t)
		heard := 0
		h.Listen(func(e fakehost.Event) {
			if e.Class == 0 {
				return
			}
			heard++
			if open := h.Alive()[1]; open != 0 {
				t.Errorf("%v: %d keys are open", e, open)
			}
			call(h, inner)
		})
		all := []string{"k", "l", "m", "w", "s", "q"}
		r := copyOf(h, all...)
		wantReply(t, h, three, "[0 16 15 -1 2 0 [0 16 15 -1 2] [0 16 15 -1 2] [0 16 15 -1 2]]")
		if heard != 6 {
			t.Errorf("%s: heard %d events", inner, heard)
		}
		for _, w := range h.Effects() {
			if _, err := r.apply(w); err != nil {
				t.Errorf("%s: %v", inner, err)
			}
		}
		r.wantSame(t, h, inner, all...)
	}
}
