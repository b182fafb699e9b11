package serve

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"gothrottle/gateway/internal/engine"
)

// reservedHeader has the rules whose estimates /check has taken, and for each its hold's ticket, or when it was charged: in its
// answer, and in the report. It is one line: nginx before 1.23 copies the first one only.
const reservedHeader = "Gothrottle-Reserved"

// reserved returns what gives the estimates back that asks have been charged, and the words of the header: rule;id=ticket, or
// rule;t=ms since 1970.
func (s *Service) reserved(asks []engine.Ask, at time.Time) (back []engine.Ask, words []string) {
	for i := range asks {
		switch a := &asks[i]; {
		case a.Held != nil:
			s.metrics.holds.WithLabelValues("held").Inc()
			words = append(words, fmt.Sprintf("%s;id=%s", a.Label, a.Held.Ticket()))
		case a.Limit != nil && a.Cost != nil && a.Granted > 0 && a.Fallback == "":
			back = append(back, engine.Ask{Found: a.Found, Hits: -a.Hits})
			words = append(words, fmt.Sprintf("%s;t=%d", a.Label, at.UnixMilli()))
		}
	}
	return back, words
}

// giveBack ends the holds of asks.
func (s *Service) giveBack(asks []engine.Ask) {
	var wg sync.WaitGroup
	for i := range asks {
		if h := asks[i].Held; h != nil {
			wg.Go(func() {
				if h.Close() == nil { // else it lapses
					s.metrics.holds.WithLabelValues("returned").Inc()
				}
			})
		}
	}
	wg.Wait()
}

// reservedBy returns what the header says of a rule: the ticket of a hold, or when the estimate was charged.
func reservedBy(r *http.Request, rule string) (ticket string, at time.Time) {
	for word := range strings.SplitSeq(strings.Join(r.Header.Values(reservedHeader), ","), ",") {
		is, of := strings.CutPrefix(strings.TrimSpace(word), rule+";")
		if ms, err := strconv.ParseInt(strings.TrimPrefix(is, "t="), 10, 64); of && err == nil {
			return "", time.UnixMilli(ms)
		} else if ticket, found := strings.CutPrefix(is, "id="); of && found {
			return ticket, at
		}
	}
	return "", at
}

// settle charges what a request has cost, past the limit if need be: the number in each rule's header, less the estimate that
// /check has reserved. So no report gives back more than an estimate, nor what has left the limit by itself.
func (s *Service) settle(w http.ResponseWriter, r *http.Request) {
	asks, status, err := s.reports(r)
	outcome := "nothing"
	switch s.decide(r.Context(), asks, len(asks)); {
	case err != nil:
		outcome = "invalid"
	case len(asks) > 0:
		outcome = "charged"
	}
	for i := range asks {
		a := &asks[i]
		if a.Report != "" {
			s.metrics.holds.WithLabelValues(a.Report).Inc()
		}
		switch {
		case a.Wrong != nil:
			status, outcome, err = http.StatusBadRequest, "invalid", fmt.Errorf("not charged for the rule %s: %w", a.Label, a.Wrong)
		case a.Fallback != "":
			status, outcome, err = http.StatusServiceUnavailable, "undecided", errors.New("the server is unavailable: not charged for the rule "+a.Label)
		}
	}
	s.metrics.settles.WithLabelValues(outcome).Inc()
	if outcome != "charged" {
		path, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Uri"), "?") // a query may have secrets
		s.engine.Complain("a report of costs charges nothing", "outcome", outcome, "path", path, "error", err)
	}
	if err != nil {
		http.Error(w, err.Error(), status)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// reports returns what a report asks for. An error comes with the status of the answer.
func (s *Service) reports(r *http.Request) (asks []engine.Ask, status int, err error) {
	found, status, err := s.match(r, true, http.StatusBadRequest)
	if err != nil {
		return nil, status, err
	}
	for _, a := range found {
		if a.Limit == nil || a.Cost == nil {
			continue
		}
		text := strings.Join(r.Header.Values(a.Cost.Header), ",") // several are refused: a client may have sent one of them
		if a.Settle = true; text == "" {
			continue
		}
		if a.Total, err = strconv.ParseInt(text, 10, 64); err != nil || a.Total < 0 || a.Total > engine.MaxHits {
			return nil, http.StatusBadRequest, fmt.Errorf("%s is a number from 0 to %d, not %q", a.Cost.Header, int64(engine.MaxHits), text)
		}
		a.Hits = a.Total
		if ticket, at := reservedBy(r, a.Label); ticket != "" {
			a.Ticket = ticket
		} else if estimate := int64(a.Cost.Estimate); !at.IsZero() {
			a.Hits = max(a.Total-estimate, -a.Returnable(estimate, at))
		}
		asks = append(asks, a)
	}
	return asks, 0, nil
}
