package throttle

import (
	"context"
	"sync/atomic"
	"time"

	"gothrottle/throttle/internal/wire"
)

// grant is units of a key that the server granted and that are not spent yet. Times are those of the client's clock.
type grant struct {
	of        bounds
	left      atomic.Int64  // below 0 if more was asked for
	mark      int64         // when so few are left, more are asked for
	units     int64         // at first, and those that were spent once it has ended. The state is locked
	counted   int64         // of the units spent, those that use has seen. The state is locked
	since     time.Duration // when the command that took them was sent
	remaining int64         // by the reply
	reset     time.Duration // by the reply
	timer     *time.Timer   // ends the grant; nil with a clock of the caller's
	until     time.Time     // when it does
}

// use is how a key's units are used. The zero use says that nothing is known.
type use struct {
	rate      float64       // units spent per second recently
	spent     int64         // units of earlier grants, since rate was set
	since     time.Duration // when the last command was sent
	scarce    bool          // its reply granted less than was asked
	remaining int64         // by its reply
}

func newGrant(of bounds, units int64, since time.Duration, r *Result) *grant {
	g := &grant{of: of, units: units, since: since, remaining: r.Remaining, reset: r.ResetAfter}
	g.left.Store(units)
	return g
}

// spend takes up to n units and returns how many.
func (g *grant) spend(n int64) int64 { return min(n, max(g.left.Add(-n)+n, 0)) }

// spentSince returns how many units were spent since the last call. The state is locked.
func (g *grant) spentSince() int64 {
	n := g.units - max(g.left.Load(), 0) - g.counted
	g.counted += n
	return n
}

// end returns how many units are left, which nobody can spend any more. Nothing holds the grant afterwards.
func (g *grant) end() int64 {
	if g.timer != nil {
		g.timer.Stop()
	}
	left := max(g.left.Swap(0), 0)
	g.units -= left
	return left
}

// fresh reports whether the units may be spent.
func (g *grant) fresh(now, hold time.Duration) bool { return now >= g.since && now-g.since <= hold }

// spend spends one unit of a key and sets r, if there is one. A timer ends the grant, unless the clock is the caller's, which
// is asked at each call. s may be nil.
func (l *limiter) spend(s *state, r *Result) bool {
	if s == nil {
		return false
	}
	g := s.grant.Load()
	if g == nil || g.of != l.bounds || g.timer == nil && !g.fresh(l.c.conn.Now(), l.hold) {
		return false
	}
	left := g.left.Add(-1)
	if left == g.mark {
		l.startAhead(s, g)
	}
	if left < 0 {
		return false
	}
	r.Allowed, r.Granted, r.Source, r.Limit = true, 1, FromBudget, l.bounds.units
	r.Remaining, r.ResetAfter = g.remaining+left, g.reset
	return true
}

// share is the part of what remains that is taken in advance at most, so that other clients find units. If hold is shorter
// than the limit takes to drain, it is less by that.
const share = 8

// refill returns how many units to ask for beyond those of the callers. It ends the grant. s is locked.
func (l *limiter) refill(s *state, now time.Duration) int64 {
	if !s.claim(l.bounds, now, l.hold) {
		return 0
	}
	s.end()
	if s.asks {
		return 0
	}
	s.use.spent++
	return l.more(s, now, l.settings.units)
}

// more returns how many units to take in advance: what is spent in half of hold at the recent rate, at most a share of what
// remains. It returns 0 after a scarce reply, if nothing is known yet, and while another limit may hold units of the key. s is
// locked.
func (l *limiter) more(s *state, now time.Duration, most int64) int64 {
	u := &s.use
	if !u.known(now, l.hold) {
		*u = use{since: now, rate: tooSlow}
		return 0
	}
	passed := max(now-u.since, time.Millisecond).Seconds()
	u.rate, u.spent = (u.rate+float64(u.spent)/passed)/2, 0
	if u.scarce {
		return 0
	}
	part := min(l.drains(l.hold)/float64(l.bounds.units), 1) / share
	more := int64(min(u.rate*l.hold.Seconds()/2, float64(most), float64(u.remaining)*part))
	if more > 0 {
		s.since = now
	}
	return more
}

// ahead asks for more units before those of a grant are spent, so that no caller waits for a reply. Both together are no
// more than the budget.
func (l limiter) ahead(s *state, g *grant) {
	now := l.c.conn.Now()
	more := l.wantsAhead(s, g, now)
	if more <= 0 {
		return
	}
	r, err := l.send(context.Background(), now, s.key, more, upTo)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asks = false; err == nil {
		l.keepIn(s, now, r.Granted, &r)
	}
}

// wantsAhead returns how many units to ask for, 0 if another call brings some. If it returns more than 0, the caller's call is
// under way.
func (l *limiter) wantsAhead(s *state, g *grant, now time.Duration) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asks || s.next != nil || s.grant.Load() != g || !s.claim(l.bounds, now, l.hold) {
		return 0
	}
	s.use.spent += g.spentSince()
	more := l.more(s, now, l.settings.units-max(g.left.Load(), 0))
	s.asks = more > 0
	return more
}

