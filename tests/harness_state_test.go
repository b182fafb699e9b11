package tests

import (
	"strconv"
	"strings"

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

// quota returns the units used in a fixed window and the end of the window, in µs since the
// epoch. The key holds the end in ns.
func (s *server) quota(key string) (used, end int64) {
	s.t.Helper()
	a, b, _ := strings.Cut(s.Get(ctx, key).Val(), "@")
	used, err := strconv.ParseInt(a, 10, 64)
	require.NoError(s.t, err)
	end, err = strconv.ParseInt(b, 10, 64)
	require.NoError(s.t, err)
	return used, end / 1000
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

// slack returns the longest time, in ms, for which a key may outlive its state.
func slack(limit, count, periodMs int64) int64 {
	return max(1000, limit*periodMs/count/4)
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
