package tests

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// No transcript has clients that call at the same time: together they are admitted what fits, and no more.
func TestThrottle_manyClientsAreAdmittedExactlyTheCapacity(t *testing.T) {
	s := start(t, options{})
	for _, c := range []struct {
		name     string
		limit    int64
		count    int
		period   string
		quantity int64
	}{
		{"count divides the period", 1000, 1, frozen, 1},
		{"count does not divide the period", 1000, 7, "21000001", 1},
		{"quantities", 1000, 1, frozen, 3}, // 333 calls of 3 units; one unit is left
	} {
		t.Run(c.name, func(t *testing.T) {
			const clients = 64
			var admitted atomic.Int64
			var wg sync.WaitGroup
			for range clients {
				wg.Go(func() {
					conn := s.Conn()
					defer conn.Close()
					for denied := 0; denied < 3; {
						reply, err := conn.Do(ctx, "GO.THROTTLE", c.name, c.limit-1, c.count, c.period, c.quantity).Int64Slice()
						if !assert.NoError(t, err) {
							return
						}
						if reply[0] == 0 {
							admitted.Add(c.quantity)
						} else {
							denied++
						}
					}
				})
			}
			wg.Wait()
			assert.Equal(t, c.limit/c.quantity*c.quantity, admitted.Load())
			assert.Equal(t, c.limit%c.quantity, s.throttle(c.name, c.limit-1, c.count, c.period, 0)[2])
		})
	}
}

// No transcript has a clock that goes on: a call that comes retry_after later is admitted.
func TestThrottle_aCallAfterRetryAfterIsAdmitted(t *testing.T) {
	s := start(t, options{})
	for _, c := range []struct{ maxBurst, count, period, quantity int64 }{
		{0, 1, 40, 1},
		{4, 7, 100, 2},
		{0, 3, 50, 1}, // 16.67 ms
		{9, 1000, 30, 10},
		{99, 333, 100, 77},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			call := []any{fmt.Sprint(c), c.maxBurst, c.count, c.period, c.quantity, "MS"}
			denied := 0
			for range 40 {
				p := s.TxPipeline() // the second call comes before a unit has drained, or nearly always
				p.Do(ctx, append([]any{"GO.THROTTLE"}, call...)...)
				second := p.Do(ctx, append([]any{"GO.THROTTLE"}, call...)...)
				_, err := p.Exec(ctx)
				require.NoError(t, err)
				reply := ints(t, second)
				if reply[0] == 0 {
					require.Equal(t, int64(-1), reply[3])
					continue
				}
				denied++
				require.Positive(t, reply[3])
				require.LessOrEqual(t, reply[3], c.period*c.quantity)
				time.Sleep(time.Duration(reply[3]) * time.Millisecond)
				require.Equal(t, int64(0), s.throttle(call...)[0], "the call came %d ms later, the retry_after of the denied call", reply[3])
				if denied == 6 {
					break
				}
			}
			require.NotZero(t, denied, "no call was limited, so the test proves nothing")
		})
	}
}
