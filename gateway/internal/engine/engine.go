// Package engine decides: it asks the server, or does as a rule says while the server is away.
package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	Timeout time.Duration
	Budget  int64
	Prefix  string // of all keys
	Script  bool   // no server needs the module
}

// Engine decides.
type Engine struct {
	Script bool
	Memory *memory.Server // in which on_failure: local counts
	remote *throttle.Client
	local  *throttle.Client // over Memory
	log    *slog.Logger
	logged atomic.Int64 // Unix seconds of the last error that was logged
	limits atomic.Pointer[map[*rules.Limit]*bound]
}

// Ask is one descriptor with a limit, and its decision.
type Ask struct {
	rules.Found
	Hits   int64 // at most MaxHits; 0 only looks, and a negative number is given back
	Settle bool  // hits are charged, past the limit if need be, and admitted

	Unlimited bool // the rule has no limit
	Verdict
	*bound
	call   []*Ask // that decides it, unless it is together with others
	inside bool   // the call of a share decides it
}

// Verdict is the decision of an Ask.
type Verdict struct {
	Over      bool
	Remaining int64
	Granted   int64 // hits that were taken
	Reset     time.Duration
	Fallback  rules.Failure // "": the server has decided
	Wrong     error         // why the server would refuse these hits again
}

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
	e := &Engine{Script: o.Script, Memory: memory.NewServer(), remote: remote, log: log}
	if e.local, err = throttle.New(inMemory{e.Memory}, throttle.Logger(log)); err != nil {
		return nil, err
	}
	e.limits.Store(&map[*rules.Limit]*bound{})
	return e, nil
}

// Check asks each node of the server whether it has the module, or runs the script.
func (e *Engine) Check(ctx context.Context) error { return e.remote.Check(ctx) }

// Close gives the units of budgets back.
func (e *Engine) Close() error { return e.remote.Close() }

// inMemory is a server in this process.
type inMemory struct{ *memory.Server }

// Process runs a command of package throttle.
func (m inMemory) Process(_ context.Context, cmd redis.Cmder) error {
	err := m.Server.Process(funnel.Micros(time.Now().UnixMicro()), cmd)
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
		if err := limits[m].remote.Info().Err; err != nil {
			return fmt.Errorf("%s: rule %s: %w", m.Place, m.Path, err)
		}
	}
	e.limits.Store(&limits)
	return nil
}

// Probe takes nothing at a key that nobody uses, by each kind of limiter that the rules have, and returns the first error.
// If they have none, it asks as for a limit that comes with a request.
func (e *Engine) Probe(ctx context.Context) error {
	asked := map[rules.Algorithm]bool{}
	for m := range *e.limits.Load() {
		if !asked[m.Algorithm] {
			asked[m.Algorithm] = true
			if err := e.probe(ctx, *m); err != nil {
				return err
			}
		}
	}
	if len(asked) > 0 {
		return nil
	}
	m := rules.Limit{Units: 1, Period: time.Second}
	m.Algorithm = rules.FixedWindow
	return e.probe(ctx, m)
}

// probe settles nothing, or gives back a slot that nobody holds: a replica refuses both.
func (e *Engine) probe(ctx context.Context, m rules.Limit) error {
	m.Lockout = nil // Settle doesn't work with it
	a := &Ask{Found: rules.Found{Key: "gothrottle.probe", Holder: "gothrottle.probe"}, Hits: -1}
	by := newLimiter(e.remote, &m)
	if c, ok := by.(counter); ok {
		_, err := c.Settle(ctx, a.Key, 0)
		return err
	}
	_, err := askSlot(ctx, by.(throttle.Slots), a)
	return err
}

// Refuses says whether an error of Check or Probe stays until somebody changes the server or the settings.
func Refuses(err error) bool {
	var reply redis.Error
	return errors.Is(err, throttle.ErrNoModule) || errors.Is(err, throttle.ErrNoScript) || errors.As(err, &reply) &&
		slices.Contains([]string{"NOAUTH", "WRONGPASS", "NOPERM", "READONLY"}, strings.Fields(reply.Error() + " -")[0])
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
		}
	}
}

