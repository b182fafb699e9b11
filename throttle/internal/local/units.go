package local

import (
	"sync/atomic"
	"time"
)

// Grant is units of a key that the server granted and that are not spent yet.
type Grant[L Limit] struct {
	key       *Key[L]
	of        L
	left      atomic.Int64  // below 0 if more was asked for
	mark      int64         // when so few are left, more are asked for
	units     int64         // at first, and those that were spent once it has ended. The key is locked
	counted   int64         // of the units spent, those that use has seen. The key is locked
	since     time.Duration // when the command that took them was sent
	remaining int64         // by the reply
	reset     time.Duration // by the reply
}

func newGrant[L Limit](s *Key[L], of L, units int64, since time.Duration, r *Reply) *Grant[L] {
	g := &Grant[L]{key: s, of: of, units: units, since: since, remaining: r.Remaining, reset: r.ResetAfter}
	g.left.Store(units)
	return g
}

// spend takes up to n units and returns how many.
func (g *Grant[L]) spend(n int64) int64 { return min(n, max(g.left.Add(-n)+n, 0)) }

// spentSince returns how many units were spent since the last call. The key is locked.
func (g *Grant[L]) spentSince() int64 {
	n := g.units - max(g.left.Load(), 0) - g.counted
	g.counted += n
	return n
}

// end returns how many units are left, which nobody can spend any more. Nothing holds the grant afterwards.
func (g *Grant[L]) end() int64 {
	left := max(g.left.Swap(0), 0)
	g.units -= left
	return left
}

// Key returns the name of the key.
func (g *Grant[L]) Key() string { return g.key.name }

// fresh reports whether the units may be spent.
func (g *Grant[L]) fresh(now, hold time.Duration) bool { return now >= g.since && now-g.since <= hold }

// use is how a key's units are used. The zero use says that nothing is known.
type use struct {
	rate      float64       // units spent per second recently
	spent     int64         // units of earlier grants, since rate was set
	since     time.Duration // when the last command was sent
	scarce    bool          // its reply granted less than was asked
	remaining int64         // by its reply
}

// tooSlow is the rate of a key that was asked for once.
const tooSlow = 1e-9

// rateKnown is how long after the end of Hold the recent rate still counts.
const rateKnown = 10 * time.Second

// known reports whether the recent rate counts. If not, the key is like a new one.
func (u *use) known(now, hold time.Duration) bool {
	return u.rate > 0 && now >= u.since && now-u.since <= hold+rateKnown
}
