package main

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSkipReply(t *testing.T) {
	for _, test := range []struct {
		name, bytes string
		ints        []int64
		rest        string
	}{
		{"string", "+OK\r\n+", nil, "+"},
		{"integer", ":-12\r\n", []int64{-12}, ""},
		{"bulk, with line ends inside", "$4\r\na\r\nb\r\n:1\r\n", nil, ":1\r\n"},
		{"empty bulk", "$0\r\n\r\n:1\r\n", nil, ":1\r\n"},
		{"nil bulk and nil array", "*2\r\n$-1\r\n*-1\r\n:1\r\n", nil, ":1\r\n"},
		{"nested", "*3\r\n:1\r\n*2\r\n:2\r\n$1\r\nx\r\n:3\r\n:9\r\n", []int64{1, 2, 3}, ":9\r\n"},
		{"more than there is room for", "*5\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n", []int64{1, 2, 3, 4}, ""},
	} {
		r := bufio.NewReader(strings.NewReader(test.bytes))
		ints, err := skipReply(r, make([]int64, 0, 4))
		rest, _ := io.ReadAll(r)
		if err != nil || !slices.Equal(ints, test.ints) || string(rest) != test.rest {
			t.Errorf("%s: %v, %v, rest %q; want %v, rest %q", test.name, ints, err, rest, test.ints, test.rest)
		}
	}
}

func TestSkipReply_errors(t *testing.T) {
	var reply errReply
	for _, bytes := range []string{"-ERR no\r\n", "*2\r\n:1\r\n-ERR no\r\n", "*1\r\n*1\r\n-ERR no\r\n"} {
		_, err := skipReply(bufio.NewReader(strings.NewReader(bytes)), nil)
		if !errors.As(err, &reply) || reply != "ERR no" {
			t.Errorf("%q: %v", bytes, err)
		}
	}
	for _, bytes := range []string{"", "?\r\n", ":x\r\n", ":-\r\n", "*2\r\n:1\r\n", "$5\r\nab"} {
		if _, err := skipReply(bufio.NewReader(strings.NewReader(bytes)), nil); err == nil {
			t.Errorf("%q is taken for a reply", bytes)
		}
	}
}

func TestCompile(t *testing.T) {
	o, err := compile("GET {key} ; EVALSHA {sha} {slot} {id}", map[string]string{"{sha}": "abc"})
	if err != nil {
		t.Fatal(err)
	}
	got := string(o.append(nil, blanksOf{key: 42, keys: 100, slot: 7, id: 123}, rand.New(rand.NewPCG(1, 1))))
	want := "*2\r\n$3\r\nGET\r\n$13\r\nkey:000000042\r\n" +
		"*4\r\n$7\r\nEVALSHA\r\n$3\r\nabc\r\n$2\r\n07\r\n$16\r\n0000000000000123\r\n"
	if got != want || o.replies != 2 {
		t.Errorf("%d replies, %q, want 2, %q", o.replies, got, want)
	}
	for _, text := range []string{"GET {kye}", "", "GET 1 ;  ; PING"} {
		if _, err := compile(text, nil); err == nil {
			t.Errorf("%q compiles", text)
		}
	}
}

// The text around a blank becomes a part of the word.
func TestCompile_around(t *testing.T) {
	o, err := compile("GET {{key}}:rpm", nil)
	if err != nil {
		t.Fatal(err)
	}
	got := string(o.append(nil, blanksOf{key: 42, keys: 100}, nil))
	if want := "*2\r\n$3\r\nGET\r\n$19\r\n{key:000000042}:rpm\r\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if _, err := compile("GET a{kye}:rpm", nil); err == nil {
		t.Error("an unknown blank inside a word compiles")
	}
}

// The three keys of an op differ, and {other} and {third} together reach all other keys.
func TestCompile_threeKeys(t *testing.T) {
	o, err := compile("MGET {key} {other} {third}", nil)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 1))
	for _, keys := range []int64{3, 4, 9} {
		seen := map[string]bool{}
		for range 1000 {
			words := wordsOf(t, string(o.append(nil, blanksOf{key: keys - 1, keys: keys}, random)))
			if words[1] == words[2] || words[1] == words[3] || words[2] == words[3] {
				t.Fatalf("%d keys: %q", keys, words)
			}
			seen[words[2]], seen[words[3]] = true, true
		}
		if int64(len(seen)) != keys-1 {
			t.Errorf("%d keys: %d others", keys, len(seen))
		}
	}
}

// wordsOf returns the words of a request. Words have no line ends here.
func wordsOf(t *testing.T, wire string) []string {
	t.Helper()
	var words []string
	lines := strings.Split(wire, "\r\n")
	for i := 2; i < len(lines); i += 2 {
		if lines[i-1] != fmt.Sprintf("$%d", len(lines[i])) {
			t.Fatalf("%s before %q", lines[i-1], lines[i])
		}
		words = append(words, lines[i])
	}
	return words
}

