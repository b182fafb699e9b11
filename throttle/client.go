package throttle

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"gothrottle/throttle/internal/wire"
)

// Processor sends one command: *redis.Client (also to Sentinel), *redis.ClusterClient, *redis.Ring, or a type of your
// own. Embed one that yours wraps. With a method Now() time.Time it is also the clock of deny caches, budgets, time
// zones and pauses.
type Processor interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// Event is one decision, for Observe.
type Event struct {
	// Verb is the method: Allow (and AllowN), AllowAtMost, Peek, Refund, Settle, Raise, Reset, Reserve
	// (and Wait, WaitN), Lease (and Acquire), Take, Release, Hold, All or SettleAll.
	Verb   string
	Name   string        // the limiter's; "" for All and SettleAll
	Key    string        // as the caller gave it
	Result               // for Reset, it only says that the server did it
	Err    error         // what the verb returned; nil for a Lease that is denied
	Took   time.Duration // from the verb to its return
}

// Client asks a server with gothrottle for decisions. Its limiters are safe for concurrent use. The go-redis client's
// hooks and the Logger's handler must not use them: such a call may wait for itself. A hook that panics may end the
// program: some calls run in goroutines of the Client.
type Client struct {
	conn   *wire.Conn
	o      options // defaults of the limiters, and the client's own
	all    limiter // of All and SettleAll, which have the defaults
	closed ending
	now    func() time.Time
	leases sync.Map  // map[io.Closer]nil: every lease and hold that isn't closed
	inside *Client   // of FailLocal; nil: no limiter has it
	own    io.Closer // the client of go-redis that Open has made; else nil

	mu    sync.Mutex
	names map[declared]*family // all that were not refused
	kinds map[string]bounds    // of their names
	wrong map[string]error     // why the last declaration of a name was refused
}

// New returns a Client that asks rdb: see Open for one that makes it. Options of limiters are defaults here. New does
// not connect; Check does. If rdb ignores contexts, as without ContextTimeoutEnabled, a call that is late leaves
// go-redis behind, and Check and Close may take as long as it does.
func New(rdb Processor, with ...Option) (*Client, error) {
	o := options{settings: settings{timeout: 50 * time.Millisecond, ttl: 30 * time.Second, longest: time.Hour}, logger: slog.Default()}
	err := o.apply(with)
	if err == nil && o.shape != (shape{}) {
		err = params("Exact and In are options of a limiter")
	}
	if err != nil {
		return nil, err
	}
	if v := reflect.ValueOf(rdb); rdb == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, params("New needs a client of go-redis")
	}
	return newClient(rdb, o), nil
}

func newClient(rdb Processor, o options) *Client {
	c := &Client{o: o, now: time.Now, names: map[declared]*family{}, kinds: map[string]bounds{}, wrong: map[string]error{}, closed: newEnding()}
	if clock, own := rdb.(interface{ Now() time.Time }); own {
		c.now = clock.Now
	}
	c.conn = wire.New(rdb, c.now, o.logger, o.script)
	if o.fallback == failedLocal {
		c.decidesHere()
	}
	c.all.family = c.newFamily("", o.settings)
	return c
}

// Rate returns the limiter of this name, which decides by GCRA (GO.THROTTLE).
//
// For every kind of limiter, the name is 1 to 64 letters, digits, '_', '-' and '.'. Limiters are values. Another one of
// the same name and kind has its own limit and options, and counts under the same keys. A limiter that makes no sense
// returns ErrParams from each verb, and from Check. For limits that differ by user, see Rate.With.
func (c *Client) Rate(name string, limit Limit, options ...Option) Rate {
	return Rate{withLimit(c.declare(name, bounds{kind: rateKind}.with(limit), options))}
}

// Window returns the limiter of this name: at most limit units in any span of one period (GO.WINDOW), 1 to 10^12 units
// and 1 ms to 100 years. With a limit above 120 it may deny for up to 1/120 of its period longer than needed: see Exact.
func (c *Client) Window(name string, limit int64, period time.Duration, options ...Option) Window {
	return Window{withLimit(c.declare(name, bounds{kind: windowKind, period: period, units: limit}, options))}
}

// Quota returns the limiter of this name: limit units per fixed window (GO.QUOTA), which begins with its first unit, or
// as In says. Up to twice the limit is admitted around the end of a window. Ranges are as for Window; see also Month.
func (c *Client) Quota(name string, limit int64, period time.Duration, options ...Option) Window {
	return Window{withLimit(c.declare(name, bounds{kind: quotaKind, period: period, units: limit}, options))}
}

