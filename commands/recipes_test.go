package commands_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gothrottle/tests/corpus"
)

// A recipe is a limiter that people build themselves, as a small model: docs/migrating.md. It is asked for n units at a
// time in µs, and returns what is left then, or unknown.
type recipe func(now, n int64) (admitted bool, left int64)

const unknown = -1

// Times that are a multiple of prime never meet the end of a window.
const prime = 7 * time.Millisecond

// Random calls, against models: a command decides as the recipe that it replaces, and has the same left. The gaps are
// multiples of grain below most x grain, the quantities 1 to quantity. %d in a command is the quantity.
func TestRecipes_alike(t *testing.T) {
	slow := &springBucket{rate: 3, burst: 180}
	perMinute, minute := &counter{limit: 5, period: 60_000}, int64(0)
	perSecond := func(n float64) *redisRate { return &redisRate{rate: n, burst: n, period: 1} }
	for _, row := range []struct {
		take           recipe
		command        string
		grain          time.Duration
		most, quantity int64
	}{
		{(&zsetLog{limit: 5, period: 60_000}).take, "GO.WINDOW k 5 60 %d", time.Millisecond, 20_000, 2},
		{(&zsetLog{limit: 5, period: 60_000}).take, "GO.WINDOW k 5 60000 %d MS", time.Millisecond, 20_000, 2},
		{(&zsetLog{limit: 120, period: 60_000}).take, "GO.WINDOW k 120 60 %d", time.Millisecond, 1000, 4},
		{(&zsetLog{limit: 500, period: 60_000}).take, "GO.WINDOW k 500 60 %d EXACT", time.Millisecond, 200, 9},
		// Looked at whenever whole units have leaked.
		{newFunnel(15, 0.5, false).take, "GO.THROTTLE k 14 1 2 %d", 2 * time.Second, 4, 4},
		{newFunnel(15, 0.5, true).take, "GO.THROTTLE k 14 1 2 %d", 2 * time.Second, 4, 4},
		{newFunnel(15, 500, false).take, "GO.THROTTLE k 14 1 2 %d MS", 2 * time.Millisecond, 4, 4},
		// Requests above the capacity never fit. With a clock of seconds, calls are at whole seconds.
		{(&springBucket{rate: 10, burst: 20}).take, "GO.THROTTLE k 19 10 1 %d", 125 * time.Millisecond, 4, 5},
		{(&springBucket{rate: 10, burst: 20}).take, "GO.THROTTLE k 19 10 1 %d", time.Second, 4, 22},
		{(&springBucket{rate: 10, burst: 20, seconds: true}).take, "GO.THROTTLE k 19 10 1 %d", time.Second, 4, 22},
		// A rate below one per second: 3 per minute as 60 tokens of 180 a call.
		{func(now, n int64) (bool, int64) {
			admitted, left := slow.take(now, 60*n)
			return admitted, left / 60
		}, "GO.THROTTLE k 2 3 60 %d", 5 * time.Second, 9, 2},
		// At the timer's ticks. One that each tick fills is a fixed window that ends with the clock.
		{newTimer(10, 3, 1).take, "GO.THROTTLE k 9 3 1 %d", time.Second, 3, 7},
		{newTimer(10, 10, 1).take, "GO.QUOTA k 10 1 %d ALIGN 0", time.Millisecond, 300, 5},
		// A countdown decides as a counter does.
		{(&counter{limit: 5, period: 1000}).take, "GO.QUOTA k 5 1 %d", prime, 40, 1},
		{(&counter{limit: 5, period: 1000}).take, "GO.QUOTA k 5 1000 %d MS", prime, 40, 1},
		// A key per minute of the clock, with the minute in its name.
		{func(now, n int64) (bool, int64) {
			if now/60_000_000 != minute {
				minute, perMinute.value = now/60_000_000, 0
			}
			return perMinute.take(now, n)
		}, "GO.QUOTA k 5 60 %d ALIGN 0", time.Second, 12, 1},
		{(&increx{upper: 20, period: 1000}).take, "GO.QUOTA k 20 1 %d", prime, 40, 6},
		{(&increx{upper: 20, period: 1000}).take, "GO.QUOTA k 20 1000 %d MS", prime, 40, 21},
		{(&increx{upper: 20, period: 1000, saturate: true}).take, "GO.QUOTA k 20 1 %d UPTO", prime, 40, 9},
		// Intervals that are exact in binary.
		{perSecond(8).take, "GO.THROTTLE k 7 8 1 %d", 62_500 * time.Microsecond, 4, 4},
		{perSecond(8).takeAtMost, "GO.THROTTLE k 7 8 1 %d UPTO", 125 * time.Millisecond, 4, 5},
	} {
		random, counts, now := rand.New(rand.NewPCG(1, 2)), map[bool]int{}, int64(corpus.Epoch)
		h := corpus.NewMemory()
		h.Begin(now)
		for i := range 500 {
			n := 1 + random.Int64N(row.quantity)
			h.Clock(now)
			admitted, left := row.take(now, n)
			reply := integersOf(t, h, fmt.Sprintf(row.command, n))
			if admitted != (reply[0] == 0) || left != unknown && left != reply[2] {
				t.Fatalf("%s, call %d, quantity %d: the recipe says %v with %d left, ours %v", row.command, i, n, admitted, left, reply)
			}
			counts[admitted]++
			now += random.Int64N(row.most) * row.grain.Microseconds()
		}
		if min(counts[true], counts[false]) < 50 {
			t.Errorf("%s: the schedule tests little: %v", row.command, counts)
		}
	}
}

