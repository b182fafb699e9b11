package throttle

import (
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Processor sends one command. *redis.Client (also to Sentinel), *redis.ClusterClient and *redis.Ring are Processors.
type Processor interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// Options of a Client. The zero Options are a good start.
type Options struct {
	// Timeout bounds every call, from the verb to its return: 50 ms if 0. A call may end a sixteenth of that earlier,
	// because calls share timers. An earlier deadline of the context ends it too. A cancelled context ends a call that
	// waits for other calls of the Client. A call that go-redis has, even if it waits for a connection, ends with its
	// reply or at the time limit.
	Timeout time.Duration

	// OnUnavailable says what a verb returns when the server does not decide: ReturnError if not set. A deadline of the
	// context that ends the call counts as well, a cancelled context does not. So with FailOpen do not let a remote caller
	// choose the deadline, or refuse its request once the context has ended.
	OnUnavailable Fallback

	// LocalShare is the share of each limit that LimitLocally grants in this process, above 0 and up to 1, but at least
	// one unit at once. With n processes 1/n keeps the sum at the limit, if the limit is n units or more.
	LocalShare float64

	// KeyPrefix stands before every key. The part before its first colon names the policy, where the limit is Policy.
	KeyPrefix string

	// NoCoalescing sends one command for each Allow. Otherwise concurrent calls of Allow for one key and limit become
	// one command, and are granted first come first served. A Budget coalesces in any case. A caller may wait for the
	// command under way and then for its own: so Timeout should be longer than two round trips, or set NoCoalescing.
	NoCoalescing bool

	// DenyCache makes Allow and AllowN deny in this process until the RetryAfter of a denial has passed, for the same
	// key, limit and quantity. It is exact, except that refunds, a deleted key and other parameters are noticed late.
	// A denial that is remembered takes about 400 bytes. Denials that have passed are dropped about every 10 s, as long as
	// the client decides anything.
	DenyCache bool

	// Budget lets Allow spend units in this process: see Budget.
	Budget Budget

	// Observe, if not nil, is called after every decision, in the caller's goroutine. It must not block. Queue, and the
	// renewals of a Lease, are not told.
	Observe func(Event)

	// Logger gets one record when the server becomes unavailable, and one when it is back: slog.Default() if nil.
	Logger *slog.Logger

	// Now is the clock of the deny cache and of the budget: time.Now if nil. Tests may pass their own.
	Now func() time.Time
}

// Fallback says what a verb returns when the server is unavailable. Other errors are always returned.
type Fallback uint8

const (
	ReturnError  Fallback = iota // a Result that denies and has the Cause, and an ErrUnavailable
	FailOpen                     // a Result that admits, with the Source FailedOpen and the Cause; no error
	FailClosed                   // a Result that denies, with the Source FailedClosed, the Cause and a RetryAfter of 1 s; no error
	LimitLocally                 // the decision of a limiter in this process: see Options.LocalShare. A policy, All and Lease: as ReturnError
)

// Event is what Options.Observe is told of a decision.
type Event struct {
	Verb   string // "Allow", "AllowN", "AllowAtMost", "Peek", "Refund", "Settle", "Reserve", "All", "SettleAll", "Lease"
	Key    string // without the prefix; "" of All and SettleAll
	Limit  Limit  // the zero Limit of All and SettleAll
	Result Result
	Err    error         // what the verb returned
	Took   time.Duration // from the verb to its return
}

// Client asks a server with gothrottle for decisions. Its methods may be called concurrently. Hooks of its client of
// go-redis and the handler of its Logger must not call them: such a call may wait for itself. Hooks must not panic: a panic
// in a caller's goroutine is the caller's, but merged calls, pipelines and leases run in goroutines of the Client, where a
// panic ends the program.
type Client struct {
	rdb      Processor
	o        Options
	cold     cold
	lanes    []*lane
	laneOf   func(key string) int
	shards   [shardCount]shard
	sweeps   atomic.Uint64 // how many shards were swept in their turn
	sweepDue atomic.Int64  // when the next one is; since base
	seed     maphash.Seed
	base     time.Time // of the times that shards keep
	local    *fallback // nil unless LimitLocally
	closed   atomic.Bool
	latest   atomic.Pointer[deadline]
	away     atomic.Bool    // the log was told that the server is unavailable
	running  sync.WaitGroup // goroutines of the client, without those of leases

	leasesMu sync.Mutex
	leases   map[*Lease]bool // nil once the client is closed
}

// New returns a Client that asks rdb. It does not connect; Check does. New refuses a client of go-redis whose
// ContextTimeoutEnabled is false, or whose ReadTimeout or WriteTimeout is -2, because such a client ignores time limits.
func New(rdb Processor, o Options) (*Client, error) {
	if rdb == nil {
		return nil, params("New needs a client of go-redis")
	}
	if honours, known := honoursContexts(rdb); known && !honours {
		return nil, params("no time limit holds for this %T: its options need ContextTimeoutEnabled, and no timeout of -2", rdb)
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	c := &Client{rdb: rdb, o: o, seed: maphash.MakeSeed(), base: time.Now(), leases: map[*Lease]bool{}}
	c.cold.init(rdb)
	c.makeLanes()
	for i := range c.shards {
		c.shards[i].entries = map[entryKey]*entry{}
	}
	if o.OnUnavailable == LimitLocally {
		c.local = newFallback(o.LocalShare)
	}
	if o.Budget.Clients > 0 {
		o.Logger.Info("throttle: each client may hold units", "units", o.Budget.Units, "clients", o.Budget.Clients,
			"note", "limits hold only if no more clients than these use them")
	}
	return c, nil
}

// check fills in what is not set.
func (o *Options) check() error {
	if o.Timeout == 0 {
		o.Timeout = 50 * time.Millisecond
	}
	if o.Timeout < 0 {
		return params("a time limit of %s", o.Timeout)
	}
	if o.OnUnavailable > LimitLocally {
		return params("OnUnavailable is %d", o.OnUnavailable)
	}
	if (o.OnUnavailable == LimitLocally) != (o.LocalShare > 0) || o.LocalShare < 0 || !(o.LocalShare <= 1) {
		return params("LocalShare must be above 0 and at most 1 with LimitLocally, and 0 without; it is %v", o.LocalShare)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o.Budget.check()
}

// honoursContexts reports whether a client of go-redis ends a call when its context ends. A timeout of -2 means that
// go-redis never sets a deadline. -1 means that there is no timeout besides the context's. The options of a Ring tell
// these numbers as they were set. In the options of the other clients -1 has become 0, and -2 is still negative. known is
// false for other types, which must end calls by themselves.
func honoursContexts(rdb Processor) (honours, known bool) {
	switch rdb := rdb.(type) {
	case interface{ Options() *redis.Options }:
		o := rdb.Options()
		return o.ContextTimeoutEnabled && o.ReadTimeout >= 0 && o.WriteTimeout >= 0, true
	case interface{ Options() *redis.ClusterOptions }:
		o := rdb.Options()
		return o.ContextTimeoutEnabled && o.ReadTimeout >= 0 && o.WriteTimeout >= 0, true
	case interface{ Options() *redis.RingOptions }:
		o := rdb.Options()
		return o.ContextTimeoutEnabled && o.ReadTimeout >= -1 && o.WriteTimeout >= -1, true
	}
	return false, false
}

// Check asks the server whether it has the module. It returns nil, ErrNoModule, ErrUnavailable or the server's error.
// Call it when the program starts: otherwise a missing module is noticed at the first decision.
func (c *Client) Check(ctx context.Context) error {
	if c.closed.Load() {
		return ErrClosed
	}
	limited := c.limit(ctx)
	cmd := newGeneralCall(&limited, []any{"COMMAND", "INFO", "GO.THROTTLE"})
	err := classify(ctx, c.process(&limited, cmd))
	if err != nil {
		return err
	}
	if rows, _ := cmd.Val().([]any); len(rows) == 0 || rows[0] == nil {
		return ErrNoModule
	}
	return nil
}

// Close gives the units of budgets back, without those of calls under way, closes the leases, and waits until no goroutine
// of the client runs. It does not close the client of go-redis. Afterwards verbs return ErrClosed. Over a ReadOnly cluster
// client that has not had a reply yet, Close may wait 5 s for that reply.
func (c *Client) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	back := map[entryKey]int64{}
	err := c.closeLeases()
	for i := range c.shards {
		c.closeShard(&c.shards[i], back)
	}
	err = errors.Join(err, c.giveBack(back))
	for _, l := range c.lanes {
		l.mu.Lock()
		l.closed = true
		l.mu.Unlock()
	}
	c.cold.close()
	c.running.Wait()
	return err
}

// Allow asks for one unit.
func (c *Client) Allow(ctx context.Context, key string, limit Limit) (Result, error) {
	return c.AllowN(ctx, key, limit, 1)
}

// AllowN asks for n units, all or none; n is at least 1.
func (c *Client) AllowN(ctx context.Context, key string, limit Limit, n int64) (Result, error) {
	verb := "AllowN"
	if n == 1 {
		verb = "Allow"
	}
	return c.verb(ctx, verb, key, &limit, n, take)
}

// AllowAtMost takes n units, or what is left. Allowed is false only if nothing is left; Granted tells how many were
// taken. It needs a rate without Lockout, a Window or a Quota.
func (c *Client) AllowAtMost(ctx context.Context, key string, limit Limit, n int64) (Result, error) {
	return c.verb(ctx, "AllowAtMost", key, &limit, n, upTo)
}

// Peek tells the state of a limiter and changes nothing, also when the server's memory is full. Allowed is false only
// while more is in use than the limit, or a lockout stands.
func (c *Client) Peek(ctx context.Context, key string, limit Limit) (Result, error) {
	return c.verb(ctx, "Peek", key, &limit, 0, peek)
}

// Refund gives n units back, at most what is in use; Granted is minus what was given back. It needs a rate, a Window or
// a Quota.
func (c *Client) Refund(ctx context.Context, key string, limit Limit, n int64) (Result, error) {
	if n < 1 {
		return Result{}, params("a refund of %d units", n)
	}
	return c.verb(ctx, "Refund", key, &limit, -n, upTo)
}

// Settle corrects an estimate: a positive difference is charged, past the limit if need be, and a negative one is given
// back. It needs a rate, a Window or a Quota.
func (c *Client) Settle(ctx context.Context, key string, limit Limit, difference int64) (Result, error) {
	m := force
	if difference < 0 {
		m = upTo
	}
	return c.verb(ctx, "Settle", key, &limit, difference, m)
}

// verb checks the parameters, decides, applies the fallback and tells the observer.
func (c *Client) verb(ctx context.Context, verb, key string, l *Limit, n int64, m mode) (r Result, err error) {
	if c.o.Observe == nil {
		err = c.decide(ctx, verb, key, l, n, m, &r)
		return r, err
	}
	began := time.Now()
	err = c.decide(ctx, verb, key, l, n, m, &r)
	c.o.Observe(Event{verb, key, *l, r, err, time.Since(began)})
	return r, err
}

// decide sets r, which is the zero Result.
func (c *Client) decide(ctx context.Context, verb, key string, l *Limit, n int64, m mode, r *Result) error {
	if err := checkVerb(verb, l, n, m); err != nil {
		return err
	}
	if c.closed.Load() {
		return ErrClosed
	}
	key = c.o.KeyPrefix + key
	less, err := c.o.Budget.less(l)
	if err != nil {
		return err
	}
	if m == take && (c.o.DenyCache || c.merges(l, n)) {
		err = c.shared(ctx, key, l, n, less, r)
	} else {
		*r, err = c.send(ctx, key, l, n, m, less)
	}
	if err != nil && errors.Is(err, ErrUnavailable) {
		*r, err = c.unavailable(key, l, n, m, err)
	}
	return err
}

// checkVerb refuses a limit or a quantity that the verb cannot have.
func checkVerb(verb string, l *Limit, n int64, m mode) error {
	if err := l.check(); err != nil {
		return err
	}
	if n > maxUnits+1 || n < -maxUnits-1 || n < 1 && m == take || n < 1 && m == upTo && verb == "AllowAtMost" {
		return params("%s of %d units", verb, n)
	}
	if l.kind == policyKind && m != take && m != peek || l.kind == slotsKind {
		return params("%s of %s", verb, *l)
	}
	if l.lockout != 0 && verb == "AllowAtMost" {
		return params("%s of a limit with a lockout", verb)
	}
	return nil
}

// merges reports whether a call is merged with others by UPTO. A call for more than one unit, a call of a policy and a
// call of a limit with a lockout would get another reply if they were merged.
func (c *Client) merges(l *Limit, n int64) bool {
	return n == 1 && l.kind != policyKind && l.lockout == 0 && (!c.o.NoCoalescing || c.o.Budget.Units > 0)
}

// send asks the server in a call of its own, within the time limit.
func (c *Client) send(ctx context.Context, key string, l *Limit, n int64, m mode, less int64) (Result, error) {
	if l.kind == policyKind {
		return c.askPolicy(ctx, key, l, n, m)
	}
	cmd := newCall(c.limit(ctx), key, l, n, m, less, 0)
	if err := c.do(&cmd.within, key, cmd); err != nil {
		return Result{}, err
	}
	return readResult(cmd.Val(), l, n, m)
}

// askPolicy asks for the decision of a policy, whose reply holds more than integers.
func (c *Client) askPolicy(ctx context.Context, key string, l *Limit, n int64, m mode) (Result, error) {
	limited := c.limit(ctx)
	cmd := newPolicyCall(&limited, key, n, m)
	if err := c.do(&limited, key, cmd); err != nil {
		return Result{}, err
	}
	ints, _ := leadingInts(cmd.Val())
	return readResult(ints, l, n, m)
}

// leadingInts splits a reply into its first integers and what follows them.
func leadingInts(reply any) (ints []int64, rest []any) {
	items, _ := reply.([]any)
	for i, item := range items {
		n, ok := item.(int64)
		if !ok {
			return ints, items[i:]
		}
		ints = append(ints, n)
	}
	return ints, nil
}
