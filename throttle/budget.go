package throttle

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// budgets has the budget of each key of a limiter: units that were granted and are not spent yet.
type budgets struct {
	*table[string, budget]
	l    *limiter
	most float64 // the part of what remains that is taken in advance at most
}

func newBudgets(l *limiter) *budgets {
	idle := func(b *budget, now time.Duration) bool { return !b.known(now, l.hold) }
	return &budgets{newTable[string](idle), l, min(l.drains(l.hold)/float64(l.bounds.units), 1) / share}
}

// budget is the units of one key. The zero budget has none. Times are those of the client's clock, which may jump.
type budget struct {
	units     int64         // that were granted and not spent
	since     time.Duration // when the command that took them was sent
	rate      float64       // units spent per second recently
	spent     int64         // since the last refill
	scarce    bool          // the last reply granted less than was asked
	remaining int64         // by the last reply
	reset     time.Duration // by the last reply
}

// spend spends one unit and sets r, if there is one.
func (s *budgets) spend(key string, now time.Duration, r *Result) bool {
	s.sweepInTurn(now)
	p := s.lock(key)
	defer p.mu.Unlock()
	b := p.values[key]
	if b == nil || b.spend(now, 1, s.l.hold) == 0 {
		return false
	}
	b.result(now, r)
	r.Limit = s.l.bounds.units
	return true
}

// spendFor spends up to n units. It returns how many, and how many more than the other callers need should be asked for.
func (s *budgets) spendFor(key string, n int64, now time.Duration, r *Result) (spent, more int64) {
	p := s.lock(key)
	defer p.mu.Unlock()
	b := p.values[key]
	if b == nil {
		b = s.add(p, key, now)
	}
	if spent = b.spend(now, n, s.l.hold); spent == n {
		b.result(now, r)
		r.Limit = s.l.bounds.units
		return spent, 0
	}
	return spent, b.refill(now, s.l.settings.units, s.most, s.l.hold)
}

// granted notes a reply to a command that was sent at the time sent.
func (s *budgets) granted(key string, sent time.Duration, extra int64, r *Result) {
	p := s.lock(key)
	defer p.mu.Unlock()
	if b := p.values[key]; b != nil {
		b.granted(sent, min(extra, s.l.settings.units), r)
	}
}

func (s *budgets) forget(key string) {
	p := s.lock(key)
	defer p.mu.Unlock()
	delete(p.values, key)
}

// spend takes up to n units of those that are not too old, and returns how many.
func (b *budget) spend(now time.Duration, n int64, hold time.Duration) int64 {
	if b.units == 0 || !b.fresh(now, hold) {
		return 0
	}
	n = min(n, b.units)
	b.units -= n
	b.spent += n
	return n
}

// fresh reports whether the units may be spent.
func (b *budget) fresh(now, hold time.Duration) bool { return now >= b.since && now-b.since <= hold }

// share is the part of what remains that is taken in advance at most, so that other clients find units. If hold is shorter
// than the limit takes to drain, it is less by that.
const share = 8

// refill returns how many units to ask for beyond those of the callers: what is spent in half of hold at the recent rate,
// at most this part of what remains. After a scarce reply, and if nothing is known yet, it returns 0. refill forgets the
// units that are left.
func (b *budget) refill(now time.Duration, units int64, most float64, hold time.Duration) int64 {
	if !b.known(now, hold) {
		*b = budget{since: now, rate: tooSlow}
		return 0
	}
	b.units = 0
	passed := max(now-b.since, time.Millisecond).Seconds()
	b.rate = (b.rate + float64(b.spent+1)/passed) / 2
	b.spent = 0
	if b.scarce {
		return 0
	}
	return int64(min(b.rate*hold.Seconds()/2, float64(units), float64(b.remaining)*most))
}

// tooSlow is the rate of a key that was asked for once.
const tooSlow = 1e-9

// granted notes a reply to a command that was sent at the time sent.
func (b *budget) granted(sent time.Duration, extra int64, r *Result) {
	b.units, b.since, b.remaining, b.reset = max(extra, 0), sent, r.Remaining, r.ResetAfter
	b.scarce = !r.Allowed || r.RetryAfter > 0
}

// result describes a unit that was spent.
func (b *budget) result(now time.Duration, r *Result) {
	r.Allowed, r.Granted, r.Source = true, 1, FromBudget
	r.Remaining, r.ResetAfter = b.remaining+b.units, max(b.reset-(now-b.since), 0)
}

// rateKnown is how long after the end of hold the recent rate still counts.
const rateKnown = 10 * time.Second

// known reports whether the recent rate counts. If not, the budget is like a new one.
func (b *budget) known(now, hold time.Duration) bool {
	return b.rate > 0 && now >= b.since && now-b.since <= hold+rateKnown
}

// giveBack empties the budget and returns how many units the server may have back.
func (b *budget) giveBack(now, hold time.Duration) (n int64) {
	if b.fresh(now, hold) {
		n = b.units
	}
	b.units = 0
	return n
}

// close gives all units back.
func (s *budgets) close() error {
	back := map[string]int64{}
	now := s.l.c.now()
	for i := range s.parts {
		p := &s.parts[i]
		p.mu.Lock()
		for key, b := range p.values {
			if n := b.giveBack(now, s.l.hold); n > 0 {
				back[key] = n
			}
		}
		p.mu.Unlock()
	}
	return s.giveBack(back)
}

// giveBack refunds units, in pipelines. It stops when the server does not answer.
func (s *budgets) giveBack(back map[string]int64) (failed error) {
	cmds := make([]redis.Cmder, 0, min(len(back), maxPipeline))
	send := func() {
		w := &within{s.l.deadline(), context.Background()}
		for _, err := range s.l.c.sendAll(w, cmds) {
			if err := classify(err); failed == nil || errors.Is(err, ErrUnavailable) {
				failed = err
			}
		}
		cmds = cmds[:0]
	}
	for key, n := range back {
		cmds = append(cmds, s.l.newCall(background, s.l.prefix+key, -n, upTo, 0))
		if len(cmds) == maxPipeline {
			send()
		}
		if errors.Is(failed, ErrUnavailable) {
			return failed
		}
	}
	if len(cmds) > 0 {
		send()
	}
	return failed
}
