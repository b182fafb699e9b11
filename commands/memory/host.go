package memory

import (
	"slices"
	"strings"

	"gothrottle/commands"
	"gothrottle/funnel"
)

// host answers what the handler of the running call asks of its server.
type host struct{}

// set returns the entries of a key, the newest first.
func (host) set(c *commands.Call, key int) []commands.Entry {
	if v := running.keys[c.Args[c.Keys[key].Word]]; v != nil {
		return v.set
	}
	return nil
}

// after returns how many entries are newer than a time.
func (h host) after(c *commands.Call, key int, time funnel.Micros) int {
	set := h.set(c, key)
	n, _ := slices.BinarySearchFunc(set, time, func(e commands.Entry, time funnel.Micros) int {
		if e.Time > time {
			return -1
		}
		return 1
	})
	return n
}

func (h host) put(c *commands.Call, key int, entries ...commands.Entry) {
	c.Keys[key].Entries = append(c.Keys[key].Entries, entries...)
}

func (h host) Newest(c *commands.Call, key, most int) {
	set := h.set(c, key)
	h.put(c, key, set[:min(most, len(set))]...)
}

func (h host) First(c *commands.Call, key int, after funnel.Micros) bool {
	n := h.after(c, key, after)
	if n == 0 {
		return false
	}
	h.put(c, key, h.set(c, key)[n-1])
	return true
}

func (h host) Oldest(c *commands.Call, key int, upTo funnel.Micros, most int) {
	old := h.set(c, key)[h.after(c, key, upTo):]
	for i := len(old) - 1; i >= 0 && most > 0; i, most = i-1, most-1 {
		h.put(c, key, old[i])
	}
}

func (h host) Rank(c *commands.Call, key int, rank int64) bool {
	set := h.set(c, key)
	if rank < 0 || rank >= int64(len(set)) {
		return false
	}
	h.put(c, key, set[rank])
	return true
}

func (h host) Find(c *commands.Call, key int, prefix byte, id string) bool {
	for _, e := range h.set(c, key) {
		if e.Member[0] == prefix && strings.HasSuffix(e.Member, id) && len(e.Member) == len(id)+1 {
			h.put(c, key, e)
			return true
		}
	}
	return false
}

func (h host) CountAfter(c *commands.Call, key int, after funnel.Micros) int64 {
	return int64(h.after(c, key, after))
}

func (host) Release(c *commands.Call, key, keep int) {
	c.Keys[key].Entries = c.Keys[key].Entries[:min(keep, len(c.Keys[key].Entries))]
}

func (host) Reply(*commands.Call, commands.ItemKind, int64, string) {}
