package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"gothrottle/commands/memory"
	"gothrottle/funnel"
	"gothrottle/throttle"
)

// engine decides: it asks the server, or does as a rule says while the server is away.
type engine struct {
	*settings
	rdb    redis.UniversalClient
	remote *throttle.Client
	local  *throttle.Client // over memory: for on_failure: local
	log    *slog.Logger
	logged atomic.Int64 // Unix seconds of the last error that was logged
}

// ask is one descriptor with a limit, and its decision.
type ask struct {
	found
	hits   int64 // 0 only looks, and a negative number is given back
	settle bool  // hits are charged, past the limit if need be, and admitted

	unlimited bool // the rule has no limit
	verdict
}

// verdict is the decision of an ask.
type verdict struct {
	over      bool
	remaining int64
	reset     time.Duration
	fallback  failure // "": the server has decided
}

// A call of a limit may have maxHits units, and one of several limits maxParts of them.
const (
	maxHits  = 1_000_000_000_000
	maxParts = 32
)

func newEngine(rdb redis.UniversalClient, s *settings, log *slog.Logger) (*engine, error) {
	o := []throttle.Option{throttle.KeyPrefix(s.prefix), throttle.Logger(log)}
	options := append(o[:2:2], throttle.Timeout(s.timeout))
	if s.budget != 0 {
		options = append(options, throttle.Budget(s.budget, time.Second))
	}
	remote, err := throttle.New(rdb, options...)
	if err != nil {
		return nil, err
	}
	local, err := throttle.New(inMemory{memory.NewServer()}, o...)
	if err != nil {
		return nil, err
	}
	return &engine{settings: s, rdb: rdb, remote: remote, local: local, log: log}, nil
}

// inMemory is a server in this process.
type inMemory struct{ *memory.Server }

// Process runs a command of package throttle.
func (m inMemory) Process(_ context.Context, cmd redis.Cmder) error {
	err := m.Server.Process(funnel.Micros(time.Now().UnixMicro()), cmd)
	cmd.SetErr(err)
	return err
}

// limiter is a counter or throttle.Slots.
type limiter interface{ Info() throttle.Info }

// counter is what the other limiters of package throttle have in common.
type counter interface {
	limiter
	AllowN(ctx context.Context, key string, n int64) (throttle.Result, error)
	Peek(ctx context.Context, key string) (throttle.Result, error)
	Settle(ctx context.Context, key string, n int64) (throttle.Result, error)
	Part(key string, n int64) throttle.Part
}

// newLimiter returns the limiter of a limit. Those of one algorithm and period share their name, so usage carries over when
// a limit changes.
func newLimiter(c *throttle.Client, m *limit) limiter {
	units, name := max(m.units, 1), string(m.Algorithm)+"."+m.period.String()
	switch m.Algorithm {
	case concurrency: // slots have no With
		return c.Slots(fmt.Sprintf("slots.%s.%d", m.hold, units), units, m.hold)
	case slidingWindow:
		return c.Limits(name).Window(throttle.Units(units), m.period)
	case fixedWindow:
		return c.Limits(name).AlignedQuota(throttle.Units(units), m.period, nil)
	}
	rate := throttle.Per(units, m.period)
	if m.Burst != nil {
		rate = rate.Burst(int64(*m.Burst))
	}
	if m.Lockout != nil {
		rate = rate.Lockout(*m.Lockout)
	}
	return c.Limits(name).Rate(rate)
}

// bind makes the limiters of rules, so that no decision has to look for them.
func (e *engine) bind(r *rules) error {
	for _, m := range r.limits {
		if m.Unlimited {
			continue
		}
		m.bound, m.local = newLimiter(e.remote, m), newLimiter(e.local, m)
		if err := m.bound.Info().Err; err != nil {
			return fmt.Errorf("%s: rule %s: %w", m.place, m.path, err)
		}
	}
	return nil
}

