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

// Remaining counts down without a gap at any rate.
func TestThrottle_remainingCountsDownWithoutAGap(t *testing.T) {
	s := start(t, options{})
	for _, c := range []struct{ limit, count, period int64 }{
		{16, 7, 60}, // a rounded interval, up or down, would be wrong by one call here
		{16, 30, 60},
		{10, 3, 86400},
		{100, 999_999, 86_400_000},
		{5, 1_000_000_007, 3_000_000_000},
	} {
		key := fmt.Sprintf("%d/%d/%d", c.limit, c.count, c.period)
		script := `local r = {}
			for i = 1, ARGV[1] + 1 do r[i] = redis.call('GO.THROTTLE', KEYS[1], ARGV[1] - 1, ARGV[2], ARGV[3]) end
			return r`
		reply, err := s.Eval(ctx, script, []string{key}, c.limit, c.count, c.period).Slice()
		require.NoError(t, err)
		for i, five := range reply {
			five := five.([]any)
			left := max(0, c.limit-1-int64(i))
			assert.Equal(t, c.limit, five[1], "%s, call %d", key, i)
			assert.Equal(t, left, five[2], "%s, call %d", key, i)
			assert.Equal(t, int64(i)/c.limit, five[0], "%s, call %d", key, i)
		}
	}
}

// Peeks, refunds and quantities above the limit, at a rate at which nothing drains.
func TestThrottle_quantities(t *testing.T) {
	s := startStill(t)
	const never, unit = -1, 3_000_000
	for i, c := range []struct {
		maxBurst, quantity int64
		want               []int64
	}{
		// A peek at an absent key shows a full limiter and creates no key.
		{9, 0, []int64{0, 10, 10, never, 0}},
		// A quantity above the limit can never be admitted, and takes nothing.
		{9, 11, []int64{1, 10, 10, never, 0}},
		{9, 4, []int64{0, 10, 6, never, 4 * unit}},
		{9, 0, []int64{0, 10, 6, never, 4 * unit}},
		{9, 11, []int64{1, 10, 6, never, 4 * unit}},
		// A quantity that does not fit now takes nothing. A smaller one may fit.
		{9, 7, []int64{1, 10, 6, unit, 4 * unit}},
		{9, 6, []int64{0, 10, 0, never, 10 * unit}},
		{9, 10, []int64{1, 10, 0, 10 * unit, 10 * unit}},
		// A peek is admitted while no more than the limit is in use.
		{9, 0, []int64{0, 10, 0, never, 10 * unit}},
		// For a smaller burst, more than the limit is in use.
		{7, 0, []int64{1, 8, 0, 2 * unit, 10 * unit}},
		{7, 1, []int64{1, 8, 0, 3 * unit, 10 * unit}},
		// For a larger burst there is room. Usage is the same for all bursts.
		{19, 0, []int64{0, 20, 10, never, 10 * unit}},
		// A refund gives back at most what is in use.
		{9, -3, []int64{0, 10, 3, never, 7 * unit}},
		{9, -7, []int64{0, 10, 10, never, 0}},
		{9, -1, []int64{0, 10, 10, never, 0}},
		{9, -1_000_000_000_001, []int64{0, 10, 10, never, 0}},
		{9, 1, []int64{0, 10, 9, never, unit}},
		{9, -1_000_000_000_001, []int64{0, 10, 10, never, 0}},
	} {
		assert.Equal(t, c.want, s.throttle("k", c.maxBurst, 1, frozen, c.quantity), "step %d", i)
	}
	assert.Zero(t, s.Exists(ctx, "k").Val(), "a full limiter leaves no key")
}

// A call that comes retry_after later is admitted. retry_after is never 0 for a limited call.
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

