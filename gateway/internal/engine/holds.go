package engine

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"gothrottle/throttle"
)

// A Report is one of these.
const (
	Settled = "settled"
	Already = "already" // by another report: this one charges nothing
	Overdue = "overdue" // nobody knows whether another report has charged
)

// first says whether the ask is decided before others of its tag: if it refuses, they take nothing.
func (a *Ask) first() bool { return a.Limit != nil && a.holds && a.Tag != "" }

// decideFirst decides the asks that are first. It returns the tags of those that refuse, and why the server hasn't decided.
func (e *Engine) decideFirst(ctx context.Context, asks []Ask) (refused map[string]bool, failed error) {
	var wg sync.WaitGroup
	errs := make([]error, len(asks))
	for i := range asks {
		if asks[i].first() {
			wg.Go(func() { errs[i] = e.decideSome(ctx, []*Ask{&asks[i]}, nil, false) })
		}
	}
	wg.Wait()
	refused = map[string]bool{}
	for i := range asks {
		failed = cmp.Or(failed, errs[i])
		if asks[i].first() && asks[i].Over {
			refused[asks[i].Tag] = true
		}
	}
	return refused, failed
}

// hold holds hits until a report comes, or the hold lapses.
func (e *Engine) hold(ctx context.Context, a *Ask) (Verdict, error) {
	h, err := a.at[e.Remote].(counter).Hold(ctx, a.Key, a.Hits)
	if denied := (*throttle.DeniedError)(nil); errors.As(err, &denied) {
		return verdictOf(denied.Result, true), nil
	} else if err != nil {
		return Verdict{}, err
	}
	a.Held = h
	v := verdictOf(h.Result, false)
	v.Granted = a.Hits
	return v, nil
}

// settleHold ends the hold of a Ticket, and charges the hits in its place. Once the hold has lapsed, a new one is charged,
// unless the rule ignores such reports.
func (e *Engine) settleHold(ctx context.Context, at store, a *Ask) (Verdict, error) {
	if at != e.Remote { // which has the hold
		return Verdict{}, nil
	}
	report := Settled
	h, err := e.settleBy(ctx, a, a.Ticket)
	if errors.Is(err, throttle.ErrLost) && !errors.Is(err, throttle.ErrUnavailable) && ctx.Err() == nil {
		charges := a.Cost.Overdue != "ignore"
		report = Overdue
		e.Complain("a report came after its hold had lapsed", "rule", a.Label, "charged", charges)
		if !charges {
			a.Report, a.Total = report, 0
			return Verdict{Remaining: a.Units}, nil
		}
		h, err = e.settleBy(ctx, a, "")
	}
	if err != nil {
		return Verdict{}, err
	}
	if a.Report = report; !h.Allowed {
		a.Report, a.Total = Already, 0
	}
	v := verdictOf(h.Result, false)
	v.Granted = a.Total
	return v, nil
}

// settleBy makes one try, and another one if there is time: the caller may report again.
func (e *Engine) settleBy(ctx context.Context, a *Ask, ticket string) (*throttle.Hold, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*e.Timeout)
	defer cancel()
	h, err := e.Remote.Resume(ticket, a.at[e.Remote].(counter).Part(a.Key, 0))
	if err == nil {
		err = h.Settle(ctx, a.Hits)
	}
	return h, err
}
