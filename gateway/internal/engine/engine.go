// Package engine decides: it asks the server, or does as a rule says while the server is unavailable.
package engine

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"gothrottle/commands/memory"
	"gothrottle/funnel"
	"gothrottle/gateway/internal/rules"
	"gothrottle/throttle"
)

// Options of an Engine.
type Options struct {
	Timeout   time.Duration
	Budget    int64
	LocalKeys uint   // that on_failure: local counts at most
	Prefix    string // of all keys
	Script    bool   // no server needs the module
	Shadow    bool   // no request is refused
}

// Engine decides.
type Engine struct {
	Options
	Memory *memory.Table // in which on_failure: local counts
	Remote store         // the server
	local  store         // in Memory, while the server is unavailable
	Log    *slog.Logger
	rdb    throttle.Processor
	logged sync.Map // by text: the Unix seconds when Complain has logged it
	limits atomic.Pointer[map[*rules.Limit]*bound]
}

// Ask is one descriptor with a limit, and its decision.
type Ask struct {
	rules.Found
	Hits   int64  // at most MaxHits; 0 only looks, and a negative number is given back
	Settle bool   // hits are charged, past the limit if need be, and admitted
	Group  string // of quotas, of which one that is exceeded is enough; "": alone
	Total  int64  // of a report: what the request has cost, of which Hits is the rest

	Unlimited bool // the rule has no limit
	Verdict
	*bound
	Ticket string // of the hold that Settle ends
	Held   *throttle.Hold
	Report string // of a Ticket: what became of it
	holds  bool   // hits are held
	Of     int    // the place of the descriptor whose list of limits this is of
	call   []*Ask // that decides it, unless it is together with others
	inside bool   // the call of a share decides it
}

// Verdict is the decision of an Ask.
type Verdict struct {
	Over      bool
	Remaining int64 // Remaining and Reset are 0 if nobody has counted
	Granted   int64 // hits that were taken
	Reset     time.Duration
	Fallback  rules.Failure // "": the server has decided
	Wrong     error         // why the server would refuse these hits again
}

// Counted says whether somebody has counted: the server, or this process while the server is unavailable.
func (v *Verdict) Counted() bool { return v.Fallback == "" || v.Fallback == rules.FailLocal }

// A call of a limit may have MaxHits units, and one of several limits maxParts of them.
const (
	MaxHits  = 1_000_000_000_000
	maxParts = 32
)

// New returns an Engine that asks a server.
func New(rdb throttle.Processor, o Options, log *slog.Logger) (*Engine, error) {
	options := []throttle.Option{throttle.KeyPrefix(o.Prefix), throttle.Logger(log), throttle.Timeout(o.Timeout)}
	if o.Budget != 0 {
		options = append(options, throttle.Budget(o.Budget, time.Second))
	}
	if o.Script {
		options = append(options, throttle.Script())
	}
	remote, err := throttle.New(rdb, options...)
	if err != nil {
		return nil, err
	}
	e := &Engine{Options: o, Memory: memory.NewTable(int(max(o.LocalKeys, 1))), Remote: remote, Log: log, rdb: rdb}
	e.limits.Store(&map[*rules.Limit]*bound{})
	e.local, err = throttle.New(here{e.Memory}, throttle.Logger(log), throttle.DenyCache(false))
	return e, err
}

// here is the table of this process, for package throttle.
type here struct{ *memory.Table }

func (h here) Process(_ context.Context, cmd redis.Cmder) error {
	err := h.Table.Process(funnel.Micros(time.Now().UnixMicro()), cmd)
	cmd.SetErr(err)
	return err
}

// Load makes the limiters of rules, so that no decision has to look for them. It returns an error if the server would refuse
// one; those before stay then.
func (e *Engine) Load(set *rules.Set) error {
	limits := map[*rules.Limit]*bound{}
	for _, m := range set.Limits {
		if m.Unlimited {
			continue
		}
		limits[m] = e.bind(m)
		if _, err := limits[m].at[e.Remote].Info(); err != nil {
			return fmt.Errorf("%s: rule %s: %w", m.Place, m.Path, err)
		}
	}
	e.limits.Store(&limits)
	return nil
}

