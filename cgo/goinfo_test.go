package cgo_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"gothrottle/cgo/fakehost"
)

const (
	foreignZset = "ERR the sorted set at this key is not a rate limiter"
	foreignText = "ERR the string at this key is not a rate limiter"
	internal    = "ERR internal error, see the server's log"
)

// A transcript cannot rename commands. GO.INFO reads strings by GET, so the server keeps the encoding even of strings that are
// ours. An administrator may have renamed GET: then the strings are read where they are.
func TestGoInfo_strings(t *testing.T) {
	for _, renamed := range []bool{false, true} {
		h := loaded(t)
		h.PutString("cell", tat(h, 7_000_000_001))
		h.PutString("quota", "3@"+tat(h, 60_000_000_000))
		if renamed {
			h.RenameAway("GET")
		}
		wantReply(t, h, "GO.INFO cell", "[kind throttle expires_in_ms -1 cells [[in_use (nil) count (nil) period_ms (nil) empty_in_ms 7001 locked_for_ms 0]]]")
		wantReply(t, h, "GO.INFO quota", "[kind quota expires_in_ms -1 used 3 ends_in_ms 60000]")
		if !renamed && (h.Encoding("cell") != "int" || h.Encoding("quota") != "embstr") {
			t.Errorf("encodings %s, %s", h.Encoding("cell"), h.Encoding("quota"))
		}
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

// More values than a transcript can have: random ones, and random changes of values that are ours. GO.INFO opens them for
// reading only, never changes them, and never panics.
func TestGoInfo_randomValues(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	h := loaded(t)
	seen := map[string]int{}
	for range rounds(15_000) {
		h.Delete("k")
		putRandom(r, h)
		before, encoding := h.Dump(), h.Encoding("k")
		_, toWrite := h.Opened()
		got := h.Call("GO.INFO", "k")
		if _, now := h.Opened(); now != toWrite {
			t.Fatalf("seed %d: GO.INFO opened %q for writing", seed, before)
		}
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
