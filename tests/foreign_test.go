package tests

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/commands"
)

// What stands at a key that is not ours is an error for every call and stays as it
// is, to the byte.
func TestForeign_isAnErrorAndStaysAsItIs(t *testing.T) {
	s := start(t, options{})
	const tat = "4102444800000000000" // 2100
	for _, c := range []struct {
		set  string // made with this command
		want commands.Error
	}{
		// Other types.
		{"RPUSH k a b", commands.ErrWrongType},
		{"SADD k a", commands.ErrWrongType},
		{"ZADD k 1 a", commands.ErrWrongType},
		{"XADD k * t " + tat, commands.ErrWrongType},
		{"PFADD k a", commands.ErrWrongType},
		// Strings that are no TAT of redis-cell: canonical decimal, from 10^18 to 2^63-1.
		{"SET k hello", commands.ErrWrongType},
		{"SET k 5", commands.ErrWrongType},
		{"SET k 999999999999999999", commands.ErrWrongType},
		{"SET k 0" + tat, commands.ErrWrongType},
		{"SET k +" + tat, commands.ErrWrongType},
		{"SET k -" + tat, commands.ErrWrongType},
		{"SET k 9223372036854775808", commands.ErrWrongType},
		{"SET k 18446744073709551615", commands.ErrWrongType},
		{"SET k 410244480000000000x", commands.ErrWrongType},
		{"SET k 410244480000000000.", commands.ErrWrongType},
		{"SETBIT k 0 0", commands.ErrWrongType},
		// Someone's hash, even with fields of our names.
		{"HSET k name Ann age 7", commands.ErrForeignHash},
		{"HSET k 0 " + tat, commands.ErrForeignHash},
		{"HSET k 1 -1000", commands.ErrForeignHash},
		{"HSET k 2 1 3 7", commands.ErrForeignHash},
		{"HSET k 0 " + tat + " name Ann", commands.ErrForeignHash},
		{"HSET k 0 " + tat + " 1 -1000 name Ann", commands.ErrForeignHash},
		{"HSET k 0 " + tat + " 1 -1000 2 1", commands.ErrForeignHash},
		{"HSET k 0 " + tat + " 1 -1000 3 7", commands.ErrForeignHash},
		{"HSET k 0 " + tat + " 1 -1000 2 1 3 7 name Ann", commands.ErrForeignHash},
		{"HSET k t " + tat + " p 1000", commands.ErrForeignHash},
		{"HSET k 4 " + tat + " 5 -1000", commands.ErrForeignHash},
		{"HSET k 0 " + tat + " 1 -1000 8 " + tat + " 9 -1000", commands.ErrForeignHash},
		// Our fields, but numbers that we never write.
		{"HSET k 0 soon 1 -1000", commands.ErrDamaged},
		{"HSET k 0 -1 1 -1000", commands.ErrDamaged},
		{"HSET k 0 999999999999999999 1 -1000", commands.ErrDamaged}, // before 2001
		{"HSET k 0 17 1 4", commands.ErrDamaged},                     // someone's array
		{"HSET k 0 4e18 1 -1000", commands.ErrDamaged},
		{"HSET k 0 9223372036854775808 1 -1000", commands.ErrDamaged},
		{"HSET k 0 " + tat + " 1 x", commands.ErrDamaged},
		{"HSET k 0 " + tat + " 1 0", commands.ErrDamaged},
		{"HSET k 0 " + tat + " 1 -1000000000", commands.ErrDamaged},
		{"HSET k 0 " + tat + " 1 -3153600000000000001", commands.ErrDamaged},
		{"HSET k 0 " + tat + " 1 3153601000", commands.ErrDamaged},
		{"HSET k 0 " + tat + " 1 -9223372036854775808", commands.ErrDamaged},
		{"HSET k 0 " + tat + " 1 -1000 2 7 3 7", commands.ErrDamaged},
		{"HSET k 0 " + tat + " 1 -1000 2 8 3 7", commands.ErrDamaged},
		{"HSET k 0 " + tat + " 1 -1000 2 -1 3 7", commands.ErrDamaged},
		{"HSET k 0 " + tat + " 1 -1000 2 x 3 7", commands.ErrDamaged},
		{"HSET k 0 " + tat + " 1 -1000 2 0 3 0", commands.ErrDamaged},
		{"HSET k 0 " + tat + " 1 -1000 2 0 3 1", commands.ErrDamaged},
		{"HSET k 0 " + tat + " 1 -1000 2 0 3 -7", commands.ErrDamaged},
		{"HSET k 0 " + tat + " 1 -1000 2 0 3 1000000000001", commands.ErrDamaged},
		{"HSET k 0 " + tat + " 1 -1000 4 soon 5 -1000", commands.ErrDamaged},
		{"HSET k 0 " + tat + " 1 -1000 4 " + tat + " 5 0", commands.ErrDamaged},
		{"HSET k 0 " + tat + " 1 -1000 4 " + tat + " 5 -1000 6 7 7 7", commands.ErrDamaged},
	} {
		for _, ttl := range []bool{false, true} {
			s.Del(ctx, "k")
			require.NoError(t, s.Do(ctx, fields(c.set)...).Err(), c.set)
			if ttl {
				s.PExpire(ctx, "k", time.Hour)
			}
			dump, at := s.Dump(ctx, "k").Val(), s.expiry("k")
			changes := s.info("persistence", "rdb_changes_since_last_save")
			for _, call := range []string{"15 30 60", "15 30 60 0", "15 30 60 -1", "15 30 60 17", "15 7 61 1"} {
				for _, name := range ourNames {
					err := s.Do(ctx, append([]any{name, "k"}, fields(call)...)...).Err()
					assert.EqualError(t, err, c.want.Text(), "%s, %s %s", c.set, name, call)
				}
			}
			assert.Equal(t, dump, s.Dump(ctx, "k").Val(), c.set)
			assert.Equal(t, at, s.expiry("k"), c.set)
			assert.Equal(t, changes, s.info("persistence", "rdb_changes_since_last_save"), c.set)
		}
	}
}

