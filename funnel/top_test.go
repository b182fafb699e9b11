package funnel_test

// GO.TOP lists 10 keys at most in a transcript. These tests count many keys, exactly too, and measure memory.

import (
	"cmp"
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

// countedTop is a Top and the exact counts of what it counted. The names of all keys must be different after the cut.
type countedTop struct {
	*funnel.Top
	size  int64
	exact map[string]int64 // all denials by name
	all   int64
}

func newCountedTop(size int) *countedTop {
	return &countedTop{Top: funnel.NewTop(size), size: int64(size), exact: map[string]int64{}}
}

func (c *countedTop) Count(database int, key string) {
	c.Top.Count(database, key)
	c.exact[topName(database, key)]++
	c.all++
}

func (c *countedTop) Reset() {
	c.Top.Reset()
	clear(c.exact)
	c.all = 0
}

func topName(database int, key string) string {
	name := fmt.Sprintf("%d:%s", database, key)
	return name[:min(len(name), funnel.MaxTopName)]
}

// check holds the whole listing to the exact counts.
func (c *countedTop) check(t testing.TB) {
	t.Helper()
	listed := c.Most(int(c.size))
	if want := min(int(c.size), len(c.exact)); len(listed) != want {
		t.Fatalf("%d keys, want %d", len(listed), want)
	}
	var sum int64
	seen := map[string]bool{}
	for _, k := range listed {
		exact := c.exact[k.Name]
		if k.Denied-k.Error > exact || exact > k.Denied || k.Error < 0 || k.Error >= k.Denied || seen[k.Name] {
			t.Fatalf("%+v, exactly %d, seen before: %v", k, exact, seen[k.Name])
		}
		if k.Error*c.size > c.all || k.Error > 0 && len(c.exact) <= int(c.size) {
			t.Fatalf("%+v after %d denials of %d keys, size %d", k, c.all, len(c.exact), c.size)
		}
		seen[k.Name] = true
		sum += k.Denied
	}
	if sum != c.all {
		t.Fatalf("the counts add up to %d, want %d", sum, c.all)
	}
	for name, exact := range c.exact {
		if exact*c.size > c.all && !seen[name] {
			t.Fatalf("%q with %d of %d denials is missing, size %d", name, exact, c.all, c.size)
		}
	}
	if first := min(1, len(listed)); !slices.Equal(c.Most(first), listed[:first]) {
		t.Fatalf("%v comes first, want %v", c.Most(first), listed)
	}
	if !slices.IsSortedFunc(listed, topOrder) {
		t.Fatalf("out of order: %v", listed)
	}
}

func topOrder(a, b funnel.TopKey) int {
	return cmp.Or(cmp.Compare(b.Denied, a.Denied), cmp.Compare(a.Error, b.Error), cmp.Compare(a.Name, b.Name))
}

// Four of five denials are of keys that are denied often, more than fit, and the others of new keys: so a least count is
// mostly stale when it is looked for. Small tables are checked after every few calls. Each table is reset once.
func FuzzTop(f *testing.F) {
	const denials = 20_000
	for _, size := range []uint16{1, 2, 10, 100, 1000} {
		f.Add(uint64(1), size)
	}
	f.Fuzz(func(t *testing.T, seed uint64, n uint16) {
		size := max(int(n)%1001, 1)
		top, r := newCountedTop(size), rand.New(rand.NewPCG(seed, 0))
		for i := range denials {
			if i == denials/5 {
				top.Reset()
			}
			k := 1_000_000 + i
			if i%50 < 40 {
				k = r.IntN(size + size/2 + 1)
			}
			top.Count(k%3, fmt.Sprint("key:", k))
			if i%(7*size) == 0 {
				top.check(t)
			}
		}
		top.check(t)
	})
}

// Each key is counted a different number of times and must have a counter of its own.
func TestTop_names(t *testing.T) {
	long := strings.Repeat("x", funnel.MaxTopName)
	keys := []struct {
		database  int
		key, name string
	}{
		{0, "", "0:"},
		{0, "a", "0:a"},
		{1, "a", "1:a"},
		{math.MaxInt32, "a", "2147483647:a"},
		{0, "\x00", "0:\x00"},
		{0, "\x00\x00", "0:\x00\x00"},
		{0, long[2:], "0:" + long[2:]}, // 128 bytes with the database
		{0, long[1:], "0:" + long[2:]},
		{0, long + "b", "0:" + long[2:]},
		{1, long + "b", "1:" + long[2:]},
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
