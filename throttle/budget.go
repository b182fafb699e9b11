package throttle

import "time"

// Budget makes Allow take up to Units units more than it needs, and spend them in this process. Units are taken from the
// server before they are spent, so a crash admits no unit too many. A crash or a lost reply loses at most Units. The zero
// Budget takes no units in advance. A limiter that is remembered takes about 400 bytes. An idle one is dropped 10 to 20 s
// after its units are too old, as long as the client decides anything.
//
// With C clients, in any length of time t, at most burst + rate x t + excess units are admitted of a rate. The excess is
// at most C x Units and at most rate x Hold. Close gives units back. Other clients may take these units while they still
// spend units that they took before. So if clients close, the second bound is rate x Hold + (C - 1) x Units. A test
// explores all orders of events in small worlds and finds no larger excess. Around the end of a window or a quota the
// excess is at most C x Units.
//
// With Clients set there is no excess: the limits that are sent are lower by Clients x Units, which must be fewer than the
// units of every limit that is used. If more clients than Clients use a limit, there may be an excess.
type Budget struct {
	Units   int64         // the most units that are kept per limiter; 0: no budget
	Hold    time.Duration // units are spent this long and then forgotten; 1 s if 0
	Clients int64         // strict: how many clients there are in all, with the same Units; 0: not strict
}

// check fills in what is not set.
func (b *Budget) check() error {
	if b.Units < 0 || b.Units > maxUnits || b.Hold < 0 || b.Clients < 0 || b.Clients > maxUnits {
		return params("a budget of %+v", *b)
	}
	if b.Units == 0 && (b.Hold != 0 || b.Clients != 0) {
		return params("a budget without units")
	}
	if b.Hold == 0 {
		b.Hold = time.Second
	}
	return nil
}

// less returns how many units below the limit are sent. Of a policy the client knows no limit, and slots are never held in
// a budget.
func (b *Budget) less(l *Limit) (int64, error) {
	if b.Clients == 0 || l.kind == policyKind || l.kind == slotsKind {
		return 0, nil
	}
	if (l.limit-1)/b.Clients < b.Units {
		return 0, params("%d clients that hold %d units each leave nothing of %s", b.Clients, b.Units, *l)
	}
	return b.Clients * b.Units, nil
}

// budget is the units of one limiter that were taken and not spent. The zero budget holds none. Times are those of the
// client's clock; it may jump.
type budget struct {
	held   int64
	since  time.Duration // when the command that took them was sent
	rate   float64       // units spent per second of late
	spent  int64         // since the last refill
	scarce bool          // the last reply granted less than was asked
	reply  Result        // the last reply
}

// spend takes up to n units of those that are held and not too old, and returns how many.
func (b *budget) spend(now time.Duration, n int64, hold time.Duration) int64 {
	if b.held == 0 || !b.fresh(now, hold) {
		return 0
	}
	n = min(n, b.held)
	b.held -= n
	b.spent += n
	return n
}

// fresh reports whether the units that are held may be spent.
func (b *budget) fresh(now, hold time.Duration) bool { return now >= b.since && now-b.since <= hold }

// refill returns how many units to ask for beyond those of the callers: what is spent in half of Hold at the rate of late.
// After a scarce reply it returns 0. refill forgets the units that are still held.
func (b *budget) refill(now time.Duration, o *Budget) int64 {
	if o.Units == 0 {
		return 0
	}
	if !b.known(now, o.Hold) {
		*b = budget{}
	}
	b.held = 0
	passed := max(now-b.since, time.Millisecond).Seconds()
	b.rate = (b.rate + float64(b.spent+1)/passed) / 2
	b.spent = 0
	if b.scarce {
		return 0
	}
	return int64(min(b.rate*o.Hold.Seconds()/2, float64(o.Units)))
}

// granted notes a reply to a command that was sent at the time sent.
func (b *budget) granted(sent time.Duration, extra int64, r Result) {
	b.held, b.since, b.reply = max(extra, 0), sent, r
	b.scarce = !r.Allowed || r.RetryAfter > 0
}

// result tells of a unit that was spent.
func (b *budget) result(now time.Duration) Result {
	r := b.reply
	r.Allowed, r.Granted, r.RetryAfter, r.Source = true, 1, 0, FromBudget
	r.ResetAfter = max(r.ResetAfter-(now-b.since), 0)
	return r
}

// rateKnown is how long after the end of Hold the rate of late still counts.
const rateKnown = 10 * time.Second

// known reports whether the rate of late counts. If not, the budget is like a new one.
func (b *budget) known(now, hold time.Duration) bool {
	return b.rate > 0 && now >= b.since && now-b.since <= hold+rateKnown
}

// giveBack empties the budget and returns how many units the server may have back.
func (b *budget) giveBack(now, hold time.Duration) (n int64) {
	if b.fresh(now, hold) {
		n = b.held
	}
	b.held = 0
	return n
}
