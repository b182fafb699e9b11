package cgo_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
)

// The limits of the rows. A unit of limitA drains in 2 s, of limitB in 1 s, of limitC in 6 s.
const (
	limitA = " 15 30 60 "
	limitB = " 9 60 60 "
	limitC = " 4 10 60 "
)

func TestMThrottle_effects(t *testing.T) {
	full := run(0, "GO.THROTTLE l"+limitB+"10")
	wantEffects(t, []effectRow{
		{"one limit", nil, "GO.MTHROTTLE 1 k" + limitA + "1", "[0 -1 -1 [0 16 15 -1 2]]",
			"HSET k 0 T+2000000000 1 2; PEXPIREAT k M+10000"},
		{"it is GO.THROTTLE's", run(0, "GO.THROTTLE k"+limitA),
			"GO.MTHROTTLE 1 k" + limitA + "1", "[0 -1 -1 [0 16 14 -1 4]]", "HSET k 0 T+4000000000"},
		{"two keys", nil, "GO.MTHROTTLE 2 k l" + limitA + "1" + limitB + "2", "[0 -1 -1 [0 16 15 -1 2] [0 10 8 -1 2]]",
			"HSET k 0 T+2000000000 1 2; PEXPIREAT k M+10000; HSET l 0 T+2000000000 1 1; PEXPIREAT l M+4500"},
		{"three keys in milliseconds", nil, "GO.MTHROTTLE 3 m k l 0 1 10 1 0 1 20 1 0 1 30 1 ms",
			"[0 -1 -1 [0 1 0 -1 10] [0 1 0 -1 20] [0 1 0 -1 30]]",
			"HSET m 0 T+10000000 1 -10000000; PEXPIREAT m M+1010; HSET k 0 T+20000000 1 -20000000; PEXPIREAT k M+1020; " +
				"HSET l 0 T+30000000 1 -30000000; PEXPIREAT l M+1030"},
		{"a key twice has two cells", nil, "GO.MTHROTTLE 2 k k" + limitA + "1" + limitC + "1", "[0 -1 -1 [0 16 15 -1 2] [0 5 4 -1 6]]",
			"HSET k 0 T+2000000000 1 2 4 T+6000000000 5 6; PEXPIREAT k M+13500"},
		{"the expiry is as exact as the smallest window asks for", nil, "GO.MTHROTTLE 2 k k" + limitB + "1" + limitA + "1",
			"[0 -1 -1 [0 10 9 -1 1] [0 16 15 -1 2]]",
			"HSET k 0 T+1000000000 1 1 4 T+2000000000 5 2; PEXPIREAT k M+4500"},
		{"the cells go by the key's repeats", nil, "GO.MTHROTTLE 4 k l k l" + strings.Repeat(limitA+"1", 4),
			"[0 -1 -1 [0 16 15 -1 2] [0 16 15 -1 2] [0 16 15 -1 2] [0 16 15 -1 2]]",
			"HSET k 0 T+2000000000 1 2 4 T+2000000000 5 2; PEXPIREAT k M+10000; " +
				"HSET l 0 T+2000000000 1 2 4 T+2000000000 5 2; PEXPIREAT l M+10000"},
		{"one of them again", run(0, "GO.MTHROTTLE 2 k k"+limitA+"1"+limitC+"1"), "GO.THROTTLE k" + limitA, "[0 16 14 -1 4]",
			"HSET k 0 T+4000000000"},
		{"with a fraction", nil, "GO.MTHROTTLE 2 k k 15 7 60 1 15 7 60 2", "[0 -1 -1 [0 16 15 -1 9] [0 16 14 -1 18]]",
			"HSET k 0 T+8571428571 1 60 2 3 3 7 4 T+17142857142 5 60 6 6 7 7; PEXPIREAT k M+32143"},
		{"from a fraction to none in the second cell", run(0, "GO.MTHROTTLE 2 k k 15 7 60 1 15 7 60 2"),
			"GO.MTHROTTLE 2 k k 15 7 60 0" + limitA + "1", "[0 -1 -1 [0 16 15 -1 9] [0 16 13 -1 6]]",
			"HSET k 4 T+6000000000 5 2; HDEL k 6 7; PEXPIREAT k M+16572"},
		{"a gap is filled with a void cell", nil, "GO.MTHROTTLE 2 k k" + limitA + "0" + limitC + "1", "[0 -1 -1 [0 16 16 -1 0] [0 5 4 -1 6]]",
			"HSET k 0 T+0 1 2 4 T+6000000000 5 6; PEXPIREAT k M+13500"},
		{"a gap of two, one with a fraction", nil, "GO.MTHROTTLE 3 k k k 15 7 60 0 1 1 1 0" + limitC + "1",
			"[0 -1 -1 [0 16 16 -1 0] [0 2 2 -1 0] [0 5 4 -1 6]]",
			"HSET k 0 T+0 1 60 2 0 3 7 4 T+0 5 1 8 T+6000000000 9 6; PEXPIREAT k M+13500"},
		{"a quantity of 0 among others", run(0, "GO.THROTTLE l"+limitB+"3"), "GO.MTHROTTLE 2 k l" + limitA + "1" + limitB + "0",
			"[0 -1 -1 [0 16 15 -1 2] [0 10 7 -1 3]]", "HSET k 0 T+2000000000 1 2; PEXPIREAT k M+10000"},
		{"one given back, one taken", run(0, "GO.THROTTLE l"+limitB+"3"), "GO.MTHROTTLE 2 l k" + limitB + "-2" + limitA + "1",
			"[0 -1 -1 [0 10 9 -1 1] [0 16 15 -1 2]]",
			"HSET l 0 T+1000000000; PEXPIREAT l M+3500; HSET k 0 T+2000000000 1 2; PEXPIREAT k M+10000"},
		{"one given back to full", run(0, "GO.THROTTLE l"+limitB+"3"), "GO.MTHROTTLE 2 l k" + limitB + "-3" + limitA + "1",
			"[0 -1 -1 [0 10 10 -1 0] [0 16 15 -1 2]]", "DEL l; HSET k 0 T+2000000000 1 2; PEXPIREAT k M+10000"},
		{"one of two cells given back", run(0, "GO.MTHROTTLE 2 k k"+limitA+"1"+limitC+"1"), "GO.MTHROTTLE 2 k k" + limitA + "0" + limitC + "-1",
			"[0 -1 -1 [0 16 15 -1 2] [0 5 5 -1 0]]", "HSET k 4 T+0; PEXPIREAT k M+9500"},
		{"both given back", run(0, "GO.MTHROTTLE 2 k k"+limitA+"1"+limitC+"1"), "GO.MTHROTTLE 2 k k" + limitA + "-1" + limitC + "-9",
			"[0 -1 -1 [0 16 16 -1 0] [0 5 5 -1 0]]", "DEL k"},
		{"the first given back, the second taken", run(0, "GO.MTHROTTLE 2 k k"+limitA+"1"+limitC+"1"),
			"GO.MTHROTTLE 2 k k" + limitA + "-1" + limitC + "1",
			"[0 -1 -1 [0 16 16 -1 0] [0 5 3 -1 12]]", "HSET k 0 T+0 4 T+12000000000"},
		{"nothing given back of nothing", nil, "GO.MTHROTTLE 2 k l" + limitA + "-1" + limitB + "-1",
			"[0 -1 -1 [0 16 16 -1 0] [0 10 10 -1 0]]", ""},
		{"redis-cell's string among them", func(h *fakehost.Host) { h.PutString("k", tat(h, 2_500_000_000)) },
			"GO.MTHROTTLE 2 k l" + limitA + "1" + limitB + "1", "[0 -1 -1 [0 16 13 -1 5] [0 10 9 -1 1]]",
			"DEL k; HSET k 0 T+4500000000 1 2; PEXPIREAT k M+12500; HSET l 0 T+1000000000 1 1; PEXPIREAT l M+3500"},

		{"one of two denies", full, "GO.MTHROTTLE 2 k l" + limitA + "1" + limitB + "1", "[1 1 1 [0 16 16 -1 0] [1 10 0 1 10]]", ""},
		{"the longest wait decides", run(0, "GO.THROTTLE l"+limitB+"10", "GO.THROTTLE k"+limitA+"16", "GO.THROTTLE m"+limitC+"5"),
			"GO.MTHROTTLE 3 l k m" + limitB + "5" + limitA + "1" + limitC + "1",
			"[1 6 2 [1 10 0 5 10] [1 16 0 2 32] [1 5 0 6 30]]", ""},
		{"the first of equals", run(0, "GO.THROTTLE l"+limitB+"10", "GO.THROTTLE k"+limitA+"16"),
			"GO.MTHROTTLE 3 m l k" + limitC + "1" + limitB + "2" + limitA + "1",
			"[1 2 1 [0 5 5 -1 0] [1 10 0 2 10] [1 16 0 2 32]]", ""},
		{"never is the longest", full, "GO.MTHROTTLE 3 k l m" + limitA + "1" + limitB + "1" + limitC + "6",
			"[1 -1 2 [0 16 16 -1 0] [1 10 0 1 10] [1 5 5 -1 0]]", ""},
		{"denied: what would have been taken or given back is not", run(0, "GO.THROTTLE l"+limitB+"10", "GO.THROTTLE k"+limitA+"3"),
			"GO.MTHROTTLE 3 k l m" + limitA + "-2" + limitB + "1" + limitC + "4",
			"[1 1 1 [0 16 13 -1 6] [1 10 0 1 10] [0 5 5 -1 0]]", ""},
		{"denied by the second cell", run(0, "GO.MTHROTTLE 2 k k"+limitA+"1"+limitC+"5"),
			"GO.MTHROTTLE 2 k k" + limitA + "1" + limitC + "1", "[1 6 1 [0 16 15 -1 2] [1 5 0 6 30]]", ""},
		{"peek", full, "GO.MTHROTTLE 2 k l" + limitA + "0" + limitB + "0", "[0 -1 -1 [0 16 16 -1 0] [0 10 0 -1 10]]", ""},
		{"peek with a lowered limit", full, "GO.MTHROTTLE 2 k l" + limitA + "0 8 60 60 0", "[1 1 1 [0 16 16 -1 0] [1 9 0 1 10]]", ""},
		{"denied at a new rate: the one that denies is rewritten", full,
			"GO.MTHROTTLE 2 k l" + limitA + "1 9 30 60 1", "[1 2 1 [0 16 16 -1 0] [1 10 0 2 20]]",
			"HSET l 0 T+20000000000 1 2; PEXPIREAT l M+25000"},
		{"denied at a new rate: the one that admits is not rewritten", run(0, "GO.THROTTLE l"+limitB+"10", "GO.THROTTLE k"+limitB+"5"),
			"GO.MTHROTTLE 2 k l" + limitA + "1" + limitB + "1", "[1 1 1 [0 16 11 -1 10] [1 10 0 1 10]]", ""},

		{"a bad word in the second limit", full, "GO.MTHROTTLE 2 k l" + limitA + "1 9 60 x 1", "ERR period is not an integer", ""},
		{"a bad word in the first limit", full, "GO.MTHROTTLE 2 k l -1 30 60 1" + limitB + "x", "ERR max_burst must be between 0 and 999999999999", ""},
		{"a window too long", full, "GO.MTHROTTLE 2 k l" + limitA + "1 999999999999 1 60 1",
			"ERR (max_burst + 1) x period / count must not exceed 100 years", ""},
		{"an option of others", full, "GO.MTHROTTLE 2 k l" + limitA + "1" + limitB + "1 UPTO", "ERR unknown option", ""},
		{"a word too many", full, "GO.MTHROTTLE 1 k" + limitA + "1 1", "ERR unknown option", ""},
		{"an option twice", full, "GO.MTHROTTLE 1 k" + limitA + "1 MS ms", "ERR option given more than once", ""},
		{"a foreign key among them", leaderboard, "GO.MTHROTTLE 2 l k" + limitA + "1" + limitB + "1", wrongType, ""},
		{"a foreign hash among them", hashOf("0", "T", "x", "1"), "GO.MTHROTTLE 3 l k m" + limitA + "1" + limitB + "1" + limitC + "1", foreign, ""},
		{"a damaged second cell", hashOf("0", "T", "1", "2", "4", "T", "5", "x"), "GO.MTHROTTLE 2 l k" + limitA + "1" + limitB + "1", damaged, ""},
		{"a cell that nobody asked for is damaged", hashOf("0", "T", "1", "2", "4", "T", "5", "-1", "8", "T", "9", "0"),
			"GO.MTHROTTLE 2 k k" + limitA + "0" + limitB + "0", damaged, ""},
		{"a gap in a hash", hashOf("4", "T", "5", "2"), "GO.MTHROTTLE 2 k k" + limitA + "1" + limitB + "1", foreign, ""},
	})
}

