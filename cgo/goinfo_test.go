package cgo_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
)

const (
	foreignZset  = "ERR the sorted set at this key is not a rate limiter"
	foreignText  = "ERR the string at this key is not a rate limiter"
	internal     = "ERR internal error, see the server's log"
	infoOneCell  = "[kind throttle expires_in_ms %d cells [[in_use %d count %d period_ms %d empty_in_ms %d locked_for_ms %d]]]"
	infoAdopted  = "[kind throttle expires_in_ms %d cells [[in_use (nil) count (nil) period_ms (nil) empty_in_ms %d locked_for_ms 0]]]"
	infoOfWindow = "[kind window expires_in_ms %d entries %d recorded %d newest_age_ms %d oldest_age_ms %d]"
	infoOfQuota  = "[kind quota expires_in_ms %d used %d ends_in_ms %d]"
)

// wantInfo checks what GO.INFO tells of a key. The call must change nothing: no effect, no event, no
// other encoding of a string. The key must be opened for reading only.
func wantInfo(t *testing.T, h *fakehost.Host, key, want string) {
	t.Helper()
	before, encoding := h.Dump(), h.Encoding(key)
	_, toWrite := h.Opened()
	if got := h.Call("GO.INFO", key).String(); got != want {
		t.Errorf("GO.INFO %s: %s, want %s; %q", key, got, want, before)
	}
	wantNothing(t, h, "GO.INFO "+key, before)
	if _, now := h.Opened(); now != toWrite {
		t.Errorf("GO.INFO opened %s for writing", key)
	}
	if got := h.Encoding(key); got != encoding {
		t.Errorf("GO.INFO turned %s from %s into %s", key, encoding, got)
	}
}

func TestGoInfo(t *testing.T) {
	h := loaded(t)
	before := number(t, h, "info_other")
	wantInfo(t, h, "k", "(nil)")
	for _, row := range []struct{ call, want string }{
		{"GO.THROTTLE k 15 30 60 3", fmt.Sprintf(infoOneCell, 14_000, 3, 1, 2000, 6000, 0)},
		{"GO.WINDOW k 9 60 3", fmt.Sprintf(infoOfWindow, 75_000, 1, 3, 0, 0)},
		{"GO.QUOTA k 9 60 3", fmt.Sprintf(infoOfQuota, 75_000, 3, 60_000)},
		{"GO.LEASE k 9 60 a", "[kind lease expires_in_ms 75000 held 1 holders [a 60000]]"},
		{"GO.LEASE k 9 60 \x00\r\n\xff", "[kind lease expires_in_ms 75000 held 1 holders [\x00\r\n\xff 60000]]"},
	} {
		h.Delete("k")
		h.Call(strings.Split(row.call, " ")...)
		wantInfo(t, h, "k", row.want)
		h.Expire("k", fakehost.NoExpiry)
		_, rest, _ := strings.Cut(row.want, "expires_in_ms ")
		_, rest, _ = strings.Cut(rest, " ")
		if got := h.Call("GO.INFO", "k").String(); !strings.HasSuffix(got, "expires_in_ms -1 "+rest) {
			t.Errorf("%s, without an expiry: %s", row.call, got)
		}
	}
	if got := number(t, h, "info_other") - before; got != 11 {
		t.Errorf("INFO counts %d calls", got)
	}
}

// An entry of a server whose clock is ahead has the age 0.
func TestGoInfo_future(t *testing.T) {
	h := loaded(t)
	zset(scored(5*second, "\x013"), scored(-5*second, "\x012"))(h)
	wantInfo(t, h, "k", fmt.Sprintf(infoOfWindow, -1, 2, 2, 0, 5000))
}

