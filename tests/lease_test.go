package tests

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Clients call at the same time: there are never more holders than slots, and released slots are taken again.
func TestLease_manyClients(t *testing.T) {
	s := start(t, options{})
	const limit, clients, want = 5, 64, 60
	var holders, highest, taken atomic.Int64
	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			conn := s.Conn()
			defer conn.Close()
			for taken.Load() < limit*want {
				id := fmt.Sprint("client ", client)
				reply, err := conn.Do(ctx, "GO.LEASE", "k", limit, 3600, id).Int64Slice()
				if !assert.NoError(t, err) {
					return
				}
				if reply[0] == 1 {
					continue
				}
				n := holders.Add(1)
				for h := highest.Load(); n > h && !highest.CompareAndSwap(h, n); h = highest.Load() {
				}
				taken.Add(1)
				if client%2 == 0 {
					conn.Do(ctx, "GO.LEASE", "k", limit, 3600, id) // renew the lease
				}
				holders.Add(-1)
				held, err := conn.Do(ctx, "GO.RELEASE", "k", id).Int64()
				assert.NoError(t, err)
				assert.EqualValues(t, 1, held)
			}
		})
	}
	wg.Wait()
	assert.LessOrEqual(t, highest.Load(), int64(limit))
	assert.Greater(t, highest.Load(), int64(1), "the holders never overlapped, so the test proves nothing")
	assert.GreaterOrEqual(t, taken.Load(), int64(limit*want))
	assert.Zero(t, s.Exists(ctx, "k").Val())
}