// An expiry covers all cells of its key, whichever of them a call uses.
func TestMThrottle_expiry(t *testing.T) {
	h := loaded(t)
	call(h, "GO.MTHROTTLE 3 k k k 9 10 1 1 99 100 3600 50 999 1000 86400 1")
	latest := h.Now()/1000 + 50*36_000 // the second cell's end, ms
	for range 200 {
		h.Advance(50_000)
		got := call(h, "GO.THROTTLE k 9 10 1")
		if got.Ints() == nil {
			t.Fatal(got)
		}
		if at := h.ExpireOf("k"); at < latest || at > latest+900_000 {
			t.Fatalf("the key expires at %d, its second cell is in use until %d", at, latest)
		}
	}
	// All three cells are void now. A refund to the first one removes the key.
	h.Expire("k", latest+100_000)
	h.Advance(50 * 36 * second)
	wantReply(t, h, "GO.THROTTLE k 9 10 1 0", "[0 10 10 -1 0]")
	if got := len(h.HashOf("k")); got != 6 {
		t.Errorf("%d fields", got)
	}
	wantReply(t, h, "GO.THROTTLE k 9 10 1 -1", "[0 10 10 -1 0]")
	if h.TypeOf("k") != "none" {
		t.Errorf("left %q", h.Dump())
	}
}

