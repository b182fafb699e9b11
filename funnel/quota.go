package funnel

// QuotaState is a fixed window: Used units until End, in µs since the Unix epoch. The
// zero value is a window that has ended.
type QuotaState struct {
	Used int64
	End  int64
}

// Quota decides one call by a fixed window: at most limit units until the window ends,
// then a new one. At its end instant a window is over. A window starts at the first
// admitted call; with align it ends at the next multiple of period since the Unix
// epoch plus offset. A changed period takes effect with the next window.
//
// A fixed window admits up to twice the limit around its end; that is what it is.
//
// now, period, offset in µs; limit 1 to MaxLimit; period 1000 to MaxPeriod/1000;
// |offset| at most MaxPeriod/1000; |quantity| <= MaxLimit + 1.
func Quota(now int64, s QuotaState, limit, period, quantity int64, align bool, offset int64) (QuotaState, Verdict) {
	if now >= s.End {
		s = QuotaState{}
	}
	v := Verdict{RetryAfter: Never}
	next := s
	switch {
	case quantity < 0:
		v.Granted = -min(-quantity, s.Used)
		next.Used += v.Granted
		v.Change = Store
		if next.Used == 0 {
			v.Change = Forget
		}
	case quantity > limit:
		v.Limited = true
	case quantity > limit-s.Used:
		v.Limited = true
		v.RetryAfter = (s.End - now) * micro
	case quantity > 0:
		if s.Used == 0 {
			next.End = windowEnd(now, period, align, offset)
		}
		next.Used += quantity
		v.Granted = quantity
		v.Change = Store
	}
	v.Remaining = max(limit-next.Used, 0)
	if next.Used > 0 {
		v.ResetAfter = (next.End - now) * micro
	}
	return next, v
}

// windowEnd returns when a window that starts at now ends.
func windowEnd(now, period int64, align bool, offset int64) int64 {
	if !align {
		return now + period
	}
	since := (now - offset) % period
	if since < 0 {
		since += period
	}
	return now - since + period
}
