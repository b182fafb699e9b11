package throttle

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// admitting answers every command at once: one unit of ten was taken.
type admitting struct{ reply []int64 }

func (a admitting) Process(_ context.Context, cmd redis.Cmder) error {
	cmd.(interface{ SetVal([]int64) }).SetVal(a.reply)
	return nil
}

// An Allow allocates its command, its key, and one thing more, whether or not it may be merged. A unit of a budget costs no
// allocation.
func TestAllow_allocations(t *testing.T) {
	for name, row := range map[string]struct {
		o      Option
		source Source
		most   float64
	}{"merges": {nil, FromServer, 3}, "plain": {Coalesce(false), FromServer, 3}, "budget": {Budget(1e6, time.Hour), FromBudget, 0}} {
		client := open(t, admitting{[]int64{0, 10, 9, -1, 1000}}, row.o)
		ctx, rate := context.Background(), client.Rate("t", PerSecond(10))
		rate.l.keep("k", client.conn.Now(), 1e6, &Result{})
		require.LessOrEqual(t, testing.AllocsPerRun(1000, func() {
			if r, err := rate.Allow(ctx, "k"); err != nil || r.Source != row.source {
				t.Error(r, err)
			}
		}), row.most, name)
	}
}

// denying denies every call for a second.
func denying(_ context.Context, cmd redis.Cmder) error {
	cmd.(interface{ SetVal([]int64) }).SetVal([]int64{1, 10, 0, 1000, 1000, 0})
	return nil
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
			c := open(t, process(denying), o)
			l := c.Rate("t", PerSecond(10))
			entries := func() (n int) {
				l.l.keys.Range(func(any, any) bool { n++; return true })
				return n
			}
			before := heap()
			for i := range keys {
				_, err := l.Allow(context.Background(), fmt.Sprint("user:", i))
				require.NoError(t, err, name)
			}
			require.Equal(t, keys, entries())
			require.Less(t, heap()-before, int64(keys*bytesPerKey))
			time.Sleep(21 * time.Second)
			require.Zero(t, entries())
			require.Less(t, heap()-before, int64(keys*bytesPerKey/20))
		})
	}
}

// A call that waits for a state which a sweep drops meanwhile gets another one.
func TestIdleKeys_droppedWhileACallWaits(t *testing.T) {
	l := open(t, admitting{}, DenyCache(true)).Rate("t", PerSecond(10)).l
	for range 30 {
		s := l.lock("k")
		var wg sync.WaitGroup
		wg.Go(l.sweep)
		wg.Go(func() {
			s := l.lock("k")
			defer s.mu.Unlock()
			if l.find("k") != s {
				t.Error("the state is nobody's")
			}
		})
		time.Sleep(time.Millisecond) // both wait
		s.mu.Unlock()
		wg.Wait()
	}
}

// A limit for each call costs no allocation more than a constant one, and no memory stays, however many plans there are.
func TestWith_isAValue(t *testing.T) {
	client := open(t, admitting{[]int64{0, 10, 9, -1, 1000}})
	ctx, rate, limits := context.Background(), client.Rate("t", PerSecond(10)), client.Limits("l")
	units := int64(1000)
	for name, row := range map[string]struct {
		ask  func() (Result, error)
		most float64
	}{
		"one of a few plans": {func() (Result, error) { return rate.With(PerHour(1000)).Allow(ctx, "k") }, 3},
		"limits from data":   {func() (Result, error) { return limits.Window(Units(1000), time.Hour).Allow(ctx, "k") }, 3},
		"a plan that nobody had": {func() (Result, error) {
			units++
			return rate.With(Per(units, time.Hour)).Allow(ctx, "k")
		}, 12},
		"unlimited": {func() (Result, error) { return rate.With(Unlimited()).Allow(ctx, "k") }, 0},
	} {
		require.LessOrEqual(t, testing.AllocsPerRun(1000, func() {
			if r, err := row.ask(); err != nil || !r.Allowed {
				t.Error(r, err)
			}
		}), row.most, name)
	}
	before := heap()
	for i := range int64(100_000) {
		_, err := rate.With(Per(i+1, time.Hour)).Allow(ctx, "k")
		require.NoError(t, err)
	}
	require.Less(t, heap()-before, int64(200_000))
}
