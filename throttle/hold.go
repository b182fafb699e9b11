package throttle

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"gothrottle/throttle/internal/wire"
)

// Hold is units held for a cost that isn't known yet. It lapses if this process dies.
type Hold struct {
	Result         // of the call that took it; of a resumed one, of Settle: denied if it had been settled before
	l      limiter // the first part's
	seen   *family // whose observer sees Settle
	key    string
	parts  []Part // that the server counts
	settings
	stop    context.CancelFunc // of renewals
	renewed chan struct{}      // closed when nothing renews any more
	turn    chan struct{}      // has room for the one Settle or Close that runs
	ended   bool               // by Settle or Close
	settled bool               // err is the outcome of Settle
	unsure  bool               // a try to settle got no reply
	err     error

	mu     sync.Mutex // of what Ticket reads while the hold is renewed
	id     string     // "" if nothing is held
	lapses time.Time  // when nobody knows any more whether the server still has it
}

// Hold takes n units of a key until their cost is known, or returns a *DeniedError if they don't fit beside what is in
// use and held; other verbs don't see what is held. It is renewed until Settle or Close: see Holds. Parts are further
// levels, such as a team's limit, which must all admit it. Timeout and fallback are the limiter's.
func (a counts) Hold(ctx context.Context, key string, n int64, parts ...Part) (h *Hold, err error) {
	var r Result
	defer a.l.observe("Hold", key, time.Now(), &r, &err)
	if err := a.l.broken(); err != nil {
		return nil, err
	}
	h, r, err = a.l.c.hold(ctx, append([]Part{a.Part(key, n)}, parts...))
	if err == nil && !r.Allowed {
		return nil, &DeniedError{r}
	}
	return h, err
}

// Resume returns the hold of a Ticket, to end it in another process: with its parts, whatever their units. The ticket ""
// is of a hold that holds nothing.
func (c *Client) Resume(ticket string, parts ...Part) (*Hold, error) {
	h, _, err := c.newHold(context.Background(), "Resume", parts)
	if err != nil || ticket == "" {
		return h, err
	}
	id, end, _ := strings.Cut(ticket, ".")
	ms, err := strconv.ParseInt(end, 36, 64)
	if err != nil || id == "" {
		return nil, params("%q is no Ticket", ticket)
	}
	h.id, h.lapses, h.unsure = id, time.UnixMilli(ms), true // somebody may have settled it
	return h, nil
}

// newHold returns a Hold that holds nothing, and the Result if its limits are Unlimited or Suspended.
func (c *Client) newHold(ctx context.Context, v string, parts []Part) (h *Hold, r Result, err error) {
	if err := c.checkAll(ctx, v, parts); err != nil {
		return nil, Result{}, err
	}
	first := parts[0]
	h = &Hold{l: first.l, seen: first.l.family, key: first.key, settings: first.l.settings, stop: func() {}, renewed: make(chan struct{}), turn: make(chan struct{}, 1)}
	close(h.renewed)
	for _, p := range parts {
		_, err := p.heldKey()
		switch h.ttl, h.longest = max(h.ttl, p.l.ttl), max(h.longest, p.l.longest); {
		case p.share != 0 || p.l.kind == slotsKind || v == "Hold" && p.n < 1:
			return nil, Result{}, params("%s needs parts of at least one unit of a Rate, a Window or a Quota, without Share", v)
		case err != nil:
			return nil, Result{}, err
		case p.l.answer == asks:
			h.parts = append(h.parts, p)
		case p.l.answer == refuses || r.Source == "":
			r = p.l.fixed(first.n)
		}
	}
	return h, r, nil
}

func (c *Client) hold(ctx context.Context, parts []Part) (h *Hold, r Result, err error) {
	h, r, err = c.newHold(ctx, "Hold", parts)
	if err != nil {
		return nil, Result{}, err
	}
	if len(h.parts) > 0 && r.RetryAfter != Never { // else a limit is Suspended, or all are Unlimited
		r, err = h.take(ctx, false)
	}
	if err != nil {
		r, err = h.l.otherwise("Hold", parts[0].n, err, func(here limiter) (Result, error) {
			h.move(here)
			return h.take(ctx, false)
		})
	}
	if err != nil || !r.Allowed {
		return nil, r, err
	}
	if h.Result = r; r.Source == fromServer || r.Source == failedLocal {
		h.begin()
	}
	if c.closed.Load() { // in between
		return nil, Result{}, errors.Join(wire.ErrClosed, h.Close())
	}
	return h, r, nil
}