// startAhead has a receiver of its own, so that the limiter of spend needs no memory.
func (l limiter) startAhead(s *state, g *grant) { l.c.conn.Start(func() { l.ahead(s, g) }) }

// claim reports whether a limit is the one that may hold units of the key, as it is from now on if nobody else is.
func (s *state) claim(b bounds, now, hold time.Duration) bool {
	if s.holder == b {
		return true
	}
	if s.claimed(now, hold) {
		return false
	}
	s.drop()
	s.use, s.holder, s.since = use{}, b, now
	return true
}

// claimed reports whether the holder may hold units of the key. A claim of a time to come is of a clock that was set back.
func (s *state) claimed(now, hold time.Duration) bool {
	return s.holder.kind != noKind && now >= s.since && now-s.since <= hold
}

// tooSlow is the rate of a key that was asked for once.
const tooSlow = 1e-9

// rateKnown is how long after the end of hold the recent rate still counts.
const rateKnown = 10 * time.Second

// known reports whether the recent rate counts. If not, the key is like a new one.
func (u *use) known(now, hold time.Duration) bool {
	return u.rate > 0 && now >= u.since && now-u.since <= hold+rateKnown
}

// take spends up to n units, and returns how many, and how many more than the other callers need should be asked for.
func (l *limiter) take(key string, n int64, now time.Duration, r *Result) (spent, more int64) {
	s := l.lock(key)
	defer s.mu.Unlock()
	for spent < n && (l.spend(s, r) || s.turn(l.bounds) && l.spend(s, r)) { // the first one sets r
		g := s.grant.Load()
		was := g.left.Load()
		spent += 1 + g.spend(n-spent-1)
		if was > g.mark && g.left.Load() <= g.mark {
			l.startAhead(s, g)
		}
	}
	if spent == n {
		return n, 0
	}
	return spent, l.refill(s, now)
}

// turn puts the units that a limit took ahead in the place of those it has spent, if there are any. s is locked.
func (s *state) turn(of bounds) bool {
	next := s.next
	if next == nil || next.of != of {
		return false
	}
	s.end()
	s.next = nil
	s.grant.Store(next)
	return true
}

// end ends the grant, if there is one. s is locked.
func (s *state) end() {
	if g := s.grant.Swap(nil); g != nil {
		g.end()
		s.use.spent += g.spentSince()
	}
}

// keep notes the reply to a command that was sent at this time, and the units that it has brought beyond the callers'.
func (l *limiter) keep(key string, sent time.Duration, extra int64, r *Result) {
	s := l.lock(key)
	defer s.mu.Unlock()
	l.keepIn(s, sent, extra, r)
}

// keepIn is keep for a state that is locked.
func (l *limiter) keepIn(s *state, sent time.Duration, extra int64, r *Result) {
	now := l.c.conn.Now()
	if l.c.closed.Load() || !s.claim(l.bounds, now, l.hold) { // giveBack may have seen this state before
		return
	}
	s.use.since, s.use.remaining, s.use.scarce = sent, r.Remaining, !r.Allowed || r.RetryAfter > 0
	if extra <= 0 {
		return
	}
	g := newGrant(l.bounds, min(extra, l.settings.units), sent, r)
	g.mark = min(int64(s.use.rate*roundTrips*(now-sent).Seconds()), g.units/2)
	if !l.c.ownClock {
		rest := l.hold - (now - sent)
		g.until = time.Now().Add(rest)
		g.timer = time.AfterFunc(rest, s.endOld)
	}
	if first := s.grant.Load(); first == nil || first.left.Load() <= 0 {
		s.end()
		s.grant.Store(g)
		return
	}
	if s.next != nil {
		s.next.end()
	}
	s.next = g
}

// roundTrips is for how many of the last round trip's time the units last that are left when more are asked for.
const roundTrips = 2

// endOld ends the grants whose time has passed. A timer that was stopped holds the state, but no grant and no client.
func (s *state) endOld() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range []*grant{s.grant.Load(), s.next} {
		if g != nil && g.timer != nil && !time.Now().Before(g.until) {
			g.end()
		}
	}
}

// drop ends all grants. s is locked.
func (s *state) drop() {
	s.end()
	if s.next != nil {
		s.next.end()
		s.next = nil
	}
}

// giveBack refunds the units of all keys, when the client closes. The lanes make pipelines of the calls. It returns the
// first error.
func (f *family) giveBack() error {
	var calls []func() error
	now := f.c.conn.Now()
	f.mu.Lock()
	if f.sweeper != nil {
		f.sweeper.Stop()
	}
	f.mu.Unlock()
	f.keys.Range(func(key, v any) bool {
		s := v.(*state)
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, g := range []*grant{s.grant.Swap(nil), s.next} {
			if g == nil || !g.fresh(now, f.hold) {
				continue
			}
			if n := g.end(); n > 0 {
				calls = append(calls, func() error {
					_, err := limiter{f, g.of}.send(context.Background(), now, key.(string), -n, upTo)
					return err
				})
			}
		}
		s.next = nil
		return true
	})
	return wire.AtOnce(calls)
}
