package cgo_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
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
		"-9223372036854775808", "18446744073709551616", "3153600000", "3153600001", "3153600000000", "UPTO", "EXACT", "ALIGN", "nan", "inf"}
	keys := []string{"a", "b", "adopted", "list", "hash", "zset", "leases", "window", "quota", "string", ""}
	fine := map[string]int{}
	for i := range rounds(30_000) {
		h.PutString("adopted", tat(h, r.Int64N(1e11)))
		h.PutString("string", "5@x")
		h.PutString("quota", "5@"+strconv.FormatInt(h.Now()+r.Int64N(1e8), 10))
		h.PutOther("list", "list")
		h.PutHash("hash", "0", "1", "x", "2")
		h.PutZset("zset", fakehost.Member{Score: 1, Text: "alice"})
		h.PutZset("leases", fakehost.Member{Score: -float64(h.Now() + r.Int64N(1e8)), Text: "\x02x"})
		h.PutZset("window", fakehost.Member{Score: -float64(h.Now() - r.Int64N(1e8)), Text: "\x013:2"})
		command := pick(r, commands.Table...)
		call := []string{pick(r, command.Name, strings.ToLower(command.Name)), pick(r, keys...)}
		if command.WordsPerKey > 0 {
			n := pick(r, 1, 1, 1, 2, 3, 0, 5)
			call[1] = pick(r, strconv.Itoa(n), strconv.Itoa(n), strconv.Itoa(n), pick(r, words...))
			for range n {
				call = append(call, pick(r, keys...))
			}
			for range command.WordsPerKey * n {
				call = append(call, pick(r, "1", "1", "1", "60", "60", pick(r, words...)))
			}
		}
		likely, more := pick(r, 2, 10), 7
		if command.WordsPerKey > 0 {
			more = 2
		}
		for range r.IntN(more) {
			if r.IntN(likely) == 0 {
				call = append(call, pick(r, words...))
			} else {
				call = append(call, pick(r, "1", "2", "60"))
			}
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
	for _, command := range commands.Table {
		if fine[command.Name] < rounds(20) {
			t.Errorf("only %d calls of %s were in order", fine[command.Name], command.Name)
		}
	}
}