func TestThrottle_raisedRateFreesAnExhaustedKey(t *testing.T) {
	s := start(t, options{})
	assert.Equal(t, []int64{0, 10, 0, -1, 3600}, s.throttle("k", 9, 10, 3600, 10))
	require.Equal(t, int64(1), s.throttle("k", 9, 10, 3600)[0])

	// All ten units are still in use. Now one of them drains every 60 ms.
	raised := []any{"k", 9, 10, 600, 1, "MS"}
	reply := s.throttle(raised...)
	require.Equal(t, []int64{1, 10, 0, 60, 600}, reply)
	rewritten := s.HGetAll(ctx, "k").Val()

	// The denied call with the new rate wrote the key. The next denied call does not.
	if again := s.throttle(raised...); assert.Equal(t, int64(1), again[0]) {
		assert.LessOrEqual(t, again[3], int64(60))
		assert.Equal(t, rewritten, s.HGetAll(ctx, "k").Val())
	}
	time.Sleep(time.Duration(reply[3]) * time.Millisecond)
	assert.Equal(t, int64(0), s.throttle(raised...)[0], "the call came %d ms later, the retry_after of the denied call", reply[3])
}

// A new rate keeps the number of units in use.
func TestThrottle_usedUnitsCarryOverToAnotherRate(t *testing.T) {
	s := startStill(t)
	type call struct {
		words string
		want  []int64
	}
	for _, c := range []struct {
		name  string
		calls []call
	}{
		{"a lower rate: the same units, longer times", []call{
			{"15 30 60 8", []int64{0, 16, 8, -1, 16}},
			{"15 15 60 0", []int64{0, 16, 8, -1, 32}}, // a peek writes nothing
			{"15 30 60 0", []int64{0, 16, 8, -1, 16}},
			{"15 15 60 1", []int64{0, 16, 7, -1, 36}},
			{"15 15 60 0", []int64{0, 16, 7, -1, 36}},
		}},
		{"there and back", []call{
			{"9 10 1000 5", []int64{0, 10, 5, -1, 500}},
			{"9 10 2000 1", []int64{0, 10, 4, -1, 1200}},
			{"9 10 1000 1", []int64{0, 10, 3, -1, 700}},
		}},
		{"counts that do not divide the period", []call{
			{"15 7 6000 3", []int64{0, 16, 13, -1, 2572}},
			{"15 3 10000 1", []int64{0, 16, 12, -1, 13334}},
			{"15 7 6000 1", []int64{0, 16, 11, -1, 4286}},
		}},
		{"the same rate in other numbers is not a new rate", []call{
			{"9 10 1000 5", []int64{0, 10, 5, -1, 500}},
			{"9 1 100 1", []int64{0, 10, 4, -1, 600}},
			{"9 20 2000 1", []int64{0, 10, 3, -1, 700}},
			{"9 7 700 1", []int64{0, 10, 2, -1, 800}},
		}},
		{"usage above a lowered limit stays", []call{
			{"99 1 100 90", []int64{0, 100, 10, -1, 9000}},
			{"9 1 100 1", []int64{1, 10, 0, 8100, 9000}},
			{"99 1 100 1", []int64{0, 100, 9, -1, 9100}},
		}},
		{"a denied call with a new rate writes, unless its quantity is above the limit", []call{
			{"9 1 1000 10", []int64{0, 10, 0, -1, 10_000}},
			{"9 1 500 11", []int64{1, 10, 0, -1, 5000}},
			{"9 1 1000 0", []int64{0, 10, 0, -1, 10_000}},
			{"9 1 500 1", []int64{1, 10, 0, 500, 5000}},
			{"9 1 500 1", []int64{1, 10, 0, 500, 5000}},
		}},
		{"a refund at another rate", []call{
			{"9 1 1000 10", []int64{0, 10, 0, -1, 10_000}},
			{"9 1 500 -4", []int64{0, 10, 4, -1, 3000}},
		}},
	} {
		for i, call := range c.calls {
			assert.Equal(t, call.want, s.throttle(append([]any{c.name}, fields(call.words)...)...), "%s: step %d", c.name, i)
		}
	}
}
