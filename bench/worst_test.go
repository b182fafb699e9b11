package main

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// All worst cases can be sent, and all keys of one call differ.
func TestWorstCases(t *testing.T) {
	names := map[string]bool{}
	for _, w := range worstCases() {
		if names[w.name] {
			t.Errorf("two worst cases are called %s", w.name)
		}
		names[w.name] = true
		if w.calls < 1 || len(w.call) == 0 {
			t.Errorf("%s: nothing is called", w.name)
		}
		if w.fills > 0 {
			traffic, err := (&contender{}).traffic(&options{}, w.fill, "", 1, time.Second)
			if err != nil {
				t.Errorf("%s: %v", w.name, err)
				continue
			}
			complete(t, w.name, traffic.op.append(nil, blanksOf{keys: 1, id: 5}, nil), traffic.op.replies)
		}
		for _, words := range append(slices.Clone(w.setup), w.call) {
			complete(t, w.name, request(words...), 1)
		}
	}
}

func TestLongWords(t *testing.T) {
	words := longWords("key:", 32, 20)
	for i, word := range words {
		if len(word) != 20 || word[:16] != words[0][:16] {
			t.Errorf("word %d is %q", i, word)
		}
	}
	if slices.Sort(words); len(slices.Compact(words)) != 32 {
		t.Error("two words are alike")
	}
}

// A reply that is not the expected one ends the run.
func TestWorstCase_check(t *testing.T) {
	plain := &worstCase{call: []string{"X"}, first: 1}
	fails := &worstCase{call: []string{"X"}, fails: true}
	for _, test := range []struct {
		w    *worstCase
		ints []int64
		err  error
		ok   bool
	}{
		{plain, []int64{1, 5}, nil, true},
		{plain, []int64{0, 5}, nil, false},
		{plain, nil, nil, false},
		{plain, nil, errReply("ERR"), false},
		{fails, nil, errReply("ERR"), true},
		{fails, []int64{1}, nil, false},
		{fails, nil, errors.New("the connection is gone"), false},
	} {
		if err := test.w.check(test.ints, test.err); (err == nil) != test.ok {
			t.Errorf("%v, %v: %v", test.ints, test.err, err)
		}
	}
}

// A pattern chooses among contenders and worst cases alike.
func TestChoose(t *testing.T) {
	for pattern, want := range map[string][2]int{"^PING$": {1, 1}, "^GO.LEASE denied, 1 lease$": {0, 1}, "^INCR$": {1, 0}} {
		list, worst, err := choose(contenders(&options{}), worstCases(), pattern)
		if err != nil || len(list) != want[0] || len(worst) != want[1] {
			t.Errorf("%s: %d contenders, %d worst cases, %v", pattern, len(list), len(worst), err)
		}
	}
	for _, pattern := range []string{"nobody", "("} {
		if _, _, err := choose(contenders(&options{}), worstCases(), pattern); err == nil {
			t.Errorf("%q chooses something", pattern)
		}
	}
}