// words makes a GO.MTHROTTLE of keys, each with the same limit.
func words(numkeys string, limit string, keys ...string) []string {
	w := append([]string{"GO.MTHROTTLE", numkeys}, keys...)
	for range keys {
		w = append(w, strings.Fields(limit)...)
	}
	return w
}

func TestMThrottle_numkeys(t *testing.T) {
	const notInteger, outside = "ERR numkeys is not an integer", "ERR numkeys must be between 1 and 128"
	const arity = "ERR wrong number of arguments for 'go.mthrottle' command"
	h := loaded(t)
	for _, row := range []struct{ numkeys, want string }{
		{"+2", notInteger}, {"02", notInteger}, {"2 ", notInteger}, {" 2", notInteger}, {"", notInteger}, {"x", notInteger}, {"2x", notInteger},
		{"2.0", notInteger}, {"-", notInteger}, {"0x2", notInteger}, {"2\x00", notInteger},
		{"0", outside}, {"-0", outside}, {"-1", outside}, {"129", outside}, {"4294967298", outside}, {"9223372036854775807", outside},
		{"9223372036854775808", outside}, {"-9223372036854775809", outside}, {"99999999999999999999999999999999999999", outside},
		{"3", arity}, {"4", arity}, {"128", arity},
	} {
		before, toWrite := h.Opened()
		w := words(row.numkeys, limitA+"1", "k", "l")
		if got := h.Call(w...).String(); got != row.want {
			t.Errorf("%q: reply %s, want %s", row.numkeys, got, row.want)
		}
		wantNothing(t, h, row.numkeys, nil)
		if all, w := h.Opened(); all != before || w != toWrite {
			t.Errorf("%q: keys were opened", row.numkeys)
		}
	}
	if got := h.Call(words("2", limitA+"1", "k", "l")...).String(); got != "[0 -1 -1 [0 16 15 -1 2] [0 16 15 -1 2]]" {
		t.Error(got)
	}
	// numkeys is one less than the number of keys. The words after the first limit are then no options.
	if got := h.Call(words("1", limitA+"1", "k", "l")...).String(); got != "ERR unknown option" {
		t.Error(got)
	}
	for _, line := range []string{"GO.MTHROTTLE", "GO.MTHROTTLE 1", "GO.MTHROTTLE 1 k 15 30 60"} {
		wantReply(t, h, line, arity)
	}
	h.LeaveArity()
	for _, line := range []string{"GO.MTHROTTLE", "GO.MTHROTTLE 1", "GO.MTHROTTLE 1 k 15 30 60"} {
		wantReply(t, h, line, arity)
	}
}

