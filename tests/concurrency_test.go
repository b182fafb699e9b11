package tests

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
)

// frozen is a period in seconds, 35 days. At one unit in that time nothing drains while a test runs.
const frozen = "3000000"

// together runs f for some clients that call at the same time, each on a connection of its own.
func (s *server) together(clients int, f func(client int, conn *redis.Conn)) {
	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			conn := s.Conn()
			defer conn.Close()
			f(client, conn)
		})
	}
	wg.Wait()
}

// No transcript has clients that call at the same time: together they are admitted what fits, and no more.
func TestConcurrency_exactlyTheLimitIsAdmitted(t *testing.T) {
	s := start(t, options{})
	for _, row := range []struct {
		call        string
		calls, size int64 // how many calls are admitted, and the units of each
	}{
		{"GO.THROTTLE a 999 1 3000000", 1000, 1},
		{"GO.THROTTLE b 999 7 21000001", 1000, 1}, // the count does not divide the period
		{"GO.THROTTLE c 999 1 3000000 3", 333, 3},
		{"GO.WINDOW d 100 3600", 100, 1},
		{"GO.WINDOW e 1000 3600 1 EXACT", 1000, 1},
		{"GO.WINDOW f 1000000 3153600000 1000", 1000, 1000},
		{"GO.QUOTA g 1000 3153600000 1 ALIGN 17", 1000, 1},
	} {
		var admitted atomic.Int64
		s.together(64, func(_ int, conn *redis.Conn) {
			for denied := 0; denied < 3 && admitted.Load() <= 2*row.calls; {
				reply, err := conn.Do(ctx, fields(row.call)...).Int64Slice()
				if !assert.NoError(t, err) {
					return
				}
				if reply[0] == 0 {
					admitted.Add(1)
				} else {
					denied++
				}
			}
		})
		assert.Equal(t, row.calls, admitted.Load(), row.call)
	}
}

// Half of the clients take from two limits, the others from the second alone.
func TestConcurrency_severalLimits(t *testing.T) {
	s := start(t, options{})
	var admitted [2]atomic.Int64
	s.together(64, func(client int, conn *redis.Conn) {
		groups := []string{"a WINDOW 300 " + frozen, "both THROTTLE 499 1 " + frozen}
		for admitted[0].Load()+admitted[1].Load() <= 1000 {
			reply, err := conn.Do(ctx, allOf(groups[client%2:]...)...).Slice()
			if !assert.NoError(t, err) || reply[0] == int64(1) {
				return
			}
			admitted[client%2].Add(1)
		}
	})
	assert.LessOrEqual(t, admitted[0].Load(), int64(300))
	assert.EqualValues(t, 500, admitted[0].Load()+admitted[1].Load())
	assert.Equal(t, int64(300)-admitted[0].Load(), ints(t, s.Do(ctx, "GO.WINDOW_RO", "a", 300, frozen, 0))[2])
}

// There are never more holders than slots, and released slots are taken again.
func TestConcurrency_leases(t *testing.T) {
	s := start(t, options{})
	const limit, want = 5, 300
	var holders, highest, taken atomic.Int64
	s.together(64, func(client int, conn *redis.Conn) {
		id := fmt.Sprint("client ", client)
		for taken.Load() < want {
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
			conn.Do(ctx, "GO.LEASE", "k", limit, 3600, id) // renews the lease
			holders.Add(-1)
			assert.EqualValues(t, 1, conn.Do(ctx, "GO.RELEASE", "k", id).Val())
		}
	})
	assert.LessOrEqual(t, highest.Load(), int64(limit))
	assert.Greater(t, highest.Load(), int64(1), "the holders never overlapped, so the test proves nothing")
	assert.Zero(t, s.Exists(ctx, "k").Val())
}

// Callers that reserve get different slots, none of them later than maxwait.
func TestConcurrency_reservations(t *testing.T) {
	s := start(t, options{})
	var mu sync.Mutex
	slots, limited := map[int64]int{}, 0
	s.together(40, func(_ int, conn *redis.Conn) {
		for range 5 {
			reply := ints(t, conn.Do(ctx, "GO.THROTTLE", "k", 4, 1, 10_000, 1, "RESERVE", 1_000_000))
			mu.Lock()
			if reply[0] == 1 {
				limited++
				assert.Equal(t, int64(-1), reply[5])
			} else {
				slots[(reply[5]+5000)/10_000]++
			}
			mu.Unlock()
		}
	})
	assert.Equal(t, 5, slots[0], "as many as the limit act at once")
	for i := range int64(100) {
		assert.Equal(t, 1, slots[i+1], "slot %d", i+1)
	}
	assert.Equal(t, 200-105, limited)
}
