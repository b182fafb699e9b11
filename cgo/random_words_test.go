package cgo_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
	"gothrottle/commands"
)

// Each command gets random words, most of them wrong, on keys of every kind. Each call gives one
// reply and never panics. A call that is an error changes nothing.
func TestRandom_words(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	h := loaded(t)
	words := []string{"", "0", "1", "-1", "+5", "007", "-0", "15", "30", "60", "ms", "MS", "x", "1.5", "1e3", " 1", "1 ", "\x00", "\xff",
		"999999999999", "1000000000000", "1000000000001", "-1000000000001", "9223372036854775807", "9223372036854775808",
		"-9223372036854775808", "18446744073709551616", "3153600000", "3153600001", "3153600000000", "UPTO", "EXACT", "ALIGN", "FORCE", "RESERVE", "LOCKOUT", "KEY", "THROTTLE", "nan", "inf"}
	keys := []string{"a", "b", "full", "locked", "adopted", "list", "hash", "zset", "leases", "window", "quota", "string", ""}
	fine := map[string]int{}
	used := map[string]int{} // the options of calls in order
	for i := range rounds(30_000) {
		h.PutString("adopted", tat(h, r.Int64N(1e11)))
		h.PutString("string", "5@x")
		h.PutString("quota", fmt.Sprintf("5@%019d", 1000*(h.Now()+r.Int64N(1e8))))
		h.PutOther("list", "list")
		h.PutHash("full", "0", tat(h, 1e17), "1", "60")
		h.PutHash("locked", "0", tat(h, r.Int64N(1e11)), "1", "60", "128", tat(h, r.Int64N(1e11)))
		h.PutHash("hash", "0", "1", "x", "2")
		h.PutZset("zset", fakehost.Member{Score: 1, Text: "alice"})
		h.PutZset("leases", fakehost.Member{Score: -float64(h.Now() + r.Int64N(1e8)), Text: "\x02x"})
		h.PutZset("window", fakehost.Member{Score: -float64(h.Now() - r.Int64N(1e8)), Text: "\x013:2"})
		command := pick(r, commands.Table...)
		call := []string{pick(r, command.Name, strings.ToLower(command.Name))}
		if !command.NoKey {
			call = append(call, pick(r, keys...))
		}
		likely, more := pick(r, 2, 10), 7
		if command.OneKey && r.IntN(2) == 0 {
			call[1] = pick(r, "sample:a", "sample:", "sample:b")
		}
		if command.Plan != nil && !command.OneKey {
			call = append(call, randomClauses(r, words, keys)...)
			more = 2
		}
		for range r.IntN(more) {
			if r.IntN(likely) == 0 {
				call = append(call, pick(r, words...))
			} else {
				call = append(call, pick(r, "1", "2", "60"))
			}
		}
		if r.IntN(4) == 0 {
			call = append(call, strings.Fields(pick(r, "UPTO", "force", "FORCE MS", "RESERVE 5", "LOCKOUT 5", "LOCKOUT x", "EXACT", "ALIGN 1"))...)
		}
		h.Advance(r.Int64N(second))
		before, events := h.Dump(), 0
		got := h.Call(call...)
		for _, e := range h.Events() {
			if e.Name == "expired" {
				events++
			}
		}
		if got.Err == "" {
			fine[command.Name]++
			for _, word := range call {
				used[word]++
			}
		} else if events == 0 && (!slices.Equal(before, h.Dump()) || h.Effects() != nil) {
			t.Fatalf("seed %d, call %d: %q: %v, but %q", seed, i, call, got, h.Effects())
		}
		if !command.Writes() && events == 0 && !slices.Equal(before, h.Dump()) {
			t.Fatalf("seed %d, call %d: %q changed %q to %q", seed, i, call, before, h.Dump())
		}
		if log := h.Log(); log != nil {
			t.Fatalf("seed %d, call %d: %q: log %q", seed, i, call, log)
		}
	}
	const least = 5
	if rounds(least) < least {
		return // so few calls that a command may have no call in order
	}
	for _, command := range commands.Table {
		if fine[command.Name] < least {
			t.Errorf("only %d calls of %s were in order", fine[command.Name], command.Name)
		}
	}
	for _, option := range []string{"UPTO", "EXACT", "ALIGN", "FORCE", "RESERVE", "LOCKOUT"} {
		if used[option] < least {
			t.Errorf("only %d calls with %s were in order", used[option], option)
		}
	}
}

// randomClauses returns the words of one to three keys of GO.ALL after the first key. Now and then
// a word is missing or wrong.
func randomClauses(r *rand.Rand, words, keys []string) (call []string) {
	if r.IntN(8) == 0 {
		defer func() { call = append(call, "FORCE") }()
	}
	forms := []struct{ keyword, words string }{{"THROTTLE", "1 1 60"}, {"THROTTLE", "5 60 60 2"}, {"WINDOW", "5 60"}, {"WINDOW", "300 60 2 EXACT"},
		{"QUOTA", "9 60"}, {"QUOTA", "9 60 0 ALIGN 1"}, {"LEASE", "5 60 a"}, {"LEASE", "1 60 x"}}
	for n := range 1 + r.IntN(3) {
		if n > 0 {
			call = append(call, pick(r, "KEY", "key"), pick(r, keys...))
		}
		form := pick(r, forms...)
		call = append(call, form.keyword)
		for _, word := range strings.Fields(form.words) {
			switch r.IntN(60) {
			case 0:
				word = pick(r, words...)
			case 1:
				continue
			}
			call = append(call, word)
		}
		if form.keyword == "THROTTLE" && r.IntN(2) == 0 {
			call = append(call, "THROTTLE", "3", "1", "60")
		}
	}
	return call
}