// Probe gives back what nobody has taken, by each kind of limiter that the rules have, and returns the first error: a replica
// refuses that. If they have none, it asks as for a limit that comes with a request.
func (e *Engine) Probe(ctx context.Context) error {
	kinds := map[rules.Algorithm]bool{}
	for m := range *e.limits.Load() {
		kinds[m.Algorithm] = true
	}
	if len(kinds) == 0 {
		kinds[rules.FixedWindow] = true
	}
	for kind := range kinds {
		a := &Ask{Found: rules.Found{Limit: &rules.Limit{Units: 1, Period: time.Second}, Key: "gothrottle.probe", Holder: "gothrottle.probe"}, Hits: -1}
		a.Algorithm = kind
		a.bound = e.bind(a.Limit)
		if _, err := e.askOne(ctx, e.Remote, a); err != nil {
			return err
		}
	}
	return nil
}

// transient are the beginnings of a server's errors that pass by themselves.
var transient = []string{"LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY", "OOM", "MISCONF", "NOREPLICAS", "ERR max number of clients"}

// Refuses says whether an error of Check or Probe stays until somebody changes the server or the settings. Plain words at a port
// for TLS, or the reverse, look like a server that is unavailable.
func Refuses(err error) bool {
	var reply redis.Error // a Sentinel that does not know the name of the master has one, too
	var untrusted *tls.CertificateVerificationError
	var far *net.OpError
	return errors.Is(err, throttle.ErrNoModule) || errors.As(err, &untrusted) ||
		errors.As(err, &far) && far.Op == "remote error" || // of TLS: the server wants another certificate
		errors.As(err, &reply) && !slices.ContainsFunc(transient, func(begin string) bool { return strings.HasPrefix(reply.Error(), begin) })
}

// Replace takes the limits away that another limit of the request replaces, and those of rules without one.
func (e *Engine) Replace(asks []Ask) {
	var replaced []string
	for i := range asks {
		if asks[i].Limit != nil {
			replaced = append(replaced, asks[i].Replaced...)
		}
	}
	for i := range asks {
		switch a := &asks[i]; {
		case a.Limit == nil:
		case a.Limit.Unlimited:
			a.Limit, a.Unlimited = nil, true
		case a.Name != "" && slices.Contains(replaced, a.Name):
			a.Limit = nil
		default:
			a.bound = e.bound(a.Limit)
			a.holds = a.Holds() > 0 && a.Hits > 0 && !a.Settle && a.Units > 0 && !e.trial(a)
		}
	}
}

// Decide replaces limits, and sets the verdicts of the others. Limits of one tag are taken from together, or none of them is,
// and a share is with the limits around it. The rest is decided at the same time, except that asks of one key keep their order.
func (e *Engine) Decide(ctx context.Context, asks []Ask) {
	e.Replace(asks)
	var refused map[string]bool
	var failed error
	if slices.ContainsFunc(asks, func(a Ask) bool { return a.first() }) {
		refused, failed = e.decideFirst(ctx, asks)
	} else if len(asks) == 1 && asks[0].Limit != nil {
		_ = e.decideSome(ctx, e.around(&asks[0], asks), nil, false)
		return
	}
	var wg sync.WaitGroup
	for _, calls := range e.calls(asks) {
		wg.Go(func() {
			failed := failed
			for _, call := range calls {
				failed = e.decideSome(ctx, call, failed, call[0].together() && refused[call[0].Tag])
			}
		})
	}
	wg.Wait()
}

// group is asks that one goroutine decides: those of one key, or of one tag that take all or nothing, which have no algorithm.
type group struct {
	key       string
	algorithm rules.Algorithm
	period    time.Duration
}

// calls returns the asks that are decided by one call each, by their groups.
func (e *Engine) calls(asks []Ask) map[group][][]*Ask {
	for i := range asks {
		if a := &asks[i]; a.Limit != nil {
			a.call = e.around(a, asks)
		}
	}
	groups := map[group][][]*Ask{}
	for i := range asks {
		a := &asks[i]
		if a.Limit == nil || a.inside || a.first() { // which are decided already
			continue
		}
		of := group{a.call[0].Key, a.call[0].Algorithm, a.call[0].Period}
		if a.together() {
			of = group{key: a.Tag}
		}
		calls := groups[of]
		if last := len(calls) - 1; last >= 0 && a.together() && len(calls[last]) < maxParts && !a.anotherHolder(calls[last]) {
			calls[last] = append(calls[last], a)
		} else {
			groups[of] = append(calls, a.call)
		}
	}
	return groups
}

