package throttle

import (
	"context"
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

// appendLimit appends the words that come before a quantity.
func (b *bounds) appendLimit(words []any) []any {
	switch b.kind {
	case policyKind:
		return words
	case rateKind:
		words = append(words, b.units-1, b.count)
	default:
		words = append(words, b.units)
	}
	if b.day != 0 {
		return append(words, "1mo")
	}
	return append(words, b.period.Milliseconds())
}

// last returns the words that come after it, of a window whose zone is UTC.
func (b *bounds) last() []any {
	switch {
	case b.exact:
		return []any{"EXACT"}
	case b.aligned:
		return []any{"ALIGN", max(int64(b.day)-1, 0) * dayMillis}
	}
	return nil
}

const dayMillis = 24 * 60 * 60 * 1000

// words appends the words that come before a quantity now, and returns those that come after it.
func (l *limiter) words(words []any) (first, last []any) {
	first = l.appendLimit(words)
	if l.zone == nil {
		return first, l.bounds.last()
	}
	now := l.c.now().In(l.zone)
	switch _, east := now.Zone(); {
	case l.day <= 1:
		return first, []any{"ALIGN", now.Format("-07:00")}
	case l.day <= 28:
		return first, []any{"ALIGN", int64(l.day-1)*dayMillis - int64(east)*1000}
	}
	// No offset in UTC says what is the last day of a month elsewhere. So the server gets the window's length and beginning.
	begin, end := monthAround(now, int(l.day))
	long := end.Sub(begin).Milliseconds()
	first[len(first)-1] = long
	return first, []any{"ALIGN", begin.UnixMilli() % long}
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

// send asks the server within the time limit.
func (l limiter) send(ctx context.Context, key string, n int64, m mode) (r Result, err error) {
	sent := l.c.conn.Now()
	r, _, err = l.do(ctx, key, n, m, 0)
	if err == nil && l.denies {
		l.learn(key, n, m, sent, &r)
	}
	return r, err
}

// do makes the command of one decision, sends it, and reads its reply: a Result, and the sixth integer, if there is one.
func (l *limiter) do(ctx context.Context, key string, n int64, m mode, maxWait time.Duration) (Result, int64, error) {
	words, last := l.words(append(make([]any, 0, 9), l.kind.command(m), l.prefix+key))
	if n != 1 { // that is the server's default
		words = append(words, n)
	}
	switch {
	case modeWords[m] != nil:
		words = append(words, modeWords[m])
	case m == reserve:
		words = append(words, "RESERVE", maxWait.Milliseconds())
	case l.lockout != 0 && m == take:
		words = append(words, "LOCKOUT", l.lockout.Milliseconds())
	}
	reply, err := l.c.conn.Do(ctx, &l.wait, nil, append(append(words, last...), "MS")...)
	if err != nil {
		return Result{}, 0, err
	}
	return l.result(reply, n, m)
}

// result turns a reply to n units in this mode into a Result, and returns the sixth integer, if there is one.
func (b *bounds) result(reply any, n int64, m mode) (r Result, sixth int64, err error) {
	ints, _ := wire.LeadingInts(make([]int64, 0, 8), reply)
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
