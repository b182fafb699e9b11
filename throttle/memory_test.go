package throttle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"gothrottle/throttle/internal/local"
)

// open returns a client that is closed when the test ends.
func open(t testing.TB, rdb Processor, options ...Option) *Client {
	t.Helper()
	c, err := New(rdb, options...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// process is a Processor that is one function.
type process func(ctx context.Context, cmd redis.Cmder) error

func (p process) Process(ctx context.Context, cmd redis.Cmder) error { return p(ctx, cmd) }

// ints is a server that answers every command at once with these integers.
type ints []any

func (i ints) Process(_ context.Context, cmd redis.Cmder) error {
	cmd.(interface{ SetVal(any) }).SetVal([]any(i))
	return nil
}

// answers returns a server that answers with these integers.
func answers(integers ...int64) (i ints) {
	for _, n := range integers {
		i = append(i, n)
	}
	return i
}

// heap returns how many bytes are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what a sync.Pool holds survives the first one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A key that the client remembers takes less than bytesPerKey. Idle keys are dropped and their memory is freed, whether or
// not the limiter is used.
func TestIdleKeys_areDropped(t *testing.T) {
	const keys, bytesPerKey = 20_000, 500
	for name, o := range map[string]Option{"denials": DenyCache(true), "budgets": Budget(10, time.Second)} {
		synctest.Test(t, func(t *testing.T) {
			c := open(t, answers(1, 10, 0, 1000, 1000, 0), o)
			l := c.Rate("t", PerSecond(10))
			before := heap()
			for range 2 {
				for i := range keys {
					_, err := l.Allow(context.Background(), fmt.Sprint("user:", i))
					require.NoError(t, err, name)
				}
				require.Greater(t, heap()-before, int64(keys*bytesPerKey/4))
				require.Less(t, heap()-before, int64(keys*bytesPerKey))
				time.Sleep(21 * time.Second)
				require.Less(t, heap()-before, int64(keys*bytesPerKey/20))
			}
		})
	}
}

// An Allow allocates its command, its words, and where others may join it. A unit of a budget costs no allocation. A limit for
// each call costs none more than a constant one, and no memory stays, however many plans there are.
func TestAllow_allocations(t *testing.T) {
	ctx, units := context.Background(), int64(1000)
	plain := func(r Rate, _ Window) (Result, error) { return r.Allow(ctx, "k") }
	other := func(r Rate, _ Window) (Result, error) {
		units++
		return r.With(Per(units, time.Hour)).Allow(ctx, "k")
	}
	for name, row := range map[string]struct {
		o      Option
		ask    func(Rate, Window) (Result, error)
		source string
		most   float64
	}{
		"merges":                 {nil, plain, fromServer, 9},
		"budget":                 {Budget(1e6, time.Hour), plain, fromBudget, 0},
		"one of a few plans":     {nil, func(r Rate, _ Window) (Result, error) { return r.With(PerHour(1000)).Allow(ctx, "k") }, fromServer, 9},
		"limits from data":       {nil, func(_ Rate, l Window) (Result, error) { return l.With(Units(1000)).Allow(ctx, "k") }, fromServer, 9},
		"a plan that nobody had": {nil, other, fromServer, 9},
		"unlimited":              {nil, func(r Rate, _ Window) (Result, error) { return r.With(Unlimited()).Allow(ctx, "k") }, fromLimit, 0},
	} {
		client := open(t, answers(0, 10, 9, -1, 1000), row.o)
		rate, limits := client.Rate("t", PerSecond(10)), client.Window("l", 1, time.Hour)
		rate.l.keys.Keep("k", &rate.l.bounds, client.conn.Now(), client.conn.Now(), 1e6, &local.Reply{})
		ask := func() {
			if r, err := row.ask(rate, limits); err != nil || r.Source != row.source {
				t.Error(r, err)
			}
		}
		require.LessOrEqual(t, testing.AllocsPerRun(1000, ask), row.most, name)
		before := heap()
		for range 20_000 {
			ask()
		}
		require.Less(t, heap()-before, int64(200_000), name)
	}
}

type wrongType struct{}

func (wrongType) Error() string { return "WRONGTYPE" }
func (wrongType) RedisError()   {}

// Units that one key refuses do not keep the units of others from going back. A server that does not answer does.
func TestGiveBack_errors(t *testing.T) {
	const keys = 5000
	for fails, want := range map[error][2]int64{wrongType{}: {keys, keys}, io.EOF: {5, 512}} {
		synctest.Test(t, func(t *testing.T) {
			var sent atomic.Int64
			c := open(t, process(func(context.Context, redis.Cmder) error { sent.Add(1); return fails }), Budget(5, time.Hour))
			l := c.Rate("t", PerHour(10)).l
			for i := range keys {
				l.keys.Keep(fmt.Sprint(i), &l.bounds, 0, c.conn.Now(), 1, &local.Reply{})
			}
			require.ErrorIs(t, c.Close(), fails)
			require.GreaterOrEqual(t, sent.Load(), want[0])
			require.LessOrEqual(t, sent.Load(), want[1])
		})
	}
}

// clocked is a server with a clock of the test's.
type clocked struct {
	process
	now time.Time
}

func (c *clocked) Now() time.Time { return c.now }

// Units that got old by a clock of the caller's stay taken: others may have been admitted in their place.
func TestGiveBack_old(t *testing.T) {
	for ahead, want := range map[time.Duration]int64{0: 1, time.Minute: 0} {
		var sent atomic.Int64
		started := time.Now()
		server := &clocked{process(func(context.Context, redis.Cmder) error { sent.Add(1); return nil }), started}
		c := open(t, server, Budget(5, time.Second))
		l := c.Rate("t", PerHour(10)).l
		l.keys.Keep("bob", &l.bounds, 0, c.conn.Now(), 1, &local.Reply{})
		l.sweep()
		server.now = started.Add(ahead)
		_ = c.Close() // the reply is empty
		require.Equal(t, want, sent.Load(), ahead)
	}
}

// Nothing holds a grant that has ended, or a client that was closed: no timer waits any more. The heap of the
// runtime holds up to a quarter of stopped timers.
func TestClose_leavesNothing(t *testing.T) {
	const clients, times = 40, 40
	var closed []weak.Pointer[Client]
	for range clients {
		c, err := New(ints([]any{int64(0), int64(10), int64(0), int64(1), int64(1000), int64(1)}), Budget(5, time.Hour), DenyCache(true))
		require.NoError(t, err)
		lease, err := c.Slots("slots", 10, time.Hour).Lease(context.Background(), "a")
		require.NoError(t, errors.Join(err, lease.Close()))
		_, found := c.leases.Load(lease)
		require.False(t, found)
		var grants []weak.Pointer[local.Grant[bounds]]
		l := c.Rate("t", PerHour(10)).l
		for range times {
			l.keys.Forget("bob")
			l.keys.Keep("bob", &l.bounds, c.conn.Now(), c.conn.Now(), 1, &local.Reply{})
			u, _ := l.keys.Spend("bob", &l.bounds, c.conn.Now)
			grants = append(grants, weak.Make(u.Low))
		}
		require.Less(t, held(grants), times/2)
		require.NoError(t, c.Close())
		closed = append(closed, weak.Make(c))
	}
	require.Less(t, held(closed), clients/2)
}

// held returns how many of these are held by something.
func held[T any](all []weak.Pointer[T]) (n int) {
	runtime.GC()
	for _, p := range all {
		if p.Value() != nil {
			n++
		}
	}
	return n
}