// probe settles nothing at a key that nobody uses, by each kind of limiter that the rules have, and returns the first error.
func (e *engine) probe(ctx context.Context, r *rules) error {
	asked := map[algorithm]bool{}
	for _, m := range r.limits {
		if c, ok := m.bound.(counter); ok && !asked[m.Algorithm] && m.Lockout == nil {
			asked[m.Algorithm] = true
			if _, err := c.Settle(ctx, "gothrottle.probe", 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// decide sets the verdict of each ask with a limit. Those of one tag take from all limits or from none. The others are decided
// at the same time, except that asks of one key keep their order.
func (e *engine) decide(ctx context.Context, asks []ask) {
	if len(asks) == 1 && asks[0].limit != nil {
		_ = e.decideSome(ctx, []*ask{&asks[0]}, nil)
		return
	}
	groups := map[string][]*ask{}
	for i := range asks {
		if a := &asks[i]; a.limit != nil {
			groups[a.group()] = append(groups[a.group()], a)
		}
	}
	var wg sync.WaitGroup
	for _, members := range groups {
		wg.Go(func() {
			size := 1
			if members[0].together() {
				size = maxParts
			}
			var failed error
			for some := range slices.Chunk(members, size) {
				failed = e.decideSome(ctx, some, failed)
			}
		})
	}
	wg.Wait()
}

// decideSome decides asks by one call, or without one if a call before has failed: a server that hangs would take the time
// again. It returns why the server has not decided.
func (e *engine) decideSome(ctx context.Context, asks []*ask, failed error) error {
	switch {
	case failed != nil:
	case len(asks) > 1:
		failed = e.askAll(ctx, asks)
	default:
		asks[0].verdict, failed = e.askOne(ctx, asks[0].limit.bound, asks[0])
	}
	if failed != nil {
		for _, a := range asks {
			a.verdict = e.fallback(ctx, a, failed)
		}
	}
	if errors.Is(failed, throttle.ErrParams) { // of these asks only
		return nil
	}
	return failed
}

// together says whether the ask is one of several that take all or nothing.
func (a *ask) together() bool {
	return a.tag != "" && a.hits > 0 && !a.settle && !a.limit.shadow && !a.limit.quota
}

// group says which asks are decided by one goroutine. No key begins with a blank and a tag.
func (a *ask) group() string {
	if a.together() {
		return " " + a.tag
	}
	return a.key
}

// fallback is the verdict if the server has not decided.
func (e *engine) fallback(ctx context.Context, a *ask, cause error) verdict {
	if !errors.Is(cause, throttle.ErrUnavailable) && ctx.Err() == nil {
		if now, last := time.Now().Unix(), e.logged.Load(); now-last > 10 && e.logged.CompareAndSwap(last, now) {
			e.log.Error("a decision failed, and the rule's on_failure decides", "rule", a.label, "error", cause)
		}
	}
	v := verdict{fallback: a.limit.OnFailure, remaining: a.limit.units}
	switch v.fallback {
	case failClosed:
		v.over, v.remaining, v.reset = !a.settle && (a.hits > 0 || a.limit.Late), 0, time.Second
	case failLocal:
		if own, err := e.askOne(ctx, a.limit.local, a); err == nil {
			v = own
			v.fallback = failLocal
		}
	}
	return v
}

func (e *engine) askOne(ctx context.Context, by limiter, a *ask) (verdict, error) {
	c, ok := by.(counter)
	if !ok {
		return e.askSlot(ctx, by.(throttle.Slots), a)
	}
	var r throttle.Result
	var err error
	switch {
	case a.hits == 0:
		a.limit.looked.Store(true)
		r, err = c.Peek(ctx, a.key)
		return verdictOf(r, a.limit.exceeded(r)), err
	case a.hits < 0 || a.settle:
		r, err = c.Settle(ctx, a.key, a.hits)
		return verdictOf(r, false), err
	case a.limit.charge:
		return e.charge(ctx, c, a)
	case a.limit.units == 0:
		return verdict{over: true, reset: a.limit.period}, nil
	}
	r, err = c.AllowN(ctx, a.key, a.hits)
	if err == nil && !r.Allowed {
		e.refused(a)
	}
	return verdictOf(r, !r.Allowed), err
}

// exceeded says whether a request that only looks finds the limit exceeded: more was used than the limit. If hits that are
// refused do not count, that never happens, so it is enough that nothing is left.
func (m *limit) exceeded(r throttle.Result) bool {
	if m.units == 0 { // on the server it is 1
		return !m.charge || r.Remaining == 0
	}
	return r.RetryAfter > 0 || !m.charge && r.Remaining == 0
}

// charge admits hits, or counts them past the limit, as envoyproxy/ratelimit does: a later request that only looks sees
// that more was used than the limit.
func (e *engine) charge(ctx context.Context, c counter, a *ask) (verdict, error) {
	var r throttle.Result
	var err error
	if a.limit.units > 0 {
		r, err = c.AllowN(ctx, a.key, a.hits)
	}
	if err != nil || r.Allowed {
		return verdictOf(r, false), err
	}
	r, err = c.Settle(ctx, a.key, a.hits)
	if err != nil && !errors.Is(err, throttle.ErrParams) { // that is more than the server counts
		return verdict{}, err
	}
	return verdictOf(r, true), nil
}

// refused notes that hits were refused and do not count. A rule with hits above 1 that others look at before is asked by a
// gateway that reports tokens late: without late, its limit would not limit.
func (e *engine) refused(a *ask) {
	if m := a.limit; a.hits > 1 && !m.charge && m.looked.Load() && !m.warned.Swap(true) {
		e.log.Warn("reported hits were refused, and do not count: if they are reported after the request, add 'late: true' to the rule",
			"rule", m.path, "place", m.place)
	}
}

func verdictOf(r throttle.Result, over bool) verdict {
	v := verdict{over: over, remaining: r.Remaining, reset: r.ResetAfter}
	if over && r.RetryAfter > 0 && r.RetryAfter != throttle.Never {
		v.reset = r.RetryAfter
	}
	return v
}

// askSlot takes a slot for the holder, renews it, looks whether there is one, or releases it. A slot in this process lapses
// by itself.
func (e *engine) askSlot(ctx context.Context, s throttle.Slots, a *ask) (verdict, error) {
	of := e.remote
	if s == a.limit.local {
		of = e.local
	}
	switch {
	case a.hits > 0:
		all, err := of.All(ctx, s.Part(a.key, a.holder))
		return verdictOf(all.Result, !all.Allowed), err
	case of == e.local:
		return verdict{remaining: a.limit.units}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	both, key := e.rdb.Pipeline(), e.prefix+s.Info().Name+":"+a.key
	if a.hits < 0 {
		both.Do(ctx, "GO.RELEASE", key, a.holder)
	}
	look := redis.NewIntSliceCmd(ctx, "GO.LEASE_RO", key, a.limit.units, a.limit.hold.Milliseconds(), a.holder, "MS")
	_ = both.Process(ctx, look)
	if _, err := both.Exec(ctx); err != nil || len(look.Val()) != 6 {
		return verdict{}, cmp.Or(err, errors.New("GO.LEASE_RO has another reply"))
	}
	limited, free, renewed := look.Val()[0], look.Val()[2], look.Val()[5]
	if limited+renewed == 0 { // the slot that it would take is free
		free++
	}
	return verdict{over: a.hits == 0 && limited > 0, remaining: free}, nil
}

// askAll takes from the limits of all asks, or from none. Asks of one key are one part of the call.
func (e *engine) askAll(ctx context.Context, asks []*ask) error {
	hits, place := map[string]int64{}, map[string]int{}
	for _, a := range asks {
		hits[a.partKey()] += a.hits
	}
	var parts []throttle.Part
	for _, a := range asks {
		key := a.partKey()
		if _, found := place[key]; !found {
			place[key] = len(parts)
			parts = append(parts, a.part(hits[key]))
		}
	}
	all, err := e.remote.All(ctx, parts...)
	if err != nil {
		return err
	}
	for _, a := range asks {
		r := all.Each[place[a.partKey()]]
		if a.verdict = verdictOf(r, !r.Allowed || a.limit.units == 0); !r.Allowed {
			e.refused(a)
		}
	}
	return nil
}

func (a *ask) partKey() string { return a.limit.bound.Info().Name + ":" + a.key + " " + a.holder }

func (a *ask) part(hits int64) throttle.Part {
	if slots, ok := a.limit.bound.(throttle.Slots); ok {
		return slots.Part(a.key, a.holder)
	}
	if a.limit.units == 0 {
		hits = maxHits // more than the limit of 1 that it has on the server
	}
	return a.limit.bound.(counter).Part(a.key, min(hits, maxHits))
}