// Fields that are empty or hold bytes are no numbers either.
func TestForeign_oddBytes(t *testing.T) {
	s := start(t, options{})
	for i, value := range []string{"", " 1", "1 ", "\x00", "1\x00", "+1", "1.0", "0x1", "\xff\xfe", "٣"} {
		s.Del(ctx, "k", "str")
		s.HSet(ctx, "k", "0", value, "1", 1000)
		s.Set(ctx, "str", value, 0)
		assert.EqualError(t, s.Do(ctx, "GO.THROTTLE", "k", 15, 30, 60).Err(), commands.ErrDamaged.Text(), "value %d", i)
		assert.EqualError(t, s.Do(ctx, "GO.THROTTLE", "str", 15, 30, 60).Err(), commands.ErrWrongType.Text(), "value %d", i)
		assert.Equal(t, value, s.HGet(ctx, "k", "0").Val())
		assert.Equal(t, value, s.Get(ctx, "str").Val())
	}
}

// cell puts a redis-cell key in place: so many ms from now until nothing is in use.
func (s *server) cell(key string, ms int64) (tat int64) {
	s.t.Helper()
	tat = s.now() + ms*1_000_000
	// As redis-cell does, it expires with the TAT.
	require.NoError(s.t, s.Do(ctx, "SET", key, tat, "PX", max(ms, 60_000)).Err())
	return tat
}

// A live redis-cell key is taken over as it is: changing modules forgives nothing.
func TestForeign_redisCellKeyIsAdopted(t *testing.T) {
	s := start(t, options{})
	const interval = 3_600_000 // ms; 10 units
	tat := s.cell("k", 7*interval-500)
	at := s.expiry("k")

	// What does not write reads it and leaves it a string, whatever the rate.
	for _, c := range []struct {
		call string
		want []int64
	}{
		{"9 1 3600 0", []int64{0, 10, 3, -1, 25200}},
		{"9 1 3600 4", []int64{1, 10, 3, 3600, 25200}},
		{"9 1 3600 11", []int64{1, 10, 3, -1, 25200}},
		{"0 1 3600 1", []int64{1, 1, 0, 25200, 25200}},
		{"9 1 360 1", []int64{1, 10, 0, 21960, 25200}}, // its TAT has no rate of its own
	} {
		assert.Equal(t, c.want, s.throttle(append([]any{"k"}, fields(c.call)...)...), c.call)
		assert.Equal(t, strconv.FormatInt(tat, 10), s.Get(ctx, "k").Val(), c.call)
		assert.Equal(t, at, s.expiry("k"), c.call)
	}
	// The next write makes it a hash.
	assert.Equal(t, []int64{0, 10, 2, -1, 28800}, s.throttle("k", 9, 1, 3600))
	assert.Equal(t, map[string]int64{"0": tat + interval*1_000_000, "1": interval / 1000}, s.state("k"))
	s.lastsLongEnough("k", slack(10, 1, interval), "adopted")

	// A refund writes too, and to full leaves nothing.
	s.cell("k", 7*interval-500)
	assert.Equal(t, []int64{0, 10, 5, -1, 18000}, s.throttle("k", 9, 1, 3600, -2))
	s.state("k")
	s.cell("k", 7*interval-500)
	assert.Equal(t, []int64{0, 10, 10, -1, 0}, s.throttle("k", 9, 1, 3600, -8))
	assert.Zero(t, s.Exists(ctx, "k").Val())

	// One that lies in the past is a full limiter; one without an expiry gets one.
	s.cell("k", -interval)
	assert.Equal(t, []int64{0, 10, 10, -1, 0}, s.throttle("k", 9, 1, 3600, 0))
	assert.Equal(t, []int64{0, 10, 9, -1, 3600}, s.throttle("k", 9, 1, 3600))
	s.cell("k", interval)
	s.Persist(ctx, "k")
	s.throttle("k", 9, 1, 3600, 0)
	assert.EqualValues(t, -1, s.expiry("k"))
	s.throttle("k", 9, 1, 3600)
	s.lastsLongEnough("k", slack(10, 1, interval), "adopted without an expiry")

	// The least and the greatest number that can be one.
	for _, value := range []string{"1000000000000000000", "9223372036854775807"} {
		s.Set(ctx, "k", value, 0)
		reply := s.throttle("k", 9, 1, 3600, 0)
		assert.Equal(t, value[0] == '9', reply[0] == 1, value)
		assert.GreaterOrEqual(t, reply[4], int64(0), fmt.Sprint(value, reply))
		assert.Equal(t, value, s.Get(ctx, "k").Val())
	}
}
