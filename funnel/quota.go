package funnel

// QuotaState is a fixed window: Used units until End. The zero value is a window that has ended.
type QuotaState struct {
	Used int64
	End  Micros // since the Unix epoch
}

// QuotaParams are the parameters of one call.
type QuotaParams struct {
	Limit    int64  // 1 to MaxLimit
	Period   Micros // 1000 to MaxPeriod; ignored with Months
	Quantity int64  // at most MaxLimit + 1 either way; 0 peeks, a negative quantity refunds
	UpTo     bool   // take what is left if that is less than Quantity
	Force    bool   // charge Quantity, past the limit if need be; excludes UpTo
	Raise    bool   // force the units that are missing to Quantity, which is not negative; excludes UpTo and Force
	Align    bool   // windows end at multiples of Period since the Unix epoch, plus Offset
	Months   int16  // if not 0: windows have 1 to MaxMonths calendar months; only with Align
	Offset   Micros // at most MaxPeriod either way, with Months more than -28 and less than 31 days; only with Align
}

// MaxMonths bounds the calendar months of a window: 100 years.
const MaxMonths = 1200

// Quota decides one call by a fixed window: at most Limit units until the window ends, then
// a new window starts. A window is over at the instant of its end. A window starts at the first
// admitted call; with Align it ends at the next multiple of Period, or of Months counted from
// January 1970, plus Offset. A changed period takes effect with the next window.
//
// With Force every call is admitted, a peek too. The verdict is TooMuch if more than MaxInUse would be in use.
//
// A fixed window admits up to twice the limit around its end.
func Quota(now Micros, s QuotaState, p QuotaParams) (next QuotaState, v Verdict) {
	if now >= s.End {
		s = QuotaState{}
	}
	next = s
	if p.Raise {
		p.Force, p.Quantity = true, max(p.Quantity-s.Used, 0)
	}
	quantity, left := p.Quantity, p.Limit-s.Used
	if p.UpTo && quantity > 0 {
		quantity = grantUpTo(quantity, left)
	}
	switch {
	case quantity < 0:
		v.Granted = -min(-quantity, s.Used)
		next.Used += v.Granted
		v.Change = refunded(v.Granted, next.Used == 0)
	case p.Force && quantity > 0 && quantity > MaxInUse-s.Used:
		v.TooMuch = true
	case quantity > p.Limit && !p.Force:
		v.Limited, v.RetryAfter = true, Never
	case quantity > left && !p.Force:
		v.Limited, v.RetryAfter = true, (s.End - now).Nanos()
	case quantity > 0:
		if s.Used == 0 {
			next.End = p.windowEnd(now)
		}
		next.Used += quantity
		v.Granted, v.Change = quantity, Store
		if quantity < p.Quantity {
			v.RetryAfter = (next.End - now).Nanos()
		}
	}
	v.Remaining = max(p.Limit-next.Used, 0)
	if next.Used > 0 {
		v.ResetAfter = (next.End - now).Nanos()
	}
	return next, v
}

// windowEnd returns when a window that starts at now ends.
func (p *QuotaParams) windowEnd(now Micros) Micros {
	switch {
	case !p.Align:
		return now + p.Period
	case p.Months != 0:
		return monthsEnd(now, int64(p.Months), p.Offset)
	}
	since := (now - p.Offset) % p.Period
	if since < 0 {
		since += p.Period
	}
	return now - since + p.Period
}
