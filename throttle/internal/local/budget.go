package local

import "time"

// Unit is a unit that was spent.
type Unit[L Limit] struct {
	Remaining  int64         // by the last reply
	ResetAfter time.Duration // by the last reply
	Low        *Grant[L]     // few are left: the caller asks for more Ahead. nil if there is nothing to do
}

// Spend spends one unit of a key, and reports whether there was one. Here and in Take, the clock is read when the units are
// known: units that came since would be of a time to come.
func (k *Keys[L]) Spend(name string, of *L, clock func() time.Duration) (u Unit[L], spent bool) {
	if s := k.find(name); s != nil {
		return k.spend(s, of, clock)
	}
	return u, false
}

func (k *Keys[L]) spend(s *Key[L], of *L, clock func() time.Duration) (u Unit[L], spent bool) {
	g := s.grant.Load()
	if g == nil || g.of != *of || !g.fresh(clock(), k.Hold) {
		return u, false
	}
	left := g.left.Add(-1)
	if left == g.mark {
		u.Low = g
	}
	u.Remaining, u.ResetAfter = g.remaining+left, g.reset
	return u, left >= 0
}

// Take spends up to n units of a key. u is one of them. If they were too few, the caller asks for the others and for more units,
// and the reply is for Keep.
func (k *Keys[L]) Take(name string, of *L, n int64, clock func() time.Duration) (u Unit[L], spent, more int64) {
	s := k.lock(name)
	defer s.mu.Unlock()
	for spent < n {
		one, ok := k.spend(s, of, clock)
		if !ok && s.next != nil && s.next.of == *of { // taken ahead
			s.end()
			s.grant.Store(s.next)
			s.next = nil
			one, ok = k.spend(s, of, clock)
		}
		if !ok {
			break
		}
		g := s.grant.Load()
		was := g.left.Load()
		spent += 1 + g.spend(n-spent-1)
		if u = one; was > g.mark && g.left.Load() <= g.mark {
			u.Low = g
		}
	}
	now := clock()
	if spent == n || !s.claim(of, now, k.Hold) {
		return u, spent, 0
	}
	if s.end(); s.asks {
		return u, spent, 0
	}
	s.use.spent++
	return u, spent, k.more(s, now, k.Units)
}

// more returns how many units the holder takes in advance: what is spent in half of Hold at the recent rate, at most a share of
// what remains. It returns 0 after a scarce reply, and if nothing is known yet. s is locked.
func (k *Keys[L]) more(s *Key[L], now time.Duration, most int64) int64 {
	u := &s.use
	if !u.known(now, k.Hold) {
		*u = use{since: now, rate: tooSlow}
		return 0
	}
	passed := max(now-u.since, time.Millisecond).Seconds()
	u.rate, u.spent = (u.rate+float64(u.spent)/passed)/2, 0
	if u.scarce {
		return 0
	}
	part := min(s.holder.Part(k.Hold), 1) / share
	more := int64(min(u.rate*k.Hold.Seconds()/2, float64(most), float64(u.remaining)*part))
	if more > 0 {
		s.since = now
	}
	return more
}

// share is the part of what remains that is taken in advance at most, so that other clients find units. If Hold is shorter
// than the limit takes to drain, it is less by that.
const share = 8

// Ahead returns how many units to ask for before those of a grant are spent, so that no caller waits for a reply: 0 if another
// call brings some. Together they never exceed Units. If it returns more than 0, Came must follow.
func (k *Keys[L]) Ahead(g *Grant[L], now time.Duration) int64 {
	s := g.key
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asks || s.next != nil || s.grant.Load() != g || !s.claim(&g.of, now, k.Hold) {
		return 0
	}
	s.use.spent += g.spentSince()
	more := k.more(s, now, k.Units-max(g.left.Load(), 0))
	s.asks = more > 0
	return more
}

// Came notes the reply to a call that was sent because of Ahead: nil if it failed. The units that it returns are for the caller
// to give back, as are Keep's.
func (k *Keys[L]) Came(g *Grant[L], sent, now time.Duration, granted int64, r *Reply) (back int64) {
	s := g.key
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asks = false; r != nil {
		back = k.keep(s, &g.of, sent, now, granted, r)
	}
	return back
}

// Keep notes the reply to a call that was sent because of Take, and the units that it has brought beyond the callers'.
func (k *Keys[L]) Keep(name string, of *L, sent, now time.Duration, extra int64, r *Reply) (back int64) {
	s := k.lock(name)
	defer s.mu.Unlock()
	return k.keep(s, of, sent, now, extra, r)
}

// keep is Keep for a key that is locked.
func (k *Keys[L]) keep(s *Key[L], of *L, sent, now time.Duration, extra int64, r *Reply) (back int64) {
	if k.Closed.Load() || !s.claim(of, now, k.Hold) { // End may have seen this key before
		return extra
	}
	s.use.since, s.use.remaining, s.use.scarce = sent, r.Remaining, !r.Allowed || r.RetryAfter > 0
	if extra <= 0 {
		return 0
	}
	g := newGrant(s, *of, min(extra, k.Units), sent, r)
	g.mark = min(int64(s.use.rate*roundTrips*(now-sent).Seconds()), g.units/2)
	if first := s.grant.Load(); first == nil || first.left.Load() <= 0 {
		s.end()
		s.grant.Store(g)
		return 0
	}
	if s.next != nil {
		s.next.end()
	}
	s.next = g
	return 0
}

// roundTrips is for how many of the last round trip's time the units last that are left when more are asked for.
const roundTrips = 2

// claim reports whether a limit is the one that may hold units of the key, as it is from now on if nobody else is.
func (s *Key[L]) claim(of *L, now, hold time.Duration) bool {
	if s.holder == *of {
		return true
	}
	if s.claimed(now, hold) {
		return false
	}
	s.drop()
	s.use, s.holder, s.since = use{}, *of, now
	return true
}

// claimed reports whether the holder may hold units of the key. A claim of a time to come is of a clock that was set back.
func (s *Key[L]) claimed(now, hold time.Duration) bool {
	var none L
	return s.holder != none && now >= s.since && now-s.since <= hold
}

// end ends the grant, if there is one. s is locked.
func (s *Key[L]) end() {
	if g := s.grant.Swap(nil); g != nil {
		g.end()
		s.use.spent += g.spentSince()
	}
}

// drop ends all grants. s is locked.
func (s *Key[L]) drop() {
	s.end()
	if s.next != nil {
		s.next.end()
		s.next = nil
	}
}