// The keys that the module tells the server are the keys that it opens. Otherwise the server would
// check the wrong keys for ACL and cluster. The fake host reports a fault if the module opens any
// other key.
func TestMThrottle_keys(t *testing.T) {
	h := loaded(t)
	for _, keys := range [][]string{{"a"}, {"a", "b"}, {"a", "a", "b"}, {"", "\x00"}, {"MS", "1"}} {
		if got := h.Keys(words(fmt.Sprint(len(keys)), limitA+"1", keys...)...); !slices.Equal(got, keys) {
			t.Errorf("keys %q, want %q", got, keys)
		}
	}
	for _, numkeys := range []string{"0", "-1", "02", "+2", "x", "999", "9223372036854775808"} {
		if got := h.Keys(words(numkeys, limitA+"1", "a", "b")...); got != nil {
			t.Errorf("numkeys %s: keys %q", numkeys, got)
		}
	}
	if got := h.Keys("GO.WINDOW", "k", "1", "1"); !slices.Equal(got, []string{"k"}) {
		t.Errorf("keys %q", got)
	}
	for _, line := range []string{"GO.MTHROTTLE 2 a a", "GO.MTHROTTLE 3 a b a"} {
		all, _ := h.Opened()
		n := len(strings.Fields(line)) - 2
		h.Call(append(strings.Fields(line), strings.Fields(strings.Repeat(limitA+"1", n))...)...)
		if now, _ := h.Opened(); now-all != n-1 {
			t.Errorf("%s: opened %d keys", line, now-all)
		}
	}
}