// Policy returns the limiter whose limits are in the server's configuration under this name (GO.POLICY).
func (c *Client) Policy(name string, options ...Option) Policy {
	return Policy{verbs{named{c.declare(name, bounds{kind: policyKind}, options)}}}
}

// Slots returns the limiter of this name: limit concurrent holders (GO.LEASE). A slot that is not renewed lapses after
// ttl. Ranges are as for Window.
func (c *Client) Slots(name string, limit int64, ttl time.Duration, options ...Option) Slots {
	return Slots{named{c.declare(name, bounds{kind: slotsKind, period: ttl, units: limit}, options)}}
}

// declared is a name with its options. Limiters that have the same share what is known of their keys.
type declared struct {
	name string
	settings
}

// declare returns a limiter of a name, or one that refuses every call.
func (c *Client) declare(name string, b bounds, with []Option) limiter {
	o := options{settings: c.o.settings}
	err := o.apply(with)
	b, err = o.shape.of(b, err)
	switch {
	case err == nil && o.ofClient != "":
		err = params("%s is an option of New", o.ofClient)
	case err == nil:
		err = c.checkName(name, b)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	first, found := c.kinds[name]
	if err == nil && found && first.kind != b.kind {
		err = params("the name %q is taken by %s: give %s another name", name, first, b)
	}
	if err == nil {
		c.kinds[name] = b
		delete(c.wrong, name)
		of := declared{name, o.settings}
		f := c.names[of]
		if f == nil {
			if o.fallback == failedLocal {
				c.decidesHere()
			}
			f = c.newFamily(name, o.settings)
			c.names[of] = f
			if !b.merges() && o.units > c.o.units {
				c.o.logger.Warn("throttle: a Policy, Slots and a limit with a Lockout have no Budget", "name", name)
			}
		}
		return limiter{f, b}
	}
	if len(c.wrong) < mostRefused {
		c.wrong[name] = err
		c.conn.Refused(name, err)
	}
	f := c.newFamily(name, o.settings)
	f.err = err
	return limiter{f, b}
}

// mostRefused is how many refused limiters Check and the log know: a program may make them for each request.
const mostRefused = 100

const nameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

// checkName refuses a name that could meet another limiter's key, and a limit that makes no sense.
func (c *Client) checkName(name string, b bounds) error {
	switch {
	case name == "" || len(name) > 64 || strings.Trim(name, nameCharacters) != "":
		return params("the name %q must be 1 to 64 letters, digits, '-', '_' and '.'", name)
	case b.kind == policyKind && strings.Contains(c.o.keyPrefix, ":"):
		return params("the policy %q needs a KeyPrefix without a colon, because the key's part before its first colon names the policy", name)
	case b.kind == policyKind && c.o.script:
		return params("the policy %q needs the module, which a client with Script does not use", name)
	}
	return b.check()
}

// Check returns an error if a limiter was refused, or if a server doesn't reply or lacks the module: every master of a
// cluster and every shard of a Ring. It sets connections up, within the context's deadline or 5 s. Call it at the
// start. With Script it runs the script.
func (c *Client) Check(ctx context.Context) error {
	c.mu.Lock()
	var refused error
	for _, name := range slices.Sorted(maps.Keys(c.wrong)) {
		refused = cmp.Or(refused, c.wrong[name])
	}
	name := slices.Min(append(slices.Collect(maps.Keys(c.kinds)), "~")) // the first; no name has a ~
	c.mu.Unlock()
	switch {
	case c.closed.Load():
		return wire.ErrClosed
	case refused != nil:
		return refused
	}
	return c.conn.Check(ctx, c.o.keyPrefix+name+":gothrottle.check")
}

// Close gives back budgeted units, closes the leases and holds, and waits until none of the client's goroutines runs. It does not
// close the go-redis client that New got. Afterwards, verbs return redis.ErrClosed. It returns the first errors. Close of a
// nil Client does nothing.
func (c *Client) Close() (err error) {
	if c != nil {
		c.closed.once(func() { err = c.close() })
	}
	return err
}

func (c *Client) close() error {
	c.mu.Lock()
	names, inside := slices.Collect(maps.Values(c.names)), c.inside
	c.mu.Unlock()
	var refunds []func() error
	for _, f := range names {
		refunds = append(refunds, f.end()...)
	}
	err := errors.Join(c.closeLeases(), wire.AtOnce(refunds), inside.Close())
	c.conn.Stop()
	if c.own != nil {
		err = errors.Join(err, c.own.Close())
	}
	return err
}

// ending is what happens once, however often it is asked for. It is a sync.Once that does not stop the clock of testing/synctest.
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
