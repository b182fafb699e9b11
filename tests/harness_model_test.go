package tests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// clause is one clause of a random GO.ALL call.
type clause struct {
	kind            string // THROTTLE, WINDOW, QUOTA or LEASE
	key             string
	cell            int // of a THROTTLE clause: the position among the clauses of its key
	limit, quantity int64
	rate            [2]int64 // of a THROTTLE clause: count and period
	id              string   // of a LEASE clause
	force           bool     // of a call with FORCE
}

// words returns the clause as text, without the key.
func (c clause) words() string {
	switch c.kind {
	case "THROTTLE":
		return fmt.Sprint("THROTTLE ", c.limit-1, " ", c.rate[0], " ", c.rate[1], " ", c.quantity)
	case "LEASE":
		return fmt.Sprint("LEASE ", c.limit, " ", frozen, " ", c.id)
	}
	return fmt.Sprint(c.kind, " ", c.limit, " ", frozen, " ", c.quantity)
}

func (c clause) name() string { return fmt.Sprint(c.kind, " ", c.key, " ", c.cell) }

// model holds what limiters have in use, if nothing drains.
type model struct {
	used map[string]int64           // by clause.name
	held map[string]map[string]bool // the ids of leases, by clause.name

	locked map[string]bool // whether a lockout stands, by clause.name
}

func newModel() *model {
	return &model{map[string]int64{}, map[string]map[string]bool{}, map[string]bool{}}
}

// denies says whether a clause denies, as the clause's own command would.
func (m *model) denies(c clause) bool {
	used := m.used[c.name()]
	switch {
	case c.force:
		return false
	case c.kind == "LEASE":
		return !m.held[c.name()][c.id] && used >= c.limit
	case m.locked[c.name()] && c.quantity >= 0:
		return true
	case c.quantity == 0:
		return used > c.limit
	}
	return c.quantity > 0 && used+c.quantity > c.limit
}

// take takes the units of an admitted clause.
func (m *model) take(c clause) {
	name := c.name()
	if c.kind != "LEASE" {
		m.used[name] = max(0, m.used[name]+c.quantity)
		return
	}
	if m.held[name] == nil {
		m.held[name] = map[string]bool{}
	}
	m.held[name][c.id] = true
	m.used[name] = int64(len(m.held[name]))
}

// lockout begins a lockout of the first cell of a key, if a call is denied.
func (m *model) lockout(s *server, key string, rates [][2]int64) {
	s.t.Helper()
	c := clause{kind: "THROTTLE", key: key, limit: 5, quantity: 5, rate: rates[int(key[0])%len(rates)]}
	reply := s.throttle(append(fields(key), fields(strings.TrimPrefix(c.words(), "THROTTLE ")+" LOCKOUT "+frozen)...)...)
	if reply[0] == 1 {
		m.locked[c.name()] = true
	} else {
		m.take(c)
	}
}

// forget forgets the limiters of keys that were deleted.
func (m *model) forget(keys ...string) {
	for _, key := range keys {
		for cell := range 3 {
			name := clause{kind: "THROTTLE", key: key, cell: cell}.name()
			delete(m.used, name)
			delete(m.locked, name)
		}
	}
}

// call returns for each clause whether it denies, what is left in it after the call, and
// whether a lease was held before. If no clause denies, call takes the units of all.
func (m *model) call(clauses []clause) (denied []bool, left []int64, renewed []bool) {
	admitted := true
	for _, c := range clauses {
		denied = append(denied, m.denies(c))
		renewed = append(renewed, m.held[c.name()][c.id])
		admitted = admitted && !denied[len(denied)-1]
	}
	for _, c := range clauses {
		if admitted {
			m.take(c)
		}
		if m.locked[c.name()] {
			left = append(left, 0)
			continue
		}
		left = append(left, max(0, c.limit-m.used[c.name()]))
	}
	return denied, left, renewed
}

// consistent checks that the parts of a reply of GO.ALL fit together: the first five integers
// are those of the clause that decides.
func consistent(t *testing.T, call []any, got []any, clauses []clause) {
	t.Helper()
	require.Len(t, got, 6+len(clauses), "%v: %v", call, got)
	decider, wait, least := -1, int64(-1), -1
	for i, c := range clauses {
		r := got[6+i].([]any)
		require.Len(t, r, map[bool]int{true: 6, false: 5}[c.kind == "LEASE"], "%v: %v", call, got)
		limited, retry := r[0] == int64(1), r[3].(int64)
		if !limited {
			require.Equal(t, int64(-1), retry, "%v: %v", call, got)
			if least < 0 || r[2].(int64) < got[6+least].([]any)[2].(int64) {
				least = i
			}
			continue
		}
		never := c.kind != "LEASE" && c.quantity > c.limit
		require.Equal(t, never, retry == -1, "%v: %v", call, got)
		require.NotZero(t, retry, "%v: %v", call, got)
		if never {
			retry = 1 << 62
		}
		if decider < 0 || retry > wait {
			decider, wait = i, retry
		}
	}
	if decider < 0 {
		decider = least
	}
	require.Equal(t, int64(decider), got[5], "%v: %v", call, got)
	require.Equal(t, got[6+decider].([]any)[:5], got[:5], "%v: %v", call, got)
}
