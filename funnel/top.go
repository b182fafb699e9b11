package funnel

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"math/bits"
	"slices"
	"strconv"
)

const (
	// MaxTopSize bounds the size of a Top.
	MaxTopSize = 10_000
	// MaxTopName bounds the name of a key in a Top, in bytes. A longer name is cut.
	MaxTopName = 128
)

// Top holds the keys that are denied most often, by the algorithm Space-Saving (Metwally, Agrawal and El Abbadi,
// "Efficient Computation of Frequent and Top-k Elements in Data Streams", ICDT 2005). The table has one counter per key
// and a fixed size in keys. If a new key finds the table full, the key takes over a counter with the least count. The
// count that the key takes over is its error.
//
// For every key in the table, Denied - Error <= all denials of the key <= Denied. No error is
// above all denials / size. Every key with more than (all denials / size) is in the table. Until
// more than size keys were denied, all counts are exact.
//
// A key is identified by a 64-bit hash of its database and its whole name. Each Top has a random
// seed for the hash. Two keys with the same hash count as one.
//
// A Top is not safe for concurrent use. [NewTop] allocates all memory: at most 185 bytes per key from a size of 100 on.
type Top struct {
	seed     maphash.Seed
	counters []topCounter // those in use; the capacity is the size
	names    []topName    // one for each counter
	chains   []topLink    // the hash table: the first counter of each chain

	// A radix heap (Ahuja, Mehlhorn, Orlin and Tarjan, "Faster Algorithms for the Shortest Path Problem", 1990) finds
	// the least count, because the least count never falls. A counter is in bucket b if its count differed from least
	// in bit b-1 and in no higher bit. Bucket 0 is for counts equal to least. Count leaves a counter in its bucket; the
	// counter is moved when the search meets it.
	buckets [64]topLink
	least   int64
}

// topCounter is the counter of one key. It is in one chain and in one bucket. The name is kept
// apart, so the search for the least count reads 32 bytes per counter.
type topCounter struct {
	hash     uint64
	count    int64
	error    int64
	inChain  topLink // the next counter in the chain
	inBucket topLink // the next counter in the bucket
}

// topName is the name of one key: the first size bytes of text.
type topName struct {
	size uint8
	text [MaxTopName]byte
}

// topLink leads to a counter: the counter's index + 1. 0 leads to none.
type topLink int32

// TopKey is one key in a listing.
type TopKey struct {
	Name   string // "database:key", cut at MaxTopName bytes
	Denied int64  // 1 or more
	Error  int64  // by how much Denied may be too high: 0 to Denied - 1
}

// NewTop returns an empty table for size keys, 1 to MaxTopSize.
func NewTop(size int) *Top {
	return &Top{
		seed:     maphash.MakeSeed(),
		counters: make([]topCounter, 0, size),
		names:    make([]topName, size),
		chains:   make([]topLink, 1<<bits.Len(uint(2*size-1))),
	}
}

// Count counts one denial of key in database. It allocates nothing and keeps no reference to key.
//
// A key in the table costs the same at every size. A new key costs the same on average, but one
// call can visit every counter. The average is bounded because a visit moves a counter to a lower
// bucket, of which there are 64, or to the bucket of a count that has grown since the last visit.
func (t *Top) Count(database int, key string) {
	// The factor is odd, so the same key has another hash in each database.
	hash := maphash.String(t.seed, key) ^ uint64(database)*0x9e3779b97f4a7c15
	for link := *t.chain(hash); link != 0; {
		c := t.at(link)
		if c.hash == hash {
			c.count++
			return
		}
		link = c.inChain
	}
	t.insert(hash, database, key)
}

// Most returns the n >= 0 keys with the highest counts, or all keys if the table has fewer. The highest count comes
// first. Among equal counts the smallest error comes first. Among equal errors the names are in byte order.
func (t *Top) Most(n int) []TopKey {
	order := make([]int, len(t.counters))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := &t.counters[i], &t.counters[j]
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.error, b.error),
			bytes.Compare(t.names[i].bytes(), t.names[j].bytes()))
	})
	most := make([]TopKey, min(n, len(order)))
	for k := range most {
		c := &t.counters[order[k]]
		most[k] = TopKey{string(t.names[order[k]].bytes()), c.count, c.error}
	}
	return most
}

// Reset empties the table.
func (t *Top) Reset() {
	clear(t.chains)
	t.counters = t.counters[:0]
	t.buckets, t.least = [64]topLink{}, 0
}

// insert counts the first denial of a key that has no counter.
func (t *Top) insert(hash uint64, database int, key string) {
	if len(t.counters) < cap(t.counters) {
		t.counters = append(t.counters, topCounter{})
		t.give(topLink(len(t.counters)), hash, database, key)
		return
	}
	link := t.takeLeast()
	t.unchain(link)
	t.give(link, hash, database, key)
}

// give gives a counter that is in no chain and no bucket to a key.
func (t *Top) give(link topLink, hash uint64, database int, key string) {
	c, chain := t.at(link), t.chain(hash)
	c.hash, c.error, c.inChain = hash, c.count, *chain
	*chain = link
	c.count++
	t.put(link)
	t.names[link-1].set(database, key)
}

// takeLeast takes a counter with the least count out of its bucket. The table must be full.
func (t *Top) takeLeast() topLink {
	for {
		for t.buckets[0] != 0 {
			link := t.buckets[0]
			c := t.at(link)
			t.buckets[0] = c.inBucket
			if c.count == t.least {
				return link
			}
			t.put(link)
		}
		t.spread()
	}
}

// spread moves every counter out of the lowest bucket that has counters. Bucket 0 must be empty.
func (t *Top) spread() {
	b := 1
	for t.buckets[b] == 0 {
		b++
	}
	first := t.buckets[b]
	t.buckets[b] = 0
	least := t.at(first).count
	for link := first; link != 0; link = t.at(link).inBucket {
		least = min(least, t.at(link).count)
	}
	// If all counts have outgrown the bucket, a higher bucket can have a lower count.
	if t.bucketOf(least) == b {
		t.least = least
	}
	for link := first; link != 0; {
		next := t.at(link).inBucket
		t.put(link)
		link = next
	}
}

// put puts a counter that is in no bucket into the bucket of its count.
func (t *Top) put(link topLink) {
	c := t.at(link)
	bucket := &t.buckets[t.bucketOf(c.count)]
	c.inBucket = *bucket
	*bucket = link
}

// bucketOf returns the bucket of count, 0 to 63. No count is below t.least.
func (t *Top) bucketOf(count int64) int {
	return bits.Len64(uint64(count^t.least)) & 63
}

// chain returns the start of the chain of hash.
func (t *Top) chain(hash uint64) *topLink {
	return &t.chains[hash&uint64(len(t.chains)-1)]
}

// unchain takes a counter out of its chain.
func (t *Top) unchain(link topLink) {
	at := t.chain(t.at(link).hash)
	for *at != link {
		at = &t.at(*at).inChain
	}
	*at = t.at(link).inChain
}

// at returns the counter that link leads to.
func (t *Top) at(link topLink) *topCounter { return &t.counters[link-1] }

func (n *topName) bytes() []byte { return n.text[:n.size] }

// set makes the name "database:key", cut at MaxTopName bytes.
func (n *topName) set(database int, key string) {
	size := len(strconv.AppendInt(n.text[:0], int64(database), 10))
	n.text[size] = ':'
	size++
	n.size = uint8(size + copy(n.text[size:], key))
}
