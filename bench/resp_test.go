package main

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"math/rand/v2"
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

// Every contender can be sent, and its blanks are as wide as what is written into them.
func TestContenders(t *testing.T) {
	names := map[string]bool{}
	for _, c := range contenders(&options{peer: "x.so", peerCmd: "P {key}", peerDenied: "P {hot}"}) {
		if names[c.name] {
			t.Errorf("two are called %s", c.name)
		}
		names[c.name] = true
		for _, text := range []string{c.text, cmp.Or(c.warm, c.text), cmp.Or(c.filled, c.text)} {
			traffic, err := c.traffic(&options{}, text, "sha", 1000, time.Second)
			if err != nil {
				t.Error(err)
				continue
			}
			random := rand.New(rand.NewPCG(1, 1))
			b := traffic.op.append(nil, blanksOf{key: 999, keys: 1000, slot: 99, id: 5e10 + 7, period: time.Second}, random)
			r := bufio.NewReader(strings.NewReader(string(b)))
			for range traffic.op.replies { // requests have the form of replies
				if _, err := skipReply(r, nil); err != nil {
					t.Errorf("%s: %q: %v", c.name, b, err)
				}
			}
			if r.Buffered() != 0 {
				t.Errorf("%s: %q has something at its end", c.name, b)
			}
		}
	}
	for _, row := range newResults(contenders(&options{})).rows() {
		for name := range strings.SplitSeq(strings.TrimPrefix(row.what, "CPU, "), " / ") {
			if strings.HasPrefix(row.what, "CPU, ") && !names[name] && !strings.Contains(name, "PEER") {
				t.Errorf("%q: nobody is called %s", row.what, name)
			}
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
		t.Error("no reply at all is well")
	}
}

func TestResults(t *testing.T) {
	if s := spreadOf([]float64{5, 1, 2, 4}); s != (spread{3, 1, 5}) {
		t.Error(s)
	}
	r := newResults(nil)
	r.of["a"] = []figure{{cpu: 1}, {cpu: 9}, {cpu: 8}}
	r.of["b"] = []figure{{cpu: 2}, {cpu: 3}, {cpu: 4}}
	// Within the rounds 0.5, 3, 2; the quotient of the medians would be 8/3.
	if s := r.ratio("a", "b", cpuOf); s != (spread{2, 0.5, 3}) {
		t.Error(s)
	}
	if w := (row{target: 1, is: r.ratio("a", "none", cpuOf)}); w.met() != "not measured" {
		t.Error(w.met())
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
