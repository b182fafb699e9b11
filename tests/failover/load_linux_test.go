package failover

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"gothrottle/throttle"
)

// began is the zero of all times of admissions: clients and faults share one clock.
var began = time.Now()

func now() time.Duration { return time.Since(began) }

// slowPeriod is the time in which a slow key gives one unit back. In an episode of some seconds no unit comes back, so
// the count of a key is exact.
const slowPeriod = 1000 * time.Second

// limited is a key with its limit, and what its callers were granted.
type limited struct {
	key  string
	pace pace

	mu      sync.Mutex
	granted []admission
	denied  time.Duration // the last denial that a caller at the coast got
}

func slowKey(key string, burst int64) *limited {
	return &limited{key: key, pace: pace{burst, 1 / slowPeriod.Seconds()}}
}

func (l *limited) limit() throttle.Limit {
	if l.slow() {
		return throttle.Per(1, slowPeriod).Burst(l.pace.burst)
	}
	return throttle.Per(int64(l.pace.perSecond), time.Second).Burst(l.pace.burst)
}

func (l *limited) slow() bool { return l.pace.perSecond < 1 }

// words returns the command that asks for units.
func (l *limited) words(command string, units int) []any {
	if l.slow() {
		return []any{command, l.key, l.pace.burst - 1, 1, int(slowPeriod.Seconds()), units}
	}
	return []any{command, l.key, l.pace.burst - 1, int64(l.pace.perSecond), 1, units}
}

// units returns the sum of the admissions that ok chooses.
func (l *limited) units(ok func(admission) bool) (sum int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.granted {
		if ok(a) {
			sum += a.units
		}
	}
	return sum
}

func (l *limited) lastDenied() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.denied
}

// caller asks for one unit of a key, again and again.
type caller struct {
	key   *limited
	from  *host
	every time.Duration
	only  *server // the one server that the caller asks; nil: the caller finds the master
	typed bool    // the caller is a throttle.Client
	ask   func() (allowed bool, err error)

	// What happened to a throttle.Client. run writes it, and it is read when run has ended.
	decided []time.Duration
	calls   int
	failed  int
	over    int           // calls that took more than limit + tolerance
	longest time.Duration // of a call
	untyped error         // the last error that is not ErrUnavailable
}

// tolerance is what a call may take beyond its time limit, on a quiet machine.
const tolerance = 10 * time.Millisecond

// run asks until stop is closed.
func (c *caller) run(stop <-chan struct{}) {
	ticker := time.NewTicker(c.every)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		from := now()
		allowed, err := c.ask()
		c.note(from, now(), allowed, err)
	}
}

func (c *caller) note(from, to time.Duration, allowed bool, err error) {
	c.calls++
	c.longest = max(c.longest, to-from)
	if to-from > throttleTimeout+tolerance {
		c.over++
	}
	if err != nil {
		c.failed++
		if !errors.Is(err, throttle.ErrUnavailable) {
			c.untyped = err
		}
		return
	}
	if c.typed {
		c.decided = append(c.decided, to)
	}
	c.key.mu.Lock()
	defer c.key.mu.Unlock()
	if allowed {
		c.key.granted = append(c.key.granted, admission{to, 1, c})
	} else if c.only == nil {
		c.key.denied = to
	}
}

// throttleTimeout is the time limit of the throttle.Clients: the default of throttle.
const throttleTimeout = 50 * time.Millisecond

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// clients are what callers share. The throttle.Client has a client of go-redis of its own: after some refused connections
// go-redis tries a server once a second only, and the plain calls would bring that about.
type clients struct {
	from     *host
	rdb      universal
	throttle *throttle.Client
}

func (d *deployment) newClients(from *host) *clients {
	rdb, plain := d.client(from), d.client(from)
	c, err := throttle.New(rdb, throttle.Options{Timeout: throttleTimeout, Logger: quiet})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { c.Close(); rdb.Close(); plain.Close() })
	return &clients{from, plain, c}
}

func (c *clients) typed(key *limited, every time.Duration) *caller {
	return &caller{key: key, from: c.from, every: every, typed: true, ask: func() (bool, error) {
		r, err := c.throttle.Allow(ctx, key.key, key.limit())
		return r.Allowed, err
	}}
}

func (c *clients) plain(key *limited, every time.Duration) *caller {
	return &caller{key: key, from: c.from, every: every, ask: func() (bool, error) {
		return allowed(c.rdb.Do(ctx, key.words("GO.THROTTLE", 1)...))
	}}
}

// direct asks one server over a client of its own, also when another server is the master.
func direct(key *limited, from *host, only *server, rdb *redis.Client, every time.Duration) *caller {
	return &caller{key: key, from: from, every: every, only: only, ask: func() (bool, error) {
		return allowed(rdb.Do(ctx, key.words("GO.THROTTLE", 1)...))
	}}
}

// waits asks, and counts a unit only if so many replicas have acknowledged it.
func (c *clients) waits(key *limited, replicas int, every time.Duration) *caller {
	return &caller{key: key, from: c.from, every: every, ask: func() (bool, error) {
		rdb, err := nodeOf(c.rdb, key.key)
		if err != nil {
			return false, err
		}
		return acknowledged(rdb, key, replicas)
	}}
}

// acknowledged asks for a unit, and for the replicas' acknowledgement in the same pipeline.
func acknowledged(rdb *redis.Client, key *limited, replicas int) (bool, error) {
	pipe := rdb.Pipeline()
	decision := pipe.Do(ctx, key.words("GO.THROTTLE", 1)...)
	acks := pipe.Do(ctx, "WAIT", replicas, 200)
	_, _ = pipe.Exec(ctx)
	ok, err := allowed(decision)
	if err != nil || acks.Err() != nil {
		return false, errors.Join(err, acks.Err())
	}
	if n, _ := acks.Int(); n < replicas {
		return false, fmt.Errorf("%d acknowledgements", n)
	}
	return ok, nil
}

// nodeOf returns a client of the node that has a key. WAIT needs the connection of the call before it.
func nodeOf(rdb universal, key string) (*redis.Client, error) {
	switch rdb := rdb.(type) {
	case *redis.Client:
		return rdb, nil
	case *redis.ClusterClient:
		limit, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		return rdb.MasterForKey(limit, key)
	}
	return nil, fmt.Errorf("%T", rdb)
}

func allowed(cmd *redis.Cmd) (bool, error) {
	reply, err := cmd.Int64Slice()
	return err == nil && reply[0] == 0, err
}
