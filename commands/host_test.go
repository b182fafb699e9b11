package commands

import (
	"slices"

	"gothrottle/funnel"
)

// zset returns the sorted set at a key of the running call. The store implements Host.
func (s *store) zset(c *Call, key int) ([]Entry, *Key) {
	s.t.Helper()
	k := &c.Keys[key]
	if c != s.call || k.Kind != KindZset {
		s.t.Fatalf("%q: entries of key %d, which holds kind %d", c.Args, key, k.Kind)
	}
	return s.keys[c.Args[k.Word]].set, k
}

func (s *store) Newest(c *Call, key, most int) {
	set, k := s.zset(c, key)
	k.Entries = append(k.Entries, set[:min(most, len(set))]...)
}

func (s *store) First(c *Call, key int, after funnel.Micros) bool {
	set, k := s.zset(c, key)
	for _, e := range slices.Backward(set) {
		if e.Time > after {
			k.Entries = append(k.Entries, e)
			return true
		}
	}
	return false
}

func (s *store) Oldest(c *Call, key int, upTo funnel.Micros, most int) {
	set, k := s.zset(c, key)
	for _, e := range slices.Backward(set) {
		if most--; e.Time > upTo || most < 0 {
			return
		}
		k.Entries = append(k.Entries, e)
	}
}

func (s *store) Rank(c *Call, key int, rank int64) bool {
	set, k := s.zset(c, key)
	if rank < 0 || rank >= int64(len(set)) {
		return false
	}
	k.Entries = append(k.Entries, set[rank])
	return true
}

func (s *store) Find(c *Call, key int, prefix byte, id string) bool {
	set, k := s.zset(c, key)
	for _, e := range set {
		if e.Member == string(rune(prefix))+id {
			k.Entries = append(k.Entries, e)
			return true
		}
	}
	return false
}

func (s *store) CountAfter(c *Call, key int, after funnel.Micros) (n int64) {
	set, _ := s.zset(c, key)
	for _, e := range set {
		if e.Time > after {
			n++
		}
	}
	return n
}

func (s *store) Reply(c *Call, kind ItemKind, n int64, text string) {
	s.items = append(s.items, item{kind, n, text})
}

func (s *store) Release(c *Call, key, keep int) {
	_, k := s.zset(c, key)
	k.Entries = k.Entries[:keep]
}
