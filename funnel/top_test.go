package funnel_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"gothrottle/funnel"
)

func TestTop_listing(t *testing.T) {
	top := funnel.NewTop(3)
	lists := func(n int, want ...funnel.TopKey) {
		t.Helper()
		if got := top.Most(n); !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	lists(0)
	lists(10)
	for _, key := range strings.Fields("b c b c a c a") {
		top.Count(0, key)
	}
	// Equal counts and errors go by name.
	lists(10, funnel.TopKey{"0:c", 3, 0}, funnel.TopKey{"0:a", 2, 0}, funnel.TopKey{"0:b", 2, 0})
	lists(2, funnel.TopKey{"0:c", 3, 0}, funnel.TopKey{"0:a", 2, 0})
	lists(0)

	// A new key takes over one of the two least counts. Of equal counts the smaller error is first.
	top.Count(12, "0")
	got := top.Most(3)
	if got[0] != (funnel.TopKey{"0:c", 3, 0}) || got[1] != (funnel.TopKey{"12:0", 3, 2}) || got[2].Denied != 2 {
		t.Error(got)
	}

	top.Reset()
	lists(3)
	for _, key := range strings.Fields("c d e e") {
		top.Count(0, key)
	}
	lists(3, funnel.TopKey{"0:e", 2, 0}, funnel.TopKey{"0:c", 1, 0}, funnel.TopKey{"0:d", 1, 0})
}

// Each key is counted a different number of times and must have a counter of its own.
func TestTop_names(t *testing.T) {
	long := strings.Repeat("x", funnel.MaxTopName)
	keys := []struct {
		database  int
		key, name string
	}{
		{0, "", "0:"},
		{1, "", "1:"},
		{0, "1:", "0:1:"},
		{0, "a", "0:a"},
		{1, "a", "1:a"},
		{10, "a", "10:a"},
		{math.MaxInt32, "a", "2147483647:a"},
		{0, "\x00", "0:\x00"},
		{0, "\x00\x00", "0:\x00\x00"},
		{0, "\xff\x00\r\n\"", "0:\xff\x00\r\n\""},
		{0, "ключ", "0:ключ"},
		{0, long[2:], "0:" + long[2:]}, // 128 bytes with the database
		{0, long[1:], "0:" + long[2:]},
		{0, long, "0:" + long[2:]},
		{0, long + "a", "0:" + long[2:]},
		{0, long + "b", "0:" + long[2:]},
		{1, long + "b", "1:" + long[2:]},
		{0, strings.Repeat(long, 4096) + "a", "0:" + long[2:]},
		{0, strings.Repeat(long, 4096) + "b", "0:" + long[2:]},
		{0, long[:125] + "é", "0:" + long[:125] + "\xc3"}, // the cut is by bytes
	}
	top := funnel.NewTop(len(keys) + 1)
	var want []funnel.TopKey
	for i, k := range keys {
		for range i + 1 {
			top.Count(k.database, k.key)
		}
		want = append([]funnel.TopKey{{k.name, int64(i + 1), 0}}, want...)
	}
	got := top.Most(len(keys) + 1)
	if !slices.Equal(got, want) {
		t.Errorf("%+q\nwant %+q", fmt.Sprint(got), fmt.Sprint(want))
	}
}

// A counter that is taken over has the name of its new key only.
func TestTop_shorterName(t *testing.T) {
	top := funnel.NewTop(1)
	top.Count(123, strings.Repeat("long", 100))
	top.Count(0, "")
	if got := top.Most(1); got[0] != (funnel.TopKey{"0:", 2, 1}) {
		t.Error(got)
	}
}

// After a reset, counts are low again: nothing may be left of the least count before.
func TestTop_resetAfterHighCounts(t *testing.T) {
	top := funnel.NewTop(2)
	count := func(key string, times int) {
		for range times {
			top.Count(0, key)
		}
	}
	count("a", 1000)
	count("b", 1000)
	count("c", 1) // the search for the least count finds 1000
	top.Reset()
	count("a", 900)
	count("b", 600)
	count("c", 1)
	want := []funnel.TopKey{{"0:a", 900, 0}, {"0:c", 601, 600}}
	if got := top.Most(2); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// The memory of a key belongs to the server, which writes to it after the call.
func TestTop_keepsNoReference(t *testing.T) {
	top := funnel.NewTop(1)
	memory := []byte("key")
	top.Count(0, unsafe.String(&memory[0], len(memory)))
	memory[0] = 'X'
	listed := top.Most(1)
	top.Count(0, "other")
	if listed[0] != (funnel.TopKey{"0:key", 1, 0}) {
		t.Error(listed)
	}
}

func TestTop_allocatesNothing(t *testing.T) {
	keys := topKeys(5000)
	for _, size := range []int{1, 100, 1000} {
		top := funnel.NewTop(size)
		i := 0
		n := testing.AllocsPerRun(len(keys)-1, func() {
			top.Count(i, keys[i])
			top.Count(i, keys[i])
			i++
		})
		top.Reset()
		if n != 0 {
			t.Errorf("size %d: %v allocations", size, n)
		}
	}
}

func TestTop_memory(t *testing.T) {
	for _, size := range []int{100, 1000, 3000, funnel.MaxTopSize} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		top := funnel.NewTop(size)
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(top)
		bytes := after.TotalAlloc - before.TotalAlloc
		t.Logf("size %d: %d bytes, %d per key", size, bytes, bytes/uint64(size))
		if bytes > 185*uint64(size) {
			t.Errorf("size %d: %d bytes, want at most 185 per key", size, bytes)
		}
	}
}

func topKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("user:%08d:limit", i)
	}
	return keys
}

// BenchmarkTop counts denials in a full table. The keys have 19 bytes.
func BenchmarkTop(b *testing.B) {
	keys := topKeys(1 << 18)
	for _, size := range []int{100, 1000, 10_000} {
		r := rand.New(rand.NewPCG(1, 2))
		next := zipf(r, len(keys), 1)
		hits, mixed := make([]string, 1<<18), make([]string, 1<<18)
		for i := range hits {
			hits[i], mixed[i] = keys[r.IntN(size)], keys[next()]
		}
		for _, c := range []struct {
			name string
			keys []string
		}{
			{"hit/one-key", keys[:1]},
			{"hit/random", hits},
			{"miss/distinct", keys},
			{"miss/in-turn", keys[:size+1]},
			{"mixed/zipf", mixed},
		} {
			b.Run(fmt.Sprint(c.name, "/size=", size), func(b *testing.B) {
				top := funnel.NewTop(size)
				for _, key := range keys[:size] {
					top.Count(0, key)
				}
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					top.Count(0, c.keys[i])
					if i++; i == len(c.keys) {
						i = 0
					}
				}
			})
		}
	}
}
