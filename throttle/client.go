package throttle

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
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
	// KeyPrefix comes before every key. A Policy needs a prefix without a colon, because the part of the key before its
	// first colon names the policy.
	KeyPrefix string

	// Observe, if not nil, is called after every decision, in the caller's goroutine. It must not block. The renewals of a
	// Lease aren't decisions.
	Observe func(Event)

	// Logger gets one record after 5 failures in a row, one when the server is back, one for each limiter that is refused, and
	// at most one a minute about calls that fail until somebody changes the set-up, such as those of a missing module:
	// slog.Default() if nil.
	Logger *slog.Logger

	// Now is the clock of deny caches, budgets and pauses in an outage: time.Now if nil. Tests may pass their own.
	Now func() time.Time
}

// Verb is the method that an Event is about: Allow (and AllowN), AllowAtMost, Peek, Refund, Settle (and Pause), Reset,
// Reserve (and Wait, WaitN), Lease (and Acquire), All or SettleAll.
type Verb string

const (
	verbAllow       Verb = "Allow"
	verbAllowAtMost Verb = "AllowAtMost"
	verbPeek        Verb = "Peek"
	verbRefund      Verb = "Refund"
	verbSettle      Verb = "Settle"
	verbReset       Verb = "Reset"
	verbReserve     Verb = "Reserve"
	verbLease       Verb = "Lease"
	verbAll         Verb = "All"
	verbSettleAll   Verb = "SettleAll"
)

// Event is one decision, for Options.Observe.
type Event struct {
	Verb   Verb
	Name   string        // of the limiter; "" of All and SettleAll
	Key    string        // as the caller gave it; "" of All and SettleAll
	Result Result        // of Reset it only says that the server did it
	Err    error         // what the verb returned
	Took   time.Duration // from the verb to its return
}

// Client asks a server with gothrottle for decisions. Its limiters may be used concurrently. Hooks of its client of
// go-redis and the handler of its Logger must not use them: such a call may wait for itself. Hooks must not panic: merged
// calls, pipelines and leases run in goroutines of the Client, where a panic ends the program.
type Client struct {
	rdb      Processor
	o        Options
	defaults settings
	all      *limiter // of All and SettleAll, which have the defaults
	lanes    []lane
	masters  sync.Map  // the *lane of each master of a cluster, by address
	base     time.Time // of the times that limiters and circuits keep
	closed   ending
	advised  atomic.Int64   // when the log last had a record of complain, 1 ns and more
	away     atomic.Bool    // the log has said that the server is unavailable
	running  sync.WaitGroup // goroutines of the client, without those of leases
	leases   sync.Map       // of each *Lease that is not closed nil

	mu       sync.Mutex
	stopped  bool                  // no goroutine starts any more
	limiters map[string][]*limiter // by name: more than one only by Rate.With
	refused  error                 // why the first limiter was refused
}

// New returns a Client that asks rdb. Each Option is a default of its limiters. New does not connect; Check does. New
// refuses a client of go-redis whose ContextTimeoutEnabled is false, or whose ReadTimeout or WriteTimeout is -2, because
// such a client ignores time limits.
func New(rdb Processor, o Options, defaults ...Option) (*Client, error) {
	if rdb == nil {
		return nil, params("New needs a client of go-redis")
	}
	if ignoresContexts(rdb) {
		return nil, params("this %T ignores time limits: set ContextTimeoutEnabled, and no timeout of -2", rdb)
	}
	if hides, ok := rdb.(interface{ Unwrap() Processor }); ok {
		rdb = hides.Unwrap()
	}
	s := settings{timeout: 50 * time.Millisecond, coalesce: true}
	if err := s.apply(defaults); err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	c := &Client{rdb: rdb, o: o, defaults: s, lanes: makeLanes(rdb), limiters: map[string][]*limiter{}, closed: newEnding()}
	c.base = c.time()
	c.all = &limiter{c: c, settings: s}
	return c, nil
}

// ignoresContexts reports whether a client of go-redis does not end a call when its context ends. A timeout of -2 means that
// go-redis never sets a deadline. -1 means that there is no timeout besides the context's. The options of a Ring hold these
// numbers as they were set. In the options of the other clients -1 has become 0, and -2 is still negative. Other types must
// end calls by themselves.
func ignoresContexts(rdb Processor) bool {
	switch rdb := rdb.(type) {
	case interface{ Options() *redis.Options }:
		o := rdb.Options()
		return !o.ContextTimeoutEnabled || min(o.ReadTimeout, o.WriteTimeout) < 0
	case interface{ Options() *redis.ClusterOptions }:
		o := rdb.Options()
		return !o.ContextTimeoutEnabled || min(o.ReadTimeout, o.WriteTimeout) < 0
	case interface{ Options() *redis.RingOptions }:
		o := rdb.Options()
		return !o.ContextTimeoutEnabled || min(o.ReadTimeout, o.WriteTimeout) < -1
	}
	return false
}

// time returns the time of the client's clock.
func (c *Client) time() time.Time {
	if c.o.Now != nil {
		return c.o.Now()
	}
	return time.Now()
}

