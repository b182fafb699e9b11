package throttle

import "time"

// denial is the last denial of a key: the same call is denied again until its RetryAfter has passed. Times are those of the
// client's clock, which may jump.
type denial struct {
	of               bounds
	n                int64
	until            time.Duration
	end              time.Duration // until then it is repeated: until, or earlier
	retry, reset     time.Duration
	limit, remaining int64
}

// policyMemory bounds how long a denial of a Policy is repeated, whose limit may change on the server at any time.
const policyMemory = time.Second

// holds reports whether the denial still applies. Before the denial, by a clock that was set back, it does not.
func (d *denial) holds(now time.Duration) bool { return now < d.end && d.until-now <= d.retry }

// repeat sets r if a call for n units of this limit is still denied.
func (d *denial) repeat(of *bounds, n int64, now time.Duration, r *Result) bool {
	if d.n != n || d.of != *of || !d.holds(now) {
		return false
	}
	retry := d.until - now
	*r = Result{Limit: d.limit, Remaining: d.remaining, RetryAfter: retry, ResetAfter: max(d.reset-(d.retry-retry), 0), Source: FromDenials}
	return true
}

// learn remembers a denial of a limiter with a DenyCache. After a part was granted one more unit is denied. It counts from the
// time at which the command was sent: counted from the reply, it would last longer than on the server. It ends if
// units are given back.
func (l *limiter) learn(key string, n int64, m mode, sent time.Duration, r *Result) {
	if m != take && m != upTo || n > 0 && (r.RetryAfter <= 0 || r.RetryAfter == Never) {
		return
	}
	if m == upTo {
		n = min(n, 1)
	}
	s := l.lock(key)
	defer s.mu.Unlock()
	if n < 0 {
		s.denial.Store(nil)
		return
	}
	until := sent + r.RetryAfter
	end := until
	if l.kind == policyKind {
		end = min(until, sent+policyMemory)
	}
	s.denial.Store(&denial{l.bounds, n, until, end, r.RetryAfter, r.ResetAfter, r.Limit, r.Remaining})
}