// A call may have 128 limits, on one key, on 128 keys or on any number between. The fake host
// checks each call for leaks.
func TestMThrottle_128(t *testing.T) {
	for distinct := range 128 {
		if distinct > 3 && distinct%31 != 0 && distinct != 127 {
			continue
		}
		h := loaded(t)
		var keys []string
		for i := range 128 {
			keys = append(keys, fmt.Sprint("key", i%(distinct+1)))
		}
		for i := range 17 {
			r := copyOf(h, keys...)
			got := h.Call(words("128", limitA+"1", keys...)...)
			want := fmt.Sprintf(" [0 16 %d -1 %d]", 15-i, 2*i+2)
			if i == 16 {
				if text := got.String(); !strings.HasPrefix(text, "[1 2 0 [1 16 0 2 32]") || h.Effects() != nil {
					t.Errorf("%d keys: %s", distinct+1, text)
				}
				break
			}
			if text := got.String(); text != "[0 -1 -1"+strings.Repeat(want, 128)+"]" {
				t.Errorf("%d keys, call %d: %s", distinct+1, i, text)
			}
			r.follow(t, h, "128", keys...)
		}
		if n := len(h.Dump()); n != distinct+1 {
			t.Errorf("%d keys, want %d", n, distinct+1)
		}
		r := copyOf(h, keys...)
		got := h.Call(words("128", limitA+"-16", keys...)...)
		if len(h.Dump()) != 0 {
			t.Errorf("left %q after %v", h.Dump(), got)
		}
		r.follow(t, h, "refund", keys...)
	}
}

// A call with 129 limits is an error, whether they are on one key or on 129.
func TestMThrottle_129(t *testing.T) {
	var same, other []string
	for i := range 129 {
		same, other = append(same, "k"), append(other, fmt.Sprint("key", i))
	}
	h := loaded(t)
	for _, keys := range [][]string{same, other} {
		before, _ := h.Opened()
		if got := h.Call(words("129", limitA+"1", keys...)...).String(); got != "ERR numkeys must be between 1 and 128" {
			t.Error(got)
		}
		wantNothing(t, h, "129", nil)
		if now, _ := h.Opened(); now != before {
			t.Errorf("%d keys were opened", now-before)
		}
	}
}