// Many calls, against a model of redis-cell: all five integers are the same; also a live limiter's when it is taken over
// halfway.
func TestRecipes_redisCell(t *testing.T) {
	for _, cell := range []*redisCell{
		{maxBurst: 15, count: 30, period: 60}, {count: 1, period: 5}, {maxBurst: 9, count: 10, period: 1},
	} {
		h, now := corpus.NewMemory(), int64(corpus.Epoch)
		h.Begin(now)
		for i := range int64(400) {
			n := i * 7 % 4
			line := fmt.Sprintf("CL.THROTTLE k %d %d %d %d", cell.maxBurst, cell.count, cell.period, n)
			h.Clock(now)
			if got, want := integersOf(t, h, line), cell.call(now, n); !slices.Equal(got, want) {
				t.Fatalf("call %d, %s: %v, redis-cell says %v", i, line, got, want)
			}
			if now += i * 131 % 977 * 1000; i == 200 {
				h.Call([]string{"DEL", "k"})
				h.Call([]string{"SET", "k", fmt.Sprint(cell.tat), "PXAT", fmt.Sprint(cell.expire)})
			}
		}
	}
}

// Figures of the model: what docs/migrating.md says of redis-cell's replies.
func TestRecipes_redisCellFaults(t *testing.T) {
	for _, row := range []struct {
		cell   redisCell
		calls  []int64 // quantities, all at once
		theirs []int64 // the last reply; nil: an error
	}{
		{redisCell{maxBurst: 1, count: 5000, period: 1}, []int64{2, 1}, []int64{1, 2, 0, 0, 0}},
		{redisCell{maxBurst: 99, count: 10_000_000, period: 1}, []int64{1}, []int64{0, 100, math.MaxInt64, -1, 0}},
		{redisCell{maxBurst: 9, count: 2_000_000_000, period: 1}, []int64{1}, nil},
		{redisCell{maxBurst: 9, count: 1, period: 1}, []int64{1, -2}, nil},
		{redisCell{maxBurst: 9, count: 10, period: 10, tat: corpus.Epoch*1000 + 3600e9, expire: 1 << 60}, []int64{1}, []int64{1, 10, 0, 3591, 3600}},
	} {
		var got []int64
		for _, n := range row.calls {
			got = row.cell.call(corpus.Epoch, n)
		}
		if !slices.Equal(got, row.theirs) {
			t.Errorf("%+v: redis-cell says %v, want %v", row.cell, got, row.theirs)
		}
	}
}