// move lets this process decide, by shares of the limits.
func (h *Hold) move(here limiter) {
	for i := range h.parts {
		l := &h.parts[i].l
		*l = limiter{here.c.newFamily(l.name, here.settings), l.bounds.part(h.share)}
	}
	h.l = here
}

// begin renews the hold in the background.
func (h *Hold) begin() {
	if h.longest == 0 { // others may end it, also after this Client
		return
	}
	h.l.c.leases.Store(h, nil)
	ctx, stop := context.WithTimeout(context.Background(), h.longest)
	h.stop, h.renewed = stop, make(chan struct{})
	go h.renew(ctx)
}

// renew renews the hold until the context ends, or it is lost.
func (h *Hold) renew(ctx context.Context) {
	defer close(h.renewed)
	pause := h.ttl / 3
	for h.lasts() && sleep(pause, ctx.Done()) {
		sent := time.Now()
		r, err := h.ask(ctx, nil, func(p *Part) []any { return p.slots(h.id, h.ttl, 0) }) // 0: a late one takes nothing
		switch pause = h.ttl / 3; {
		case err == nil && r.Allowed:
			h.set(h.id, sent)
		case mayHold(err):
			pause = h.ttl / 10
		default:
			return
		}
	}
}

// take takes the units of all parts, or one of each. A try without a reply is forgotten: each has an id of its own.
func (h *Hold) take(ctx context.Context, one bool) (Result, error) {
	id, sent := rand.Text(), time.Now()
	r, err := h.ask(ctx, func(p *Part) []any { return p.units(0) }, func(p *Part) []any {
		n := p.n
		if one {
			n = 1
		}
		return append(p.slots(id, h.ttl, n), "SHARE", 1)
	})
	switch {
	case err == nil && r.Allowed:
		h.set(id, sent)
	case mayHold(err):
		there := &Hold{l: h.l, parts: slices.Clone(h.parts)} // this process may decide in the meantime: see move
		h.l.c.conn.Start(func() { _ = there.giveBack(id) })
	}
	return r, err
}

// set notes what the server holds, by a call that was sent at this time.
func (h *Hold) set(id string, sent time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.id, h.lapses = id, sent.Add(h.ttl-h.ttl/10) // the server's clock may be ahead
}

// lasts reports whether the hold can't have lapsed yet. If the machine was suspended, only the wall clock knows.
func (h *Hold) lasts() bool {
	now := time.Now()
	return now.Before(h.lapses) && now.Round(0).Before(h.lapses.Round(0))
}

// Ticket returns secret words by which Resume finds the hold: its id, and when it lapses unless it is renewed. They are
// "" if the server holds nothing.
func (h *Hold) Ticket() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.id == "" || h.Source == failedLocal {
		return ""
	}
	return h.id + "." + strconv.FormatInt(h.lapses.UnixMilli(), 36)
}

// Settle ends the hold and charges each part the cost, 0 to 10^12 units, past the limit if need be. It repeats the call
// until there is a reply or the hold lapses. Without an error the cost is counted, once; after ErrLost nobody knows. After
// other errors it isn't counted, and Settle may be called again: with the same cost, if ctx has ended. A hold that was
// lost, or holds nothing, is charged by a new one of one unit, which may be denied.
func (h *Hold) Settle(ctx context.Context, cost int64) (err error) {
	var r Result
	defer h.seen.observe("Settle", h.key, time.Now(), &r, &err)
	if cost < 0 {
		return params("Settle does not take %d units", cost)
	} else if err := h.l.check(ctx, "Settle", cost, force); err != nil {
		return err
	}
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return fmt.Errorf("throttle: %w", ctx.Err())
	}
	if h.end(); !h.settled && len(h.parts) > 0 {
		if h.err = h.charge(ctx, cost); h.err != nil {
			h.l.c.conn.Unsettled(&h.l.wait, h.err)
		}
		h.settled = h.err == nil || errors.Is(h.err, ErrLost)
	}
	if h.err == nil {
		r = Result{Allowed: true, Granted: cost, Source: fromServer}
		if h.Source == failedLocal || h.Source == fromLimit {
			r.Source, r.Cause = h.Source, h.Cause
		}
	}
	return h.err
}

