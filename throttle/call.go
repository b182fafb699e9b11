package throttle

import (
	"context"
	"slices"
	"time"

	"gothrottle/throttle/internal/wire"
)

// Boxed once: a constant string in an interface does not allocate, but a variable does.
var (
	commandNames = [...][2]any{
		rateKind:   {"GO.THROTTLE", "GO.THROTTLE_RO"},
		windowKind: {"GO.WINDOW", "GO.WINDOW_RO"},
		quotaKind:  {"GO.QUOTA", "GO.QUOTA_RO"},
		policyKind: {"GO.POLICY", "GO.POLICY_RO"},
		slotsKind:  {"GO.LEASE", "GO.LEASE_RO"},
	}
	clauseNames = [...]any{rateKind: "THROTTLE", windowKind: "WINDOW", quotaKind: "QUOTA", slotsKind: "LEASE"}
)

// command returns the name of the command that decides in this mode.
func (k kind) command(m mode) any {
	if m == peek {
		return commandNames[k][1]
	}
	return commandNames[k][0]
}

// mode says how a quantity is taken.
type mode uint8

const (
	take mode = iota
	upTo
	force
	raise
	reserve
	peek // the read-only command, with quantity 0
)

var modeWords = [peek + 1]any{upTo: "UPTO", force: "FORCE", raise: "RAISE"}

// boxed is the words of a limit's command. Numbers in interfaces allocate, so a family keeps those of its own limit and
// of limits that were used recently.
type boxed struct {
	of    bounds
	first []any // the name, the place of the key, and numbers
	last  []any // after the quantity and its mode
}

// recentLimits is how many limits of a name keep their words: a power of 2.
const recentLimits = 64

// boxed returns the words of the limiter's limit.
func (l *limiter) boxed() *boxed {
	if l.declared.of == l.bounds {
		return &l.declared
	}
	mixed := (uint64(l.bounds.units)*31+uint64(l.count))*31 + uint64(l.period)
	place := &l.recent[mixed*0x9E3779B97F4A7C15>>32%recentLimits]
	words := place.Load()
	if words == nil || words.of != l.bounds {
		words = l.bounds.boxed()
		place.Store(words)
	}
	return words
}

func (b *bounds) boxed() *boxed {
	w := &boxed{of: *b, first: []any{b.kind.command(take), nil}}
	switch b.kind {
	case rateKind:
		w.first = append(w.first, b.units-1, b.count)
	case windowKind, quotaKind, slotsKind:
		w.first = append(w.first, b.units)
	}
	if b.day != 0 {
		w.first = append(w.first, "1mo")
	} else {
		w.first = append(w.first, b.period.Milliseconds())
	}
	if b.exact {
		w.last = append(w.last, "EXACT")
	}
	if b.aligned {
		w.last = append(w.last, "ALIGN", max(int64(b.day)-1, 0)*dayMillis)
	}
	w.last = append(w.last, "MS")
	return w
}

const dayMillis = 24 * 60 * 60 * 1000

// words returns the words before the quantity and those after its mode.
func (l *limiter) words() (first, last []any) {
	w := l.boxed()
	if l.zone == nil {
		return w.first, w.last
	}
	now := l.c.now().In(l.zone)
	switch _, east := now.Zone(); {
	case l.day <= 1:
		return w.first, []any{"ALIGN", now.Format("-07:00"), "MS"}
	case l.day <= 28:
		return w.first, []any{"ALIGN", int64(l.day-1)*dayMillis - int64(east)*1000, "MS"}
	}
	// No offset in UTC says what is the last day of a month elsewhere. So the server gets the window's length and beginning.
	begin, end := monthAround(now, int(l.day))
	long := end.Sub(begin).Milliseconds()
	first = slices.Clone(w.first)
	first[len(first)-1] = long
	return first, []any{"ALIGN", begin.UnixMilli() % long, "MS"}
}

// monthAround returns when the month around a time begins and ends, if months begin on this day or their last one.
func monthAround(now time.Time, day int) (begin, end time.Time) {
	of := func(month time.Month) time.Time {
		last := time.Date(now.Year(), month+1, 0, 0, 0, 0, 0, now.Location()).Day()
		return time.Date(now.Year(), month, min(day, last), 0, 0, 0, 0, now.Location())
	}
	if end = of(now.Month()); now.Before(end) {
		return of(now.Month() - 1), end
	}
	return end, of(now.Month() + 1)
}

// send asks the server within the time limit. It is sent at this time of the client's clock, if the limiter remembers.
func (l limiter) send(ctx context.Context, sent time.Duration, key string, n int64, m mode) (r Result, err error) {
	if l.kind == policyKind { // its reply holds more than integers
		r, err = l.sendPolicy(ctx, key, n, m)
	} else {
		r, _, err = l.do(ctx, key, n, m, 0)
	}
	if err == nil && l.denies {
		l.learn(key, n, m, sent, &r)
	}
	return r, err
}

func (l *limiter) sendPolicy(ctx context.Context, key string, n int64, m mode) (Result, error) {
	general, err := l.c.conn.General(ctx, &l.wait, nil, policyKind.command(m), l.prefix+key, n, "MS")
	if err != nil {
		return Result{}, err
	}
	ints, _ := wire.LeadingInts(general)
	r, _, err := l.result(ints, n, m)
	return r, err
}

// do makes the command of one decision, sends it, and reads its reply: a Result, and the sixth integer, if there is
// one. The limit's words are boxed once, so sending allocates little.
func (l *limiter) do(ctx context.Context, key string, n int64, m mode, maxWait time.Duration) (Result, int64, error) {
	cmd, args := l.wait.Call(ctx)
	first, last := l.words()
	args = append(args, first...)
	args[1] = l.prefix + key
	if args[0] = l.kind.command(m); n != 1 { // that is the server's default
		args = append(args, n)
	}
	switch {
	case modeWords[m] != nil:
		args = append(args, modeWords[m])
	case m == reserve:
		args = append(args, "RESERVE", maxWait.Milliseconds())
	case l.lockout != 0 && m == take:
		args = append(args, "LOCKOUT", l.lockout.Milliseconds())
	}
	ints, err := l.c.conn.Do(cmd, append(args, last...))
	if err != nil {
		return Result{}, 0, err
	}
	return l.result(ints, n, m)
}

// result turns a reply to n units in this mode into a Result, and returns the sixth integer, if there is one.
func (b *bounds) result(ints []int64, n int64, m mode) (r Result, sixth int64, err error) {
	six := len(ints) > 5
	if len(ints) < 5 || !six && (m == upTo || m == raise || m == reserve || b.kind == slotsKind) {
		return Result{}, 0, wire.ErrReply
	}
	r = Result{Allowed: ints[0] == 0, Limit: ints[1], Remaining: ints[2], RetryAfter: wire.Millis(ints[3]), ResetAfter: wire.Millis(ints[4]),
		Source: fromServer}
	if six {
		sixth = ints[5]
	}
	switch {
	case m == upTo || m == raise:
		r.Granted = sixth
	case b.kind == slotsKind && sixth == 1:
		r.Renewed = true
	case r.Allowed:
		r.Granted = n
	}
	if r.RetryAfter < 0 {
		r.RetryAfter = Never
		if r.Allowed {
			r.RetryAfter = 0
		}
	}
	return r, sixth, nil
}
