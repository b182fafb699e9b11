package throttle

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// denying denies every call for a second.
func denying(_ context.Context, cmd redis.Cmder) error {
	cmd.(interface{ SetVal([]int64) }).SetVal([]int64{1, 10, 0, 1000, 1000, 0})
	return nil
}

// heap returns how many bytes are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A limiter that the client remembers takes less than bytesPerLimiter. Limiters that are idle are dropped and their memory
// is freed, if just one limiter is in use.
func TestIdleLimiters_areDropped(t *testing.T) {
	const keys, bytesPerLimiter = 100_000, 500
	for name, o := range map[string]Option{"denials": DenyCache(true), "budgets": Budget(10, time.Second)} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			c, err := New(process(denying), Options{Now: func() time.Time { return now }}, o)
			require.NoError(t, err)
			l := c.Rate("t", PerSecond(10))
			ask := func(key string) {
				_, err := l.Allow(context.Background(), key)
				require.NoError(t, err)
			}
			entries := func() (n int) {
				for i := range tableParts {
					if l.l.denials != nil {
						n += len(l.l.denials.parts[i].values)
					} else {
						n += len(l.l.budgets.parts[i].values)
					}
				}
				return n
			}
			before := heap()
			for i := range keys {
				ask(fmt.Sprint("user:", i))
			}
			require.Equal(t, keys, entries())
			require.Less(t, heap()-before, int64(keys*bytesPerLimiter))
			for range 150 {
				now = now.Add(200 * time.Millisecond)
				ask("user:0")
			}
			require.LessOrEqual(t, entries(), 2)
			require.Less(t, heap()-before, int64(keys*bytesPerLimiter/50))
			require.NoError(t, c.Close())
		})
	}
}
