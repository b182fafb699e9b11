package throttle

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// counting grants all that is asked, and counts commands. Other goroutines run meanwhile.
type counting struct{ commands atomic.Int64 }

func (c *counting) Process(_ context.Context, cmd redis.Cmder) error {
	c.commands.Add(1)
	runtime.Gosched()
	cmd.(interface{ SetVal([]int64) }).SetVal([]int64{0, 1 << 20, 1 << 19, -1, 1000, 1 << 19})
	return nil
}

// Callers that come back at once share the next command with all others, not with the first few.
func TestCoalescing_callersRegroup(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	server := &counting{}
	client, err := New(server, Options{}, Timeout(time.Minute)) // on a busy machine too
	require.NoError(t, err)
	const goroutines, calls = 64, 200
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for range calls {
				if r, err := client.Rate("k", PerSecond(1<<20)).Allow(context.Background(), ""); err != nil || !r.Allowed {
					t.Error(r, err)
				}
			}
		})
	}
	all.Wait()
	require.NoError(t, client.Close())
	require.Less(t, server.commands.Load(), int64(goroutines*calls/48))
}