// complete fails if wire is not n complete commands.
func complete(t *testing.T, name string, wire []byte, n int) {
	t.Helper()
	r := bufio.NewReader(bytes.NewReader(wire))
	for range n { // requests have the form of replies
		if _, err := skipReply(r, nil); err != nil {
			t.Errorf("%s: %.200q: %v", name, wire, err)
		}
	}
	if _, err := r.ReadByte(); err != io.EOF {
		t.Errorf("%s: bytes follow %d commands", name, n)
	}
}

// All texts compile, and their blanks are as wide as the values written into them.
func TestContenders(t *testing.T) {
	names := map[string]bool{}
	for _, c := range contenders(&options{peer: "x.so", peerCmd: "P {key}", peerDenied: "P {hot}"}) {
		if names[c.name] {
			t.Errorf("two contenders are called %s", c.name)
		}
		names[c.name] = true
		for _, text := range []string{c.text, cmp.Or(c.warm, c.text), cmp.Or(c.filled, c.text)} {
			traffic, err := c.traffic(&options{}, text, "sha", 1000, time.Second)
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			random := rand.New(rand.NewPCG(1, 1))
			wire := traffic.op.append(nil, blanksOf{key: 999, keys: 1000, slot: 99, id: 5e10 + 7, period: time.Second}, random)
			complete(t, c.name, wire, traffic.op.replies)
		}
	}
	for _, row := range newResults(contenders(&options{}), nil, nil).rows() {
		pair, isCPU := strings.CutPrefix(row.what, "CPU, ")
		for name := range strings.SplitSeq(pair, " / ") {
			if isCPU && !names[name] && !strings.Contains(name, "PEER") {
				t.Errorf("%q: no contender is called %s", row.what, name)
			}
		}
	}
}

// Each GO.ALL of the bench has the words that the command takes, and its keys differ.
func TestContenders_all(t *testing.T) {
	form := regexp.MustCompile(`^GO\.ALL \S+( THROTTLE \d+ \d+ \d+( \d+)?| WINDOW \d+ \d+ \d+| QUOTA \d+ \d+ \d+| LEASE \d+ \d+ \d+| KEY \S+)+( MS)?$`)
	clause := regexp.MustCompile(` (THROTTLE|WINDOW|QUOTA|LEASE) `)
	check := func(name string, words []string, count int) {
		t.Helper()
		var short []string // the longest words would take the patterns seconds
		for _, word := range words {
			short = append(short, word[:min(len(word), 30)])
		}
		text := strings.Join(short, " ")
		if n := len(clause.FindAllString(text, -1)); n != count || !form.MatchString(text) {
			t.Errorf("%s: %d clauses in %.300q", name, n, text)
		}
		seen := map[string]bool{}
		for i, word := range words {
			if i == 1 || words[max(0, i-1)] == "KEY" {
				if seen[word] {
					t.Errorf("%s names %.50s twice", name, word)
				}
				seen[word] = true
			}
		}
	}
	counts := map[string]int{"GO.ALL 3 cells": 3, "GO.ALL 3 keys": 3, "GO.ALL gateway": 4}
	found := 0
	for _, c := range contenders(&options{}) {
		if counts[c.name] == 0 {
			continue
		}
		found++
		traffic, err := c.traffic(&options{}, c.text, "", 1000, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(1, 1))
		wire := traffic.op.append(nil, blanksOf{key: 2, keys: 3, slot: 7}, random)
		check(c.name, wordsOf(t, string(wire)), counts[c.name])
	}
	if found != len(counts) {
		t.Errorf("%d rows of GO.ALL", found)
	}
	for _, w := range worstCases() {
		if w.call[0] == "GO.ALL" {
			check(w.name, w.call, 32)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		expect, limited int
		used            float64
		ok              bool
	}{
		{anything, 100, 0, true},
		{admitted, 0, 0, true}, {admitted, 1, 0, true}, {admitted, 2, 0, false},
		{denied, 100, 0, true}, {denied, 99, 0, true}, {denied, 98, 0, false},
		{nearlyFull, 0, 95, true}, {nearlyFull, 0, 89, false}, {nearlyFull, 2, 95, false},
	} {
		c := &contender{expect: test.expect}
		err := c.check(tally{samples: 100, limited: test.limited, used: test.used})
		if (err == nil) != test.ok {
			t.Errorf("%+v: %v", test, err)
		}
	}
	if (&contender{expect: admitted}).check(tally{}) == nil {
		t.Error("a tally without samples passes")
	}
}

func TestTwoCPUs(t *testing.T) {
	for list, want := range map[string][2]string{"0-1": {"0", "1"}, "3,5-7": {"3", "5"}, "2": {}} {
		first, second, ok := twoCPUs(list)
		if first != want[0] || second != want[1] || ok != (want[0] != "") {
			t.Errorf("%s: %s, %s, %v", list, first, second, ok)
		}
	}
}