// Figures of models: what docs/migrating.md and tests/corpus/recipes.txt say of the recipes' own decisions. A schedule has
// a time, calls x quantity at it, and how many of them are admitted. The transcript has what ours does.
func TestRecipes_faults(t *testing.T) {
	spring := func() recipe { return (&springBucket{rate: 10, burst: 10, seconds: true}).take }
	rate := &redisRate{rate: 8, burst: 8, period: 1}
	for _, row := range []struct {
		what     string
		take     recipe
		schedule string
	}{
		{"less than a unit is not seen", newFunnel(2, 1, false).take, "0s 2x1=2 1.5s 1x1=1 2s 1x1=0 2.5s 1x1=1"},
		{"integers drop the fraction", newFunnel(2, 1, true).take, "0s 2x1=2 1.9s 2x1=1 3.8s 2x1=1"},
		{"a new second fills the bucket", spring(), "999ms 10x1=10 1s 10x1=10 1.999s 10x1=0"},
		{"nothing comes back in a second", spring(), "0s 10x1=10 100ms 1x1=0 999ms 9x1=0 1s 10x1=10"},
		{"two fillings in a ms", newTimer(10, 10, 1).take, "999ms 20x1=10 1s 20x1=10 1.5s 20x1=0"},
		{"two timers", newTimer(10, 1, 2).take, "0s 10x1=10 5s 20x1=10"},
		{"no timer", newTimer(10, 1, 0).take, "0s 10x1=10 1h 10x1=0"},
		{"a denied call counts", (&counter{limit: 10, period: 60_000}).take, "0s 1x4=1 0s 1x8=0 0s 3x2=0 60s 1x1=0 60.001s 10x1=10"},
		{"EXPIRE after each call", (&counter{limit: 2, period: 60_000, always: true}).take, "0s 1x1=1 50s 1x1=1 100s 1x1=0 150s 1x1=0"},
		{"no EXPIRE", (&counter{limit: 5, period: 60_000, value: 1}).take, "0s 4x1=4 24h 1x1=0 23976h 1x1=0"},
		{"INCREX at the last instant", (&increx{upper: 10, period: 60_000}).take, "0s 1x4=1 0s 1x8=0 0s 4x2=3 60s 1x1=0"},
		{"INCREX without ENX", (&increx{upper: 10, period: 60_000, notENX: true}).take, "0s 1x8=1 50s 1x2=1 100s 1x1=0"},
		{"LBOUND 0", (&increx{upper: 10, period: 60_000}).take, "0s 1x3=1 0s 1x-5=0 0s 10x1=7"},
		{"no LBOUND", (&increx{upper: 10, lower: -1 << 62, period: 60_000}).take, "0s 1x3=1 0s 1x-5=1 0s 12x1=12"},
		{"INCREX keeps a window without units", (&increx{upper: 10, period: 60_000}).take, "0s 1x3=1 0s 1x-3=1 20s 1x9=1 61s 1x9=1"},
		{"SATURATE forgets", (&increx{upper: 50, period: 60_000, saturate: true, value: 80, expire: 1 << 60}).take, "0s 1x1=1 0s 1x1=0 0s 1x-1=1"},
		{"a lowered limit", (&increx{upper: 50, period: 60_000, value: 80, expire: 1 << 60}).take, "0s 1x-10=0"},
		{"the expiry is cut to ms", (&redisCell{count: 5000, period: 1}).take, "900µs 1x1=1 1ms 1x1=1 1.1ms 1x1=0"},
		{"0.1 s as a double", (&redisRate{rate: 10, burst: 10, period: 1}).take, "0s 10x1=9"},
		{"a refund is dropped", rate.take, "0s 1x3=1 0s 1x-8=1 0s 8x1=5"},
		{"half a unit is taken", (&redisRate{rate: 8, burst: 8, period: 1}).takeAtMost, "0s 1x8=1 312.5ms 1x5=1 375ms 1x1=0"},
	} {
		words := strings.Fields(row.schedule)
		for i := 0; i < len(words); i += 2 {
			at, err := time.ParseDuration(words[i])
			var calls, quantity, want, got int64
			if _, scan := fmt.Sscanf(words[i+1], "%dx%d=%d", &calls, &quantity, &want); err != nil || scan != nil {
				t.Fatal(row.schedule, err, scan)
			}
			for range calls {
				if admitted, _ := row.take(corpus.Epoch+at.Microseconds(), quantity); admitted {
					got++
				}
			}
			if got != want {
				t.Errorf("%s: at %v %d are admitted, want %d", row.what, at, got, want)
			}
		}
	}
}

// Space: of a million calls a minute, GO.WINDOW keeps at most 121 entries in less than 4 KB. The recipe's member per call
// takes about 120 MB.
func TestRecipes_windowSpace(t *testing.T) {
	h, now := corpus.NewMemory(), int64(corpus.Epoch)
	h.Begin(now)
	units, most, bytes := int64(0), 0, 0
	for range 5000 { // two minutes at the full rate, 400 units every 24 ms
		h.Clock(now)
		units += 400 * (1 - integersOf(t, h, "GO.WINDOW k 1000000 60 400")[0])
		size := 0
		for _, m := range h.Get("k").Set {
			size += len(m.Text) + 8 // and its score
		}
		most, bytes = max(most, len(h.Get("k").Set)), max(bytes, size)
		now += 24_000
	}
	// A shared entry leaves up to half a second late.
	if most < 120 || most > 121 || bytes > 4096 || units < 1_990_000 || units > 2_000_000 {
		t.Errorf("up to %d entries, %d bytes; %d units admitted", most, bytes, units)
	}
}

func integersOf(t *testing.T, h *corpus.Memory, line string) (all []int64) {
	t.Helper()
	reply, _ := h.Call(strings.Fields(line))
	elements, ok := reply.([]any)
	if !ok {
		t.Fatalf("%s: %v", line, reply)
	}
	for _, element := range elements {
		all = append(all, element.(int64))
	}
	return all
}