// charge settles until the outcome is known, or can't be known any more.
func (h *Hold) charge(ctx context.Context, cost int64) error {
	for {
		if h.id == "" {
			if r, err := h.take(ctx, true); err != nil {
				return err
			} else if !r.Allowed {
				return &DeniedError{r}
			}
			h.unsure = false
		}
		r, err := h.ask(ctx, func(p *Part) []any { return p.units(cost) }, func(*Part) []any { return []any{"RELEASE", h.id} }, "FORCE")
		lasts := h.lasts()
		switch {
		case err == nil && (r.Allowed || h.unsure && lasts): // now, or by the try without a reply
			if h.Source == "" { // who has resumed it
				h.Result = r
			}
			return nil
		case err == nil && !h.unsure: // it was lost, and nothing was charged
			h.set("", time.Time{})
			continue
		case !mayHold(err) && !h.unsure:
			return err
		case err == nil || ctx.Err() == nil && (!lasts || !mayHold(err)):
			return fmt.Errorf("%w: its cost may or may not be counted: %w", ErrLost, cmp.Or(err, errLapsed))
		}
		if h.unsure = h.unsure || !wire.Unsent(err); !sleep(min(h.ttl/20, time.Second), ctx.Done()) {
			return fmt.Errorf("throttle: %w", ctx.Err())
		}
	}
}

var errLapsed = errors.New("it has lapsed")

// Close gives the units back, unless Settle has begun.
func (h *Hold) Close() error {
	if h == nil {
		return nil
	}
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	default: // Settle runs
		return nil
	}
	if h.ended {
		return nil
	}
	h.end()
	if h.settled, h.err = true, params("the Hold is closed"); h.id == "" {
		return nil
	}
	return h.giveBack(h.id)
}

// end lets nothing renew the hold any more.
func (h *Hold) end() {
	h.ended = true
	h.stop()
	<-h.renewed
	h.l.c.leases.Delete(h)
}

func (h *Hold) giveBack(id string) error {
	var calls []func() error
	for _, p := range h.parts {
		key, _ := p.heldKey()
		calls = append(calls, func() error {
			_, err := h.l.c.conn.Do(context.Background(), &h.l.wait, nil, "GO.RELEASE", key, id)
			return err
		})
	}
	return wire.AtOnce(calls)
}

// ask sends GO.ALL with clauses of each part: at its key, if need be, and at the key of what is held.
func (h *Hold) ask(ctx context.Context, units, held func(*Part) []any, last ...any) (r Result, err error) {
	if h.l.c.closed.Load() {
		return Result{}, wire.ErrClosed
	}
	var each []keyed
	for i := range h.parts {
		p := &h.parts[i]
		if units != nil {
			each = append(each, keyed{p.l.prefix + p.key, units(p)})
		}
		key, _ := p.heldKey()
		each = append(each, keyed{key, held(p)})
	}
	words, more, err := h.l.c.allWords("Hold", each, append(last, "MS")...)
	if err != nil {
		return Result{}, err
	}
	reply, err := h.l.c.conn.Do(ctx, &h.l.wait, more, words...)
	if err == nil {
		r, _, err = h.l.result(reply, h.parts[0].n, take)
	}
	return r, err
}

// units returns the words of a part's limit for n units.
func (p Part) units(n int64) []any {
	p.n = n
	return p.appendWords(nil, false)
}

// slots returns the words of what is held of a part.
func (p *Part) slots(id string, ttl time.Duration, n int64) []any {
	return []any{"LEASE", p.l.bounds.units, ttl.Milliseconds(), id, n}
}

// heldKey returns the key of what is held, which is in the slot of the part's key.
func (p *Part) heldKey() (string, error) {
	key := p.l.prefix + p.key
	switch {
	case wire.HashTag(key) != key:
		return key + ":held", nil
	case strings.ContainsAny(key, "{}"):
		return "", params("the key %q has a brace but no hash tag: a Hold needs another", key)
	}
	return "{" + key + "}:held", nil
}