// Decide replaces limits, and sets the verdicts of the others. Limits of one tag are taken from together, or none of them is,
// and a share is with the limits around it. The rest is decided at the same time, except that asks of one key keep their order.
func (e *Engine) Decide(ctx context.Context, asks []Ask) {
	e.Replace(asks)
	if len(asks) == 1 && asks[0].Limit != nil {
		_ = e.decideSome(ctx, e.around(&asks[0], asks), nil)
		return
	}
	var wg sync.WaitGroup
	for _, calls := range e.calls(asks) {
		wg.Go(func() {
			var failed error
			for _, call := range calls {
				failed = e.decideSome(ctx, call, failed)
			}
		})
	}
	wg.Wait()
}

// calls returns the asks that are decided by one call each, by their groups.
func (e *Engine) calls(asks []Ask) map[string][][]*Ask {
	for i := range asks {
		if a := &asks[i]; a.Limit != nil {
			a.call = e.around(a, asks)
		}
	}
	groups := map[string][][]*Ask{}
	for i := range asks {
		a := &asks[i]
		if a.Limit == nil || a.inside {
			continue
		}
		group := a.group()
		calls := groups[group]
		if last := len(calls) - 1; last >= 0 && a.together() && len(calls[last]) < maxParts {
			calls[last] = append(calls[last], a)
		} else {
			groups[group] = append(calls, a.call)
		}
	}
	return groups
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
// again. It returns why the server has not decided.
func (e *Engine) decideSome(ctx context.Context, asks []*Ask, failed error) error {
	own := asks[len(asks)-1]
	switch {
	case failed != nil:
	case own.Above != nil:
		failed = e.askShared(ctx, asks)
	case len(asks) > 1:
		failed = e.askAll(ctx, asks)
	default:
		asks[0].Verdict, failed = e.askOne(ctx, asks[0].remote, asks[0])
	}
	if failed != nil {
		decides := own
		for _, a := range asks {
			if a.Verdict = e.fallback(ctx, a, failed); a.Over {
				decides = a
			}
		}
		if own.Above != nil { // a limit around a share refuses it, too
			own.Verdict = decides.Verdict
		}
	}
	if errors.Is(failed, throttle.ErrParams) { // of these asks only
		return nil
	}
	return failed
}

// together says whether the ask is one of several that take all or nothing.
func (a *Ask) together() bool {
	return a.Tag != "" && a.Hits > 0 && !a.Settle && !a.Shadow && !a.Quota && a.Above == nil
}

// group says which asks are decided by one goroutine. No key begins with a blank and a tag.
func (a *Ask) group() string {
	if a.together() {
		return " " + a.Tag
	}
	return a.call[0].Key
}

// fallback is the verdict if the server has not decided.
func (e *Engine) fallback(ctx context.Context, a *Ask, cause error) Verdict {
	if !errors.Is(cause, throttle.ErrUnavailable) && ctx.Err() == nil {
		if now, last := time.Now().Unix(), e.logged.Load(); now-last > 10 && e.logged.CompareAndSwap(last, now) {
			e.log.Error("a decision failed, and the rule's on_failure decides", "rule", a.Label, "error", cause)
		}
	}
	v := Verdict{Fallback: a.OnFailure, Remaining: a.Units}
	switch v.Fallback {
	case rules.FailClosed:
		v.Over, v.Remaining, v.Reset = !a.Settle && (a.Hits > 0 || a.Late), 0, time.Second
	case rules.FailLocal:
		if own, err := e.askOne(ctx, a.local, a); err == nil {
			v = own
			v.Fallback = rules.FailLocal
		}
	}
	if errors.Is(cause, throttle.ErrParams) {
		v.Wrong = cause
	}
	return v
}