func (c *Client) now() time.Duration { return c.time().Sub(c.base) }

// Rate returns the limiter of this name. It decides by GCRA (GO.THROTTLE).
//
// For this and the other kinds: the name is 1 to 64 of the characters a-z, A-Z, 0-9, '_', '-' and '.'. Verbs take the rest
// of the key: with the name login and the rest bob the key is login:bob. A name has one limit and one set of options in a
// client. The second limiter of a name, if it differs, and a limit that makes no sense are refused: the log and Check say
// so, and every verb returns ErrParams.
func (c *Client) Rate(name string, limit Limit, options ...Option) *Rate {
	return &Rate{counts{asks{named{c.limiter(name, limit.limit, options)}}}}
}

// Window returns the limiter of this name: at most limit units in any span of one period (GO.WINDOW), 1 to 10^12 units
// and 1 ms to 100 years. With a limit above 120 it may deny for up to 1/120 of its period longer than ExactWindow.
func (c *Client) Window(name string, limit int64, period time.Duration, options ...Option) *Window {
	return &Window{counts{asks{named{c.limiter(name, bounds{kind: windowKind, units: limit, period: period}, options)}}}}
}

// ExactWindow is a Window that keeps an entry for each microsecond with calls, whatever its limit.
func (c *Client) ExactWindow(name string, limit int64, period time.Duration, options ...Option) *Window {
	return &Window{counts{asks{named{c.limiter(name, bounds{kind: windowKind, units: limit, period: period, exact: true}, options)}}}}
}

// Quota returns the limiter of this name: limit units per fixed window (GO.QUOTA), which begins with its first unit. Up to
// twice the limit is admitted around the end of a window. The ranges are those of Window.
func (c *Client) Quota(name string, limit int64, period time.Duration, options ...Option) *Quota {
	return &Quota{counts{asks{named{c.limiter(name, bounds{kind: quotaKind, units: limit, period: period}, options)}}}}
}

// AlignedQuota is a Quota whose windows end at multiples of the period since the Unix epoch, by the clocks of a time zone:
// UTC if it is nil. So windows of 24 hours are its days. Each call sends the zone's UTC offset of now; a running window
// keeps its end. So around the day on which clocks change, a window may end up to an hour early or late, and a short
// one follows: up to twice the limit is admitted on that day. Load a location once: two limiters of one name need the
// same pointer.
func (c *Client) AlignedQuota(name string, limit int64, period time.Duration, zone *time.Location, options ...Option) *Quota {
	b := bounds{kind: quotaKind, units: limit, period: period, aligned: true, zone: zone}
	return &Quota{counts{asks{named{c.limiter(name, b, options)}}}}
}

// MonthlyQuota is a Quota whose windows are the calendar months of a time zone: see AlignedQuota.
func (c *Client) MonthlyQuota(name string, limit int64, zone *time.Location, options ...Option) *Quota {
	b := bounds{kind: quotaKind, units: limit, period: 31 * 24 * time.Hour, monthly: true, aligned: true, zone: zone}
	return &Quota{counts{asks{named{c.limiter(name, b, options)}}}}
}

// Policy returns the limiter whose limits are in the server's configuration under this name (GO.POLICY).
func (c *Client) Policy(name string, options ...Option) *Policy {
	return &Policy{asks{named{c.limiter(name, bounds{kind: policyKind}, options)}}}
}

// Slots returns the limiter of this name: limit concurrent holders (GO.LEASE). A slot that is not renewed lapses after
// ttl. The ranges are those of Window.
func (c *Client) Slots(name string, limit int64, ttl time.Duration, options ...Option) *Slots {
	return &Slots{named{c.limiter(name, bounds{kind: slotsKind, units: limit, period: ttl}, options)}}
}

