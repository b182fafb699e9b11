package throttle

import "time"

// denials remembers denials: the same call is denied again until the RetryAfter of its denial has passed.
type denials struct{ *table[denialKey, denial] }

type denialKey struct {
	key string
	n   int64
}

// denial is what a reply said. Times are those of the client's clock, which may jump.
type denial struct {
	until        time.Duration
	retry, reset time.Duration
	remaining    int64
}

func newDenials() *denials {
	return &denials{newTable[denialKey](func(d *denial, now time.Duration) bool { return !d.holds(now) })}
}

// holds reports whether the denial still applies. Before the denial, by a clock that was set back, it does not.
func (d *denial) holds(now time.Duration) bool { return now < d.until && d.until-now <= d.retry }

// find sets r if the call is still denied.
func (s *denials) find(key string, n int64, now time.Duration, r *Result) bool {
	s.sweepInTurn(now)
	p := s.lock(key)
	defer p.mu.Unlock()
	d := p.values[denialKey{key, n}]
	if d == nil || !d.holds(now) {
		return false
	}
	passed := d.retry - (d.until - now)
	*r = Result{Remaining: d.remaining, RetryAfter: d.until - now, ResetAfter: max(d.reset-passed, 0), Source: FromDenials}
	return true
}

// note remembers the denial of a command that was sent at the time began, also that of the callers behind a part that was
// granted. It counts from then: counted from the reply, it would last longer than on the server.
func (s *denials) note(key string, n int64, began time.Duration, r Result) {
	p := s.lock(key)
	defer p.mu.Unlock()
	k := denialKey{key, n}
	d := p.values[k]
	if d == nil {
		d = s.add(p, k, began)
	}
	*d = denial{until: began + r.RetryAfter, retry: r.RetryAfter, reset: r.ResetAfter, remaining: r.Remaining}
}

// forget drops the denials of a key.
func (s *denials) forget(key string) {
	p := s.lock(key)
	defer p.mu.Unlock()
	for k := range p.values {
		if k.key == key {
			delete(p.values, k)
		}
	}
}
