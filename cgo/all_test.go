package cgo_test

// No transcript has 32 clauses, or shows which keys are opened.

import (
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