// A lockout has a field of its own, of whichever cell.
func TestGoInfo_lockouts(t *testing.T) {
	for locked := range 3 {
		h := loaded(t)
		h.PutHash("k")
		var want []string
		for i := range 3 {
			h.PutField("k", strconv.Itoa(4*i), tat(h, 1_000_000_000))
			h.PutField("k", strconv.Itoa(4*i+1), "2")
			left := 0
			if i == locked {
				h.PutField("k", strconv.Itoa(128+i), tat(h, 5_000_000_001))
				left = 5001
			}
			want = append(want, fmt.Sprintf("[in_use 1 count 1 period_ms 2000 empty_in_ms 1000 locked_for_ms %d]", left))
		}
		wantInfo(t, h, "k", "[kind throttle expires_in_ms -1 cells ["+strings.Join(want, " ")+"]]")
	}
}

// What is not ours, or damaged, is an error and stays as it is.
func TestGoInfo_foreign(t *testing.T) {
	text := func(s string) func(*fakehost.Host) { return func(h *fakehost.Host) { h.PutString("k", s) } }
	for _, row := range []struct {
		put  func(*fakehost.Host)
		want string
	}{
		{func(h *fakehost.Host) { h.PutOther("k", "list") }, wrongType},
		{func(h *fakehost.Host) { h.PutOther("k", "set") }, wrongType},
		{hashOf("name", "bob"), foreign},
		{hashOf("0", "T"), foreign},
		{hashOf("4", "T", "5", "1"), foreign},
		{hashOf("0", "T", "1", "1", "8", "T", "9", "1"), foreign},
		{hashOf("0", "T", "1", "1", "name", "bob"), foreign},
		{hashOf("0", "T", "1", "1", "129", "T"), foreign},
		{hashOf("128", "T"), foreign},
		{hashOf("0", "T", "1", "0"), damaged},
		{hashOf("0", "x", "1", "1"), damaged},
		{hashOf("0", "T", "1", "1", "128", "x"), damaged},
		{hashOf("0", "T", "1", "1", "128", "5"), damaged},
		{hashOf("0", "T", "1", "1", "2", "7", "3", "7"), damaged},
		{leaderboard, foreignZset},
		{zset(scored(0, "")), foreignZset},
		{zset(scored(0, "\x01")), foreignZset},
		{zset(scored(0, "\x0101")), foreignZset},
		{zset(scored(0.5, "\x011")), foreignZset},
		{zset(scored(math.Inf(1), "\x011")), foreignZset},
		{zset(scored(math.Inf(-1), "\x011")), foreignZset},
		{zset(scored(1e16, "\x011")), foreignZset},
		{zset(scored(1e16, "\x02a")), foreignZset},
		{zset(scored(0, "\x031")), foreignZset},
		{zset(scored(0, "\x011"), scored(1, "\x02a")), foreignZset},
		{zset(scored(1, "\x011"), scored(0, "\x02a")), foreignZset},
		{zset(scored(1, "\x02a"), scored(-1e15, "bob"), scored(2, "\x02b")), foreignZset},
		{zset(scored(1, "\x02a"), scored(-1e16, "bob"), scored(2, "\x02b")), foreignZset},
		{zset(scored(1, "\x02a"), scored(2, "bob"), scored(3, "\x02b")), foreignZset},
		{func(h *fakehost.Host) { // the foreign member is the oldest, behind the leases that are told
			liveLeases(h, 200)
			h.PutMember("k", 5, "bob")
		}, foreignZset},
		{zset(scored(1, "\x02"+strings.Repeat("x", 513))), foreignZset},
		{zset(scored(1, "\x014"), scored(0, "\x015")), damaged},
		{text(""), foreignText},
		{text("5"), foreignText},
		{text("hello"), foreignText},
		{text("999999999999999999"), foreignText},
		{text("0123456789012345678"), foreignText},
		{text("-123456789012345678"), foreignText},
		{text("9223372036854775808"), foreignText},
		{text("0@1800000000000000000"), foreignText},
		{text("1@1800000000000000001"), foreignText},
		{text(strings.Repeat("5", 36)), foreignText},
		{text(strings.Repeat("5", 1000)), foreignText},
	} {
		h := loaded(t)
		row.put(h)
		wantInfo(t, h, "k", row.want)
	}
}