// limiter returns the limiter of a name, or one that refuses every call.
func (c *Client) limiter(name string, b bounds, options []Option) *limiter {
	s := c.defaults
	err := s.apply(options)
	if err == nil {
		err = c.checkName(name, b)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if all := c.limiters[name]; err == nil && len(all) > 0 && (all[0].bounds != b || all[0].settings != s) {
		err = params("there is a limiter %q of %s: %s needs another name, or the same limit and options", name, all[0].bounds, b)
	}
	if err == nil {
		if len(c.limiters[name]) == 0 && !b.merges() && s.units > c.defaults.units {
			c.o.Logger.Warn("throttle: a Policy, Slots and a limit with a Lockout have no Budget", "name", name)
		}
		return c.addLimiter(name, b, s)
	}
	if c.refused == nil {
		c.refused = err
	}
	c.o.Logger.Error("throttle: a limiter is refused", "name", name, "error", err)
	return &limiter{c: c, name: name, bounds: b, settings: s, err: err}
}

// maxLimits is how many limits of one name a Client remembers: each new call of With may bring another one.
const maxLimits = 1000

// addLimiter returns the limiter of a name with these bounds, a new one if there is none. A forgotten one still decides for
// those who hold it. c.mu is locked.
func (c *Client) addLimiter(name string, b bounds, s settings) *limiter {
	for _, l := range c.limiters[name] {
		if l.bounds == b {
			return l
		}
	}
	l := c.newLimiter(name, b, s)
	if b.merges() {
		l.spends = s.units > 0
		l.unseen = l.spends && c.o.Observe == nil
		l.merges = l.spends || s.coalesce
	}
	if all := c.limiters[name]; len(all) > maxLimits { // the first one has the limit of the name
		c.limiters[name] = slices.Delete(all, 1, 2)
	}
	c.limiters[name] = append(c.limiters[name], l)
	l.home = c.limiters[name][0]
	return l
}

func (c *Client) newLimiter(name string, b bounds, s settings) *limiter {
	l := &limiter{c: c, name: name, prefix: c.o.KeyPrefix + name + ":", bounds: b, settings: s, busy: map[string][]*group{}}
	l.words, l.lastWords = b.words()
	return l
}

const nameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

// checkName refuses a name that could meet another limiter's key, and a limit that makes no sense.
func (c *Client) checkName(name string, b bounds) error {
	if name == "" || len(name) > 64 || strings.Trim(name, nameCharacters) != "" {
		return params("the name %q must be 1 to 64 letters, digits, '-', '_' and '.'", name)
	}
	if b.kind == policyKind && strings.Contains(c.o.KeyPrefix, ":") {
		return params("the policy %q needs a KeyPrefix without a colon, because the key's part before its first colon names the policy", name)
	}
	return b.check()
}

// checkTimeout bounds Check if its context has no deadline. It leaves room to set connections up over a slow network.
const checkTimeout = 5 * time.Second

// Check returns an error if a limiter was refused, if a server does not reply, or if it has not loaded the module. It asks
// every master of a cluster and every shard of a Ring, with the context's deadline or 5 s, and sets connections up. Call it
// when the program starts: otherwise a missing module is noticed at the first decision, and the first decisions over a slow
// network may fail until there are connections.
func (c *Client) Check(ctx context.Context) error {
	c.mu.Lock()
	refused := c.refused
	c.mu.Unlock()
	if c.closed.Load() {
		return ErrClosed
	}
	if refused != nil {
		return refused
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, checkTimeout)
		defer cancel()
	}
	if err := checkOne(ctx, c.rdb); err != nil { // ForEachShard skips shards that are down
		return err
	}
	type onEach = func(context.Context, *redis.Client) error
	one := func(ctx context.Context, node *redis.Client) error { return checkOne(ctx, node) }
	switch rdb := c.rdb.(type) {
	case interface {
		ForEachMaster(context.Context, onEach) error
	}:
		return classify(rdb.ForEachMaster(ctx, one))
	case interface {
		ForEachShard(context.Context, onEach) error
	}:
		return classify(rdb.ForEachShard(ctx, one))
	}
	return nil
}

// checkOne asks one server.
func checkOne(ctx context.Context, rdb Processor) error {
	return setUp(ctx, rdb, func(reply any, err error) error {
		if rows, _ := reply.([]any); err == nil && (len(rows) == 0 || rows[0] == nil) {
			return ErrNoModule
		}
		return err
	}, "COMMAND", "INFO", "GO.THROTTLE")
}

// atOnce makes calls, at most maxPipeline at once, and returns the error that comes first: later ones may follow from it.
func atOnce(calls []func() error) (first error) {
	turns := make(chan struct{}, maxPipeline)
	var all sync.WaitGroup
	var once sync.Once
	for _, call := range calls {
		turns <- struct{}{}
		all.Go(func() {
			if err := call(); err != nil {
				once.Do(func() { first = err })
			}
			<-turns
		})
	}
	all.Wait()
	return first
}

// Close gives back the units of budgets, except those of calls under way, closes the leases, and waits until no
// goroutine of the client runs. It does not close the client of go-redis. Afterwards verbs return ErrClosed. Close
// returns the first error of the leases and the first one of each limiter's budget. A second Close waits for the first one.
// Close of a nil Client does nothing.
func (c *Client) Close() (err error) {
	if c != nil {
		c.closed.once(func() { err = c.close() })
	}
	return err
}

func (c *Client) close() error {
	err := c.closeLeases()
	for _, l := range c.allLimiters() {
		err = errors.Join(err, l.giveBack())
	}
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
	c.running.Wait()
	return err
}

// ending is what happens once, whoever asks for it. It is a sync.Once that does not stop the clock of testing/synctest.
type ending struct {
	atomic.Bool // it has begun
	done        chan struct{}
}

func newEnding() ending { return ending{done: make(chan struct{})} }

// once calls f the first time. Later calls wait for its end.
func (e *ending) once(f func()) {
	if e.Swap(true) {
		<-e.done
		return
	}
	defer close(e.done)
	f()
}

// start starts a goroutine that Close waits for, and reports whether it did: once the client is closed it does not.
func (c *Client) start(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped {
		c.running.Go(f)
	}
	return !c.stopped
}

func (c *Client) allLimiters() (all []*limiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, limiters := range c.limiters {
		all = append(all, limiters...)
	}
	return all
}
