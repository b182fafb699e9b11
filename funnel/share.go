package funnel

// This file holds what a share adds to a limit. A share is part of what another limit has left: a tenant with a weight may
// use weight x left units, so those who use much give way to those who use little.

// MaxWeight bounds the weight of a share.
const MaxWeight = 1000

// Share is a tenant's part of what a limit in front of its own has left.
type Share struct {
	Weight int64 // 1 to MaxWeight
	Limit  int64 // the tenant's own limit
}

// Left returns how many units a tenant that uses some has left: by its own limit, and by its share of what the limit in
// front has left.
func (s *Share) Left(use, front int64) int64 { return max(min(s.Limit, s.Weight*front)-use, 0) }

// Fits reports whether a share lets a tenant that uses some take quantity >= 0 more units. It doesn't heed the tenant's own
// limit.
func (s *Share) Fits(use, quantity, front int64) bool { return use+quantity <= s.Weight*front }

// Needs returns how many units the limit in front must have left for the share to let a tenant take quantity more units.
func (s *Share) Needs(use, quantity int64) int64 { return (use + quantity + s.Weight - 1) / s.Weight }

// Most returns the most units that can ever be left, if the limit in front can have most left.
func (s *Share) Most(most int64) int64 { return min(s.Limit, s.Weight*most) }

// Wait returns how long it takes until units >= 1 fit if no call comes, or Never. It is what a denied call, which stores a
// changed rate, would reply; with stored it is what a peek would, after which usage drains at the state's own rate.
func (p *ThrottleParams) Wait(now Nanos, s *ThrottleState, units int64, stored bool) Nanos {
	if units > p.Limit {
		return Never
	}
	_, v := Throttle(now, *s, &ThrottleParams{Limit: p.Limit - units, Rate: p.Rate, Settle: !stored})
	return v.RetryAfter
}