// GO.INFO reads strings by GET, so the server keeps the encoding even of strings that are ours. An
// administrator may have renamed GET. Then the strings are read where they stand.
func TestGoInfo_strings(t *testing.T) {
	for _, renamed := range []bool{false, true} {
		h := loaded(t)
		h.PutString("cell", tat(h, 7_000_000_001))
		h.PutString("quota", "3@"+tat(h, 60_000_000_000))
		cell, quota := fmt.Sprintf(infoAdopted, -1, 7001), fmt.Sprintf(infoOfQuota, -1, 3, 60_000)
		if !renamed {
			wantInfo(t, h, "cell", cell)
			wantInfo(t, h, "quota", quota)
			if h.Encoding("cell") != "int" || h.Encoding("quota") != "embstr" {
				t.Errorf("encodings %s, %s", h.Encoding("cell"), h.Encoding("quota"))
			}
			continue
		}
		h.RenameAway("GET")
		wantReply(t, h, "GO.INFO cell", cell)
		wantReply(t, h, "GO.INFO quota", quota)
	}
}

// The cost of GO.INFO is bounded, whatever it meets. A cell costs at most 12 API calls to read and 26 to tell:
// 11 items, and for each name in them its string is made and freed. A holder costs at most 10.
func TestGoInfo_cost(t *testing.T) {
	const most = 60 + 32*(12+26) + 128*10
	for _, s := range append(hostiles,
		hostile{name: "32 cells", make: func(h *fakehost.Host, _ int) { cells(32)(h) }, size: 10},
		hostile{name: "100 lapsed and 10,000 live leases", make: func(h *fakehost.Host, size int) {
			h.FillZset("k", size, func(i int) member {
				return scored(-float64(h.Now()+1000-int64(i)*1100/int64(size)), fmt.Sprint("\x02", i))
			})
		}, size: 10_000},
	) {
		for _, key := range []string{"k", "key1"} {
			small, fewSteps := costOf(t, &s, "GO.INFO "+key, s.size/10)
			large, steps := costOf(t, &s, "GO.INFO "+key, s.size)
			if large > small+12 || steps > fewSteps+12 {
				t.Errorf("%s: %d API calls and %d steps, %d and %d in a state of a tenth of the size", s.name, large, steps, small, fewSteps)
			}
			if large > most || steps > 500 {
				t.Errorf("%s: %d API calls and %d steps", s.name, large, steps)
			}
		}
	}
}

// Go allocates no memory for GO.INFO.
func TestGoInfo_allocations(t *testing.T) {
	for _, line := range []string{"GO.THROTTLE k 9 7 1 3", "GO.WINDOW k 10 1", "GO.QUOTA k 10 1", "GO.LEASE k 9 60 a", "SET", "LIST", "GO.PEEK"} {
		h := loaded(t)
		switch line {
		case "SET":
			h.PutString("k", tat(h, 1))
		case "LIST":
			h.PutOther("k", "list")
		case "GO.PEEK":
			liveLeases(h, 1000)
		default:
			call(h, line)
		}
		p := h.Prepare("GO.INFO", "k")
		if allocs := testing.AllocsPerRun(100, p.Run); allocs != 0 {
			t.Errorf("%s: %v allocations per call", line, allocs)
		}
		p.Free()
	}
}

