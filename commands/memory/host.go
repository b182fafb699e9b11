package memory

import (
	"slices"

	"gothrottle/commands"
	"gothrottle/funnel"
)

// host answers what the handler of the running call asks of its server.
type host struct{ *shard }

// set returns the members of a key, the newest first.
func (h host) set(c *commands.Call, key int) []Member {
	name := c.Args[c.Keys[key].Word]
	return h.at(name).keys[name].Set
}

// after returns how many members are newer than a time.
func after(set []Member, time funnel.Micros) int {
	n, _ := slices.BinarySearchFunc(set, -float64(time), func(m Member, score float64) int {
		if m.Score < score {
			return -1
		}
		return 1
	})
	return n
}

func put(c *commands.Call, key int, members ...Member) {
	for _, m := range members {
		c.Keys[key].Entries = append(c.Keys[key].Entries, m.entry())
	}
}

func (h host) Newest(c *commands.Call, key, most int) {
	set := h.set(c, key)
	put(c, key, set[:min(most, len(set))]...)
}

func (h host) First(c *commands.Call, key int, time funnel.Micros) bool {
	return h.entryAt(c, key, after(h.set(c, key), time)-1)
}

func (h host) Oldest(c *commands.Call, key int, later, upTo funnel.Micros, most int) {
	set := h.set(c, key)
	first := after(set, later)
	if later == commands.NoTime {
		first = len(set)
	}
	for i := first - 1; i >= after(set, upTo) && most > 0; i, most = i-1, most-1 {
		if put(c, key, set[i]); set[i].Score > 0 && upTo >= 0 {
			break
		}
	}
}

func (h host) Put(c *commands.Call, key int, prefix byte, id string, time funnel.Micros) {
	k := &c.Keys[key]
	k.Entries = append(k.Entries, commands.Entry{Time: time, Member: string([]byte{prefix}) + id, Drop: 2})
}

func (h host) Rank(c *commands.Call, key int, rank int64) (bool, commands.ErrorCode) {
	return h.entryAt(c, key, int(rank)), commands.NoError
}

// entryAt appends the entry at a rank, if there is one.
func (h host) entryAt(c *commands.Call, key, rank int) bool {
	set := h.set(c, key)
	if rank < 0 || rank >= len(set) {
		return false
	}
	put(c, key, set[rank])
	return true
}

func (h host) Find(c *commands.Call, key int, prefix byte, id string) bool {
	set := h.set(c, key)
	i := slices.IndexFunc(set, func(m Member) bool { return len(m.Text) == len(id)+1 && m.Text[0] == prefix && m.Text[1:] == id })
	return h.entryAt(c, key, i)
}

func (h host) CountAfter(c *commands.Call, key int, time funnel.Micros) (int64, commands.ErrorCode) {
	return int64(after(h.set(c, key), time)), commands.NoError
}

func (host) Release(c *commands.Call, key, keep int) {
	c.Keys[key].Entries = c.Keys[key].Entries[:keep]
}

func (h host) Reply(_ *commands.Call, kind commands.ItemKind, n int64, text string) {
	h.items = append(h.items, item{kind, n, text})
}
