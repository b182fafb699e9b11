package local

import "time"

// denial is the last denial of a key.
type denial[L Limit] struct {
	of               L
	n                int64
	until            time.Duration
	end              time.Duration // until then it is repeated: until, or earlier
	retry, reset     time.Duration
	limit, remaining int64
}

// holds reports whether the denial still applies. Before the denial, by a clock that was set back, it does not.
func (d *denial[L]) holds(now time.Duration) bool { return now < d.end && d.until-now <= d.retry }

// Deny remembers the denial of a call for n units, and repeats it for at most this long. It counts from the time at which the
// call was sent: counted from the reply, it would last longer than on the server. If n is below 0, units were given back,
// which ends the denial.
func (k *Keys[L]) Deny(name string, of *L, n int64, sent, most time.Duration, r *Reply) {
	s := k.lock(name)
	defer s.mu.Unlock()
	if n < 0 {
		s.denial.Store(nil)
		return
	}
	s.denial.Store(&denial[L]{*of, n, sent + r.RetryAfter, sent + min(most, r.RetryAfter), r.RetryAfter, r.ResetAfter, r.Limit, r.Remaining})
}

// Denied sets r and returns true if a call for n units is still denied.
func (k *Keys[L]) Denied(name string, of *L, n int64, now time.Duration, r *Reply) bool {
	s := k.find(name)
	if s == nil {
		return false
	}
	d := s.denial.Load()
	if d == nil || d.n != n || d.of != *of || !d.holds(now) {
		return false
	}
	retry := d.until - now
	*r = Reply{Limit: d.limit, Remaining: d.remaining, RetryAfter: retry, ResetAfter: max(d.reset-(d.retry-retry), 0)}
	return true
}
