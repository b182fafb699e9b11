package oracle

import (
	"math/big"
	"time"

	"gothrottle/funnel"
)

// Quota models a fixed window as a counter with an end.
type Quota struct {
	used int64
	end  funnel.Micros // since the Unix epoch
}

// State returns the units in use and when the window ends. Both are 0 if a call left nothing in
// use. A window that has ended stays until a call starts another one.
func (o *Quota) State() (used int64, end funnel.Micros) { return o.used, o.end }

// Clone returns a copy.
func (o *Quota) Clone() *Quota {
	c := *o
	return &c
}

// Void reports whether nothing is in use at now.
func (o *Quota) Void(now funnel.Micros) bool { return o.used == 0 || o.end <= now }

// Call decides and applies one call. A call with TooMuch gets no other answer.
func (o *Quota) Call(now funnel.Micros, p funnel.QuotaParams) (v funnel.Verdict) {
	used, end := o.used, o.end
	if o.Void(now) {
		used, end = 0, 0
	}
	if p.Raise {
		p.Force, p.Quantity = true, max(p.Quantity-used, 0)
	}
	take := p.Quantity
	if p.UpTo && take > 0 && used+take > p.Limit {
		take = max(p.Limit-used, 1)
	}
	switch over := used+take > p.Limit; {
	case take < 0:
		v.Granted = max(take, -used)
		switch used += v.Granted; {
		case v.Granted == 0:
		case used == 0:
			end, v.Change = 0, funnel.Forget
		default:
			v.Change = funnel.Store
		}
	case p.Force && take > 0 && used+take > mostInUse:
		return funnel.Verdict{TooMuch: true}
	case take > p.Limit && !p.Force:
		v.Limited, v.RetryAfter = true, funnel.Never
	case over && !p.Force:
		v.Limited, v.RetryAfter = true, (end - now).Nanos()
	case take > 0:
		if used == 0 {
			end = endOfWindow(now, p)
		}
		used += take
		v.Granted, v.Change = take, funnel.Store
		if take != p.Quantity {
			v.RetryAfter = (end - now).Nanos()
		}
	}
	v.Remaining = max(p.Limit-used, 0)
	if used > 0 {
		v.ResetAfter = (end - now).Nanos()
	}
	if v.Change != funnel.Keep {
		*o = Quota{used, end}
	}
	return v
}

// endOfWindow returns when a window ends that starts at now: a period later, or with Align at
// the first instant after now that is a multiple of the period, plus the offset.
func endOfWindow(now funnel.Micros, p funnel.QuotaParams) funnel.Micros {
	switch {
	case !p.Align:
		return now + p.Period
	case p.Months != 0:
		return endOfMonths(now, int(p.Months), p.Offset)
	}
	period := big.NewInt(int64(p.Period))
	n := new(big.Int).Div(big.NewInt(int64(now-p.Offset)), period) // Euclidean: rounds down
	n.Add(n, big.NewInt(1)).Mul(n, period)
	return funnel.Micros(n.Int64()) + p.Offset
}

// endOfMonths returns when the window that contains an instant ends, by the standard library's calendar: the first of all
// windows' beginnings after it. A window has n months, and one begins with January 1970, plus the offset.
func endOfMonths(now funnel.Micros, n int, offset funnel.Micros) funnel.Micros {
	at := time.UnixMicro(int64(now)).UTC()
	month := (at.Year()-1970)*12 + int(at.Month()) - 1
	for month = (month/n - 2) * n; ; month += n {
		if begin := beginOfMonth(month, time.Duration(offset)*time.Microsecond); begin > now {
			return begin
		}
	}
}

// beginOfMonth returns the instant of a month, counted from January 1970, at an offset of less than 31 days. Of a month that
// ends before, it is the last day at the same time.
func beginOfMonth(month int, offset time.Duration) funnel.Micros {
	const day = 24 * time.Hour
	first, after := time.Date(1970, time.Month(month+1), 1, 0, 0, 0, 0, time.UTC), time.Date(1970, time.Month(month+2), 1, 0, 0, 0, 0, time.UTC)
	for first.Add(offset).After(after) || first.Add(offset).Equal(after) {
		offset -= day
	}
	return funnel.Micros(first.Add(offset).UnixMicro())
}