// Random values, and random changes of values that are ours, never change by GO.INFO and never make
// it panic.
func TestGoInfo_randomValues(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	h := loaded(t)
	seen := map[string]int{}
	for range rounds(15_000) {
		h.Delete("k")
		putRandom(r, h)
		before, encoding := h.Dump(), h.Encoding("k")
		got := h.Call("GO.INFO", "k")
		wantNothing(t, h, fmt.Sprintf("seed %d: GO.INFO", seed), before)
		if h.Encoding("k") != encoding || got.Err == internal || got.Err == "" && len(got.Array) == 0 {
			t.Fatalf("seed %d: GO.INFO on %q: %s, encoding %s, was %s", seed, before, got, h.Encoding("k"), encoding)
		}
		name := got.Err
		if name == "" {
			name = got.Array[1].String()
		}
		seen[name]++
	}
	for _, name := range []string{"throttle", "window", "quota", "lease", foreignZset, foreign, foreignText, damaged} {
		if seen[name] < rounds(30) {
			t.Errorf("seed %d: only %d times %s", seed, seen[name], name)
		}
	}
}

// putRandom puts a random value at k. Each value is near one of ours.
func putRandom(r *rand.Rand, h *fakehost.Host) {
	number := func() string {
		n := pick(r, 0, 1, 7, -1, 60, r.Int64N(1000), -r.Int64N(1e12), r.Int64(), math.MaxInt64, math.MinInt64, h.Now()*1000+r.Int64N(1e12))
		return pick(r, strconv.FormatInt(n, 10), strconv.FormatInt(n, 10), strconv.FormatInt(h.Now()*1000+r.Int64N(1e12), 10), "x", "")
	}
	switch r.IntN(3) {
	case 0:
		text := pick(r, number(), number()+"@"+number(), fmt.Sprintf("%d@%d", r.Int64N(1e16), h.Now()*1000+r.Int64N(1e9)*1000))
		h.PutString("k", mutated(r, text))
	case 1:
		h.PutHash("k")
		for i := range 1 + r.IntN(pick(r, 2, 3, 33)) {
			h.PutField("k", strconv.Itoa(4*i), pick(r, tat(h, r.Int64N(1e10)), tat(h, r.Int64N(1e10)), tat(h, 0), number()))
			h.PutField("k", strconv.Itoa(4*i+1), pick(r, "60", "1", "-7", number()))
			if r.IntN(3) == 0 {
				h.PutField("k", strconv.Itoa(4*i+2), pick(r, "0", "1", number()))
				h.PutField("k", strconv.Itoa(4*i+3), pick(r, "7", "7", number()))
			}
			if r.IntN(4) == 0 {
				h.PutField("k", strconv.Itoa(128+i), pick(r, tat(h, r.Int64N(1e10)), number()))
			}
		}
		if r.IntN(8) == 0 {
			h.PutField("k", mutated(r, number()), number())
		}
	default:
		h.PutZset("k")
		prefix := pick(r, "\x01", "\x02", "\x01", "\x02", "\x03", "")
		for range 1 + r.IntN(pick(r, 1, 5, 300)) {
			text := prefix + strconv.FormatUint(r.Uint64N(pick[uint64](r, 100, math.MaxUint64)), 36) + pick(r, "", "", ":2", ":7:3", ":zzzzzzzzzzzzz")
			score := pick(r, -float64(h.Now()+r.Int64N(1e9)-1e8), -float64(h.Now()), -float64(h.Now()))
			if r.IntN(50) == 0 {
				text, score = mutated(r, text), pick(r, score, r.NormFloat64()*1e16, math.Inf(1), math.Inf(-1))
			}
			h.PutMember("k", score, text)
		}
	}
	if r.IntN(2) == 0 {
		h.Expire("k", h.Now()/1000+r.Int64N(pick[int64](r, 1, 100_000, math.MaxInt64-h.Now())))
	}
}

// mutated changes some bytes of a text.
func mutated(r *rand.Rand, text string) string {
	b := []byte(text)
	for r.IntN(3) == 0 && len(b) > 0 {
		switch i := r.IntN(len(b)); r.IntN(3) {
		case 0:
			b[i] = byte(r.Uint32())
		case 1:
			b = append(b[:i], b[i+1:]...)
		default:
			b = append(b, b[i:]...)
		}
	}
	return string(b)
}
