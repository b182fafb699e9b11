package tests

import (
	"math"
	"strconv"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// cell sets a key as redis-cell does. Its TAT is ms milliseconds from now.
func (s *server) cell(key string, ms int64) (tat int64) {
	s.t.Helper()
	tat = s.now() + ms*1_000_000
	// The key expires at the TAT, as the keys of redis-cell do.
	require.NoError(s.t, s.Do(ctx, "SET", key, tat, "PX", max(ms, 60_000)).Err())
	return tat
}

// state returns the fields of a limiter. A value that is no integer fails the test.
func (s *server) state(key string) map[string]int64 {
	s.t.Helper()
	require.Equal(s.t, "hash", s.Type(ctx, key).Val(), key)
	all := map[string]int64{}
	for name, value := range s.HGetAll(ctx, key).Val() {
		n, err := strconv.ParseInt(value, 10, 64)
		require.NoError(s.t, err, "%s %s", key, name)
		all[name] = n
	}
	return all
}

// expiry returns the time at which a key expires, in ms since the epoch.
func (s *server) expiry(key string) int64 {
	s.t.Helper()
	at, err := s.Do(ctx, "PEXPIRETIME", key).Int64()
	require.NoError(s.t, err)
	return at
}

// lastsLongEnough checks that a key expires when its TAT and its lockout have passed, and at most
// slack ms later.
func (s *server) lastsLongEnough(key string, slack int64, what string) {
	s.t.Helper()
	st := s.state(key)
	void := (max(st["0"]+min(st["2"], 1), st["128"]) + 999_999) / 1_000_000
	at := s.expiry(key)
	assert.True(s.t, void <= at && at <= void+slack,
		"%s: in use until %d, expires at %d, slack %d", what, void, at, slack)
}

// base36 returns a number as the members of a window hold it.
func base36(n int64) string { return strconv.FormatInt(n, 36) }

// memory returns the bytes that a key takes, with all its entries.
func (s *server) memory(key string) int64 {
	s.t.Helper()
	n, err := s.MemoryUsage(ctx, key, 0).Result()
	require.NoError(s.t, err)
	return n
}

// placeState is a script that replaces a key with a state and peeks at the key. The script
// fails if the module does not accept the state.
const placeState = `redis.call('DEL', KEYS[1])
	redis.call('HSET', KEYS[1], unpack(ARGV))
	return redis.call('GO.THROTTLE_RO', KEYS[1], 9, 1, 3600, 0)`

// farStates returns valid states at the ends of their ranges, each as fields and values.
// Field 0 is the TAT in ns and field 1 the period: whole seconds, or ns as a negative
// number. Field 2 is the fraction of the TAT and field 3 the count.
func farStates() (all [][]any) {
	for _, tat := range []int64{1e18, math.MaxInt64 - 1, math.MaxInt64} {
		for _, period := range []int64{-1, 3_153_600_000} { // 1 ns, 100 years
			all = append(all, []any{0, tat, 1, period})
			for _, count := range []int64{2, 1e12} {
				for _, frac := range []int64{0, 1, count - 1} {
					all = append(all, []any{0, tat, 1, period, 2, frac, 3, count})
				}
			}
		}
	}
	return all
}

// lockedStates returns valid states with lockouts in field 128, each as fields and values: ended
// long ago, standing for some days, and the last that there can be.
func lockedStates() (all [][]any) {
	now := time.Now().UnixNano()
	for _, locked := range []int64{1e18, now + 1e15, math.MaxInt64} {
		all = append(all, []any{0, int64(1e18), 1, 3600, 128, locked},
			[]any{0, now + 1e16, 1, 60, 2, 3, 3, 7, 128, locked}, []any{0, now + 1e16, 1, 3600, 4, now + 1e16, 5, 3600, 129, locked})
	}
	return all
}