// The keys may hold more cells than the call uses. The module then takes memory from the server.
func TestMThrottle_furtherCells(t *testing.T) {
	h := loaded(t)
	var keys []string
	for i := range 20 {
		keys = append(keys, fmt.Sprint("key", i))
		for range i {
			keys = append(keys, keys[len(keys)-1])
		}
	}
	keys = keys[:128]
	for range 3 {
		h.Call(words("128", limitA+"1", keys...)...)
	}
	distinct := slices.Compact(slices.Clone(keys))
	for i := range 5 {
		r := copyOf(h, distinct...)
		got := h.Call(words(fmt.Sprint(len(distinct)), limitA+"1", distinct...)...)
		if text := got.String(); !strings.HasPrefix(text, fmt.Sprintf("[0 -1 -1 [0 16 %d -1 ", 12-i)) {
			t.Error(text)
		}
		r.follow(t, h, "further", distinct...)
	}
	h.PutField("key15", "480", "5") // the TAT of a 121st cell, without its period
	before := h.Dump()
	if got := h.Call(words(fmt.Sprint(len(distinct)), limitA+"1", distinct...)...).String(); got != foreign {
		t.Error(got)
	}
	wantNothing(t, h, "foreign", before)
}

// A listener that hears the event of one key may make a call on any key of the first call. Both
// calls take full effect.
func TestMThrottle_reentrance(t *testing.T) {
	for _, inner := range []string{
		"GO.MTHROTTLE 3 m l k" + strings.Repeat(limitA+"1", 3), "GO.THROTTLE l 15 30 60 -16", "GO.THROTTLE m 15 30 60 99",
		"GO.MTHROTTLE 3 k k k" + strings.Repeat(limitA+"1", 3), "GO.WINDOW w 10 60", "GO.LEASE s 10 60 a", "GO.QUOTA q 10 60",
		"GO.MTHROTTLE 2 l l" + limitA + "-1" + limitA + "x", "GO.WINDOW k 10 60",
	} {
		h := loaded(t)
		heard := 0
		h.Listen(func(e fakehost.Event) {
			heard++
			h.Call(strings.Fields(inner)...)
		})
		all := []string{"k", "l", "m", "w", "s", "q"}
		r := copyOf(h, all...)
		got := h.Call(strings.Fields("GO.MTHROTTLE 4 k l k m" + strings.Repeat(limitA+"1", 4))...).String()
		if want := "[0 -1 -1" + strings.Repeat(" [0 16 15 -1 2]", 4) + "]"; got != want {
			t.Errorf("%s: reply %s", inner, got)
		}
		if heard != 6 {
			t.Errorf("%s: heard %d events", inner, heard)
		}
		for _, w := range h.EffectWords() {
			if _, err := r.apply(w); err != nil {
				t.Errorf("%s: %v", inner, err)
			}
		}
		if got, want := fmt.Sprint(flat(r)), fmt.Sprint(flat(copyOf(h, all...))); got != want {
			t.Errorf("%s: the replica holds %v, the server %v", inner, got, want)
		}
	}
}

// A key of redis-cell's is the first cell. The second cell of the key is a new limiter.
func TestMThrottle_adoptedRepeats(t *testing.T) {
	for _, row := range []effectRow{
		{name: "the second cell is its own", line: "GO.MTHROTTLE 2 k k 15 30 60 1 15 30 60 1",
			reply: "[0 -1 -1 [0 16 10 -1 12] [0 16 15 -1 2]]"},
		{name: "a peek at the first cell does not forget what it holds", line: "GO.MTHROTTLE 2 k k 15 30 60 0 15 30 60 1",
			reply: "[0 -1 -1 [0 16 11 -1 10] [0 16 15 -1 2]]"},
	} {
		h := loaded(t)
		h.PutString("k", tat(h, 10_000_000_000))
		r := copyOf(h, "k")
		wantReply(t, h, row.line, row.reply)
		r.follow(t, h, row.name, "k")
		if got := call(h, "GO.THROTTLE_RO k 15 30 60 0").Ints()[4]; got < 10 {
			t.Errorf("%s: in use for %d s more, was for 10", row.name, got)
		}
	}
}