// anotherHolder says whether a call takes a slot of the ask's key for another holder. A call names a key once.
func (a *Ask) anotherHolder(call []*Ask) bool {
	return a.Holder != "" && slices.ContainsFunc(call, func(b *Ask) bool { return b.Key == a.Key && b.Holder != a.Holder })
}

// around returns an ask after those of the limits that it has a share of, outermost first. If the request asks for the same
// of such a limit, it is decided by the share's call.
func (e *Engine) around(a *Ask, asks []Ask) []*Ask {
	call := []*Ask{a}
	for f := a.Above; f != nil; f = f.Above {
		outer := &Ask{Found: *f, Hits: a.Hits, Settle: a.Settle, bound: e.bound(f.Limit)}
		for i := range asks {
			if b := &asks[i]; b.Limit == f.Limit && b.Key == f.Key && b.Hits == a.Hits && b.Settle == a.Settle {
				outer, b.inside = b, true
			}
		}
		call = append(call, outer)
	}
	slices.Reverse(call)
	return call
}

// decideSome decides asks by one call, or without one if a call before has failed: a server that hangs would take the time
// again. It returns why the server has not decided. looks says that another ask refuses, so that these take nothing.
func (e *Engine) decideSome(ctx context.Context, asks []*Ask, failed error, looks bool) error {
	ask := e.askSome
	if looks {
		ask = e.look
	}
	if failed == nil {
		failed = ask(ctx, e.Remote, asks)
	}
	if failed != nil {
		e.fallBack(ctx, asks, failed, looks)
	}
	if errors.Is(failed, throttle.ErrParams) { // of these asks only
		return nil
	}
	return failed
}

// askSome decides asks by one call at a store.
func (e *Engine) askSome(ctx context.Context, at store, asks []*Ask) (err error) {
	switch own := asks[len(asks)-1]; {
	case own.Above != nil:
		return e.askShared(ctx, at, asks)
	case len(asks) > 1:
		return e.askAll(ctx, at, asks)
	default:
		own.Verdict, err = e.askOne(ctx, at, own)
		return err
	}
}

// together says whether the ask is one of several that take all or nothing.
func (a *Ask) together() bool {
	return a.Tag != "" && (a.Hits > 0 || a.Hits == 0 && a.Algorithm != rules.Concurrency) && !a.Settle && !a.Shadow && !a.Quota && !a.holds && a.Above == nil
}

// fallBack sets the verdicts of asks that the server has not decided. Those of one call take all or nothing, too.
func (e *Engine) fallBack(ctx context.Context, asks []*Ask, cause error, looks bool) {
	own := asks[len(asks)-1]
	if !errors.Is(cause, throttle.ErrUnavailable) && ctx.Err() == nil {
		e.Complain("a decision failed, and the rule's on_failure decides", "rule", own.Label, "error", cause)
	}
	var local []*Ask
	refuses := (*Ask)(nil)
	for _, a := range asks {
		a.Verdict = Verdict{Fallback: a.OnFailure}
		switch {
		case a.Units == 0 && a.Hits > 0 && !a.Settle && (!a.Charge || a.OnFailure != rules.FailLocal): // which needs no server
			a.Verdict, refuses = a.blocked(), a
		case a.OnFailure == rules.FailLocal:
			local = append(local, a)
		case a.OnFailure == rules.FailClosed && !a.Settle && (a.Hits > 0 || a.Hits == 0 && a.Late):
			a.Over, a.Reset, refuses = true, time.Second, a
		}
	}
	ask, by := e.askSome, rules.FailLocal
	if refuses != nil || looks { // then these take nothing
		ask = e.look
	}
	if len(local) > 0 && ask(ctx, e.local, local) != nil {
		by = rules.FailOpen // nobody has counted
	}
	for _, a := range local {
		a.Fallback = by
	}
	if errors.Is(cause, throttle.ErrParams) {
		for _, a := range asks {
			a.Wrong = cause
		}
	}
	if own.Above != nil && refuses != nil { // a limit around a share refuses it, too
		own.Verdict = refuses.Verdict
	}
}

// Complain logs an error, each text at most once in 10 s.
func (e *Engine) Complain(text string, about ...any) {
	now := time.Now().Unix()
	last, found := e.logged.LoadOrStore(text, now)
	if found && (now-last.(int64) <= 10 || !e.logged.CompareAndSwap(text, last, now)) {
		return
	}
	e.Log.Error(text, about...)
}
