package commands

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gothrottle/funnel"
)

// maxIDs bounds the ids of one GO.RELEASE.
const maxIDs = 1024

var release = Command{
	Name:       "GO.RELEASE",
	Summary:    "Gives slots back and reports how many of them were held.",
	Complexity: "O(M*log(N)) with N the slots and M the ids, at most 1024",
	Since:      "0.1.0",
	Flags:      "write fast",
	Arity:      -3,
	Args: []Arg{argKey, {Name: "id", Type: ArgString, Multiple: true, Summary: "Who holds a slot.",
		Bounds: fmt.Sprintf("at most %d ids of %s", maxIDs, idBounds)}},
	State:   KindZset,
	Handler: runRelease,
}

var releaseKind = clauseKind{
	keyword: "RELEASE",
	summary: "Gives an id's slots back; denied, with retry_after -1, if it holds none.",
	args:    []Arg{argID},
	words:   1,
	state:   KindZset,
}

// releaseLimiter decides for a call that gives slots back.
type releaseLimiter struct{ leaseLimiter }

// parse reads the id. The quantity is that of a refund.
func (l *releaseLimiter) parse(args []string, r *request) (int64, ErrorCode) {
	l.word, l.frees, r.quantity = r.first, true, -1
	if len(args[l.word]) > maxIDLen {
		return 0, ErrIDTooLong
	}
	return 0, NoError
}

// judge decides whether the id holds slots. A peek gives none back.
func (l *releaseLimiter) judge(c *Call, quantity int64, _ bool) (*funnel.Verdict, ErrorCode) {
	v, last := &l.v.Verdict, l.state.Latest
	switch *v = (funnel.Verdict{}); {
	case l.lost():
		v.Limited, v.RetryAfter = true, funnel.Never
	case quantity == 0:
		last = max(last, l.state.Own)
	default:
		v.Granted = -l.own
	}
	v.ResetAfter = max(last-c.Now, 0).Nanos()
	return v, NoError
}

func runRelease(c *Call) ErrorCode {
	ids := c.Args[1:]
	if len(ids) > maxIDs {
		return ErrTooManyIDs
	}
	for _, id := range ids {
		if len(id) > maxIDLen {
			return ErrIDTooLong
		}
	}
	c.Shape = Integer
	k := &c.Keys[0]
	if err := k.checkZset(); err != NoError || k.Kind == KindAbsent {
		return err
	}
	for _, id := range ids {
		c.Host().Find(c, 0, leasePrefix, id)
	}
	if len(k.Entries) == 0 { // the newest member shows whether the sorted set holds leases at all
		if c.Host().Newest(c, 0, 1); len(k.Entries) == 0 {
			return NoError
		}
		return checkLease(&k.Entries[0])
	}
	released, err := c.markReleased()
	if err != NoError {
		return err
	}
	k.Becomes = Zset
	end, err := c.latestKept(released)
	if end >= 0 {
		k.expireLeases(c, end)
	}
	if err != NoError || k.Length < 3 { // a lease of several slots, what counts them, and their sum
		return err
	}
	return c.releaseSlots(released, end >= 0)
}

// releaseSlots removes what counts the slots of the first n entries. If no lease stays, the key is deleted.
func (c *Call) releaseSlots(n int, stays bool) ErrorCode {
	var s slots
	if err := s.find(c, 0); err != NoError || !s.several {
		return err
	}
	for i := range n {
		_, at, err := s.of(c, 0, c.Keys[0].Entries[i].id())
		if err != NoError {
			return err
		}
		s.drop(&c.Keys[0], at)
	}
	if s.settle(c, 0); !stays {
		c.Keys[0].Becomes = Absent
	}
	return NoError
}

// markReleased marks the entries found for removal, each once, and adds those that had not lapsed to the reply. It
// returns the number of marked entries. They are then at the front, in the server's order: the newest first.
func (c *Call) markReleased() (n int, err ErrorCode) {
	entries := c.Keys[0].Entries
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), strings.Compare(a.Member, b.Member))
	})
	for i := range entries {
		e := &entries[i]
		if err := checkLease(e); err != NoError {
			return 0, err
		}
		if n > 0 && entries[n-1].Member == e.Member {
			continue // a repeated id
		}
		entries[n], entries[i] = entries[i], entries[n]
		if entries[n].Drop = 1; entries[n].Time > c.Now {
			c.Reply[0]++
		}
		n++
	}
	return n, NoError
}

// latestKept returns the latest expiry among the leases that stay, -1 if none stays. The first n
// entries are the leases that go.
func (c *Call) latestKept(n int) (funnel.Micros, ErrorCode) {
	k := &c.Keys[0]
	first := len(k.Entries)
	c.Host().Newest(c, 0, n+1)
	for i := range n + 1 {
		if first+i == len(k.Entries) {
			return -1, NoError
		}
		e := &k.Entries[first+i]
		if i < n && e.Member == k.Entries[i].Member {
			continue
		}
		if e.counts() {
			return -1, NoError
		}
		return e.Time, checkLease(e)
	}
	return -1, NoError
}
