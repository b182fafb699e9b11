package funnel_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"gothrottle/funnel"
)

// countedTop is a Top and the exact counts of what it was told. The names of all keys must
// be different after the cut.
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
	if !slices.IsSortedFunc(listed, topOrder) {
		t.Fatalf("out of order: %v", listed)
	}
}

func topOrder(a, b funnel.TopKey) int {
	return cmp.Or(cmp.Compare(b.Denied, a.Denied), cmp.Compare(a.Error, b.Error), cmp.Compare(a.Name, b.Name))
}

// zipf returns keys 0 to keys-1, key k with a probability in proportion to (k+1)^-skew.
func zipf(r *rand.Rand, keys int, skew float64) func() int {
	below := make([]float64, keys)
	sum := 0.0
	for k := range below {
		sum += math.Pow(float64(k+1), -skew)
		below[k] = sum
	}
	return func() int { return sort.SearchFloat64s(below, r.Float64()*sum) }
}

// topStreams are streams of keys. Each takes the size of the table and the number of denials,
// and returns a function that is called with 0, 1, 2 and so on.
var topStreams = map[string]func(r *rand.Rand, size, denials int) func(i int) int{
	"all distinct": func(*rand.Rand, int, int) func(int) int {
		return func(i int) int { return i }
	},
	"one key more than fits, in turn": func(_ *rand.Rand, size, _ int) func(int) int {
		return func(i int) int { return i % (size + 1) }
	},
	"twice as many keys as fit, there and back": func(_ *rand.Rand, size, _ int) func(int) int {
		return func(i int) int { return max(i%(4*size), 4*size-1-i%(4*size)) }
	},
	"heavy key last": func(_ *rand.Rand, size, denials int) func(int) int {
		return func(i int) int { return min(i, max(denials-denials/size-1, 0)) }
	},
	"heavy key first, then distinct": func(_ *rand.Rand, size, denials int) func(int) int {
		return func(i int) int { return max(0, i-denials/size-1) }
	},
	"one key barely above its share": func(_ *rand.Rand, size, _ int) func(int) int {
		return func(i int) int {
			if i%size == 0 {
				return 0
			}
			return i
		}
	},
	"phases, each with other heavy keys": func(r *rand.Rand, size, denials int) func(int) int {
		return func(i int) int {
			phase := i / (denials/7 + 1)
			if r.IntN(3) == 0 {
				return 1_000_000 + i
			}
			return phase*1000 + r.IntN(size/2+1)
		}
	},
	"key k is denied k times, in a row": func(*rand.Rand, int, int) func(int) int {
		return func(i int) int { return int(math.Sqrt(2 * float64(i))) }
	},
	"one counter far below the others": func(_ *rand.Rand, size, denials int) func(int) int {
		return func(i int) int {
			if i < denials/2 && size > 1 {
				return i % (size - 1)
			}
			return i
		}
	},
	"hits make the least counts stale": func(r *rand.Rand, size, _ int) func(int) int {
		return func(i int) int {
			if i%50 < 40 {
				return r.IntN(size + size/2 + 1)
			}
			return 1_000_000 + i
		}
	},
	"bursts of one key": func(r *rand.Rand, size, _ int) func(int) int {
		key := 0
		return func(int) int {
			if r.IntN(1+r.IntN(200)) == 0 {
				key = r.IntN(4 * size)
			}
			return key
		}
	},
}

func init() {
	for _, skew := range []float64{0, 0.5, 0.8, 1, 1.2, 1.5, 2, 3} {
		topStreams[fmt.Sprint("Zipf with skew ", skew)] = func(r *rand.Rand, _, _ int) func(int) int {
			next := zipf(r, 5000, skew)
			return func(int) int { return next() }
		}
	}
}

func TestTop_againstExactCounts(t *testing.T) {
	const denials = 6000
	for name, stream := range topStreams {
		for _, size := range []int{1, 2, 3, 10, 100, 1000} {
			t.Run(fmt.Sprint(name, "/size=", size), func(t *testing.T) {
				eachSeed(t, 1, func(t *testing.T, r *rand.Rand) {
					top := newCountedTop(size)
					next := stream(r, size, denials)
					for i := range denials {
						k := next(i)
						top.Count(k%3, fmt.Sprint("key:", k))
						if i%(denials/10) == 0 {
							top.check(t)
						}
					}
					top.check(t)
				})
			})
		}
	}
}

// Small tables are checked after every few calls. Some are reset.
func TestTop_smallTables(t *testing.T) {
	eachSeed(t, 200, func(t *testing.T, r *rand.Rand) {
		top := newCountedTop(1 + r.IntN(8))
		next := zipf(r, 1+r.IntN(40), 2*r.Float64())
		for range 300 {
			for range logUniform[int64](r, 40) {
				top.Count(0, fmt.Sprint(next()))
			}
			top.check(t)
			if r.IntN(200) == 0 {
				top.Reset()
			}
		}
	})
}

// FuzzTop reads a stream from bytes: each byte is a database (the two low bits) and a key. The
// byte 255 resets the table.
func FuzzTop(f *testing.F) {
	f.Add(uint8(2), "user:", []byte("abcabcabcaaaabdefg"))
	f.Add(uint8(0), "", []byte{0, 1, 2, 3, 4, 255, 4, 3, 2, 1, 0, 0, 0})
	f.Add(uint8(15), "\x00\xff", []byte(strings.Repeat("the quick brown fox jumps over the lazy dog", 20)))
	f.Fuzz(func(t *testing.T, size uint8, prefix string, stream []byte) {
		top := newCountedTop(1 + int(size%32))
		prefix = prefix[:min(len(prefix), 100)]
		for i, b := range stream {
			if b == 255 {
				top.Reset()
			} else {
				top.Count(int(b&3), prefix+string(rune(b>>2)))
			}
			if i < 32 || i%32 == 0 {
				top.check(t)
			}
		}
		top.check(t)
	})
}
