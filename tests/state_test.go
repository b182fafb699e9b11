package tests

import (
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/commands"
)

// The replies depend on the date, so no transcript has them: a state at the ends of what is valid is accepted, with a
// lockout too.
func TestState_endsOfTheRangesAreAccepted(t *testing.T) {
	s := start(t, options{})
	for _, state := range append(farStates(), lockedStates()...) {
		reply, err := s.Eval(ctx, placeState, []string{"k"}, state...).Int64Slice()
		require.NoError(t, err, "%v", state)
		last := len(state) - 1
		inUse := state[1] != int64(1e18) || state[last-1].(int) >= 128 && state[last] != int64(1e18) // 10^18 ns: in 2001
		assert.Equal(t, inUse, reply[4] > 0, "%v: %v", state, reply)
		assert.NoError(t, s.Do(ctx, "GO.THROTTLE", "k", 9, 7, 60).Err(), "%v", state)
	}
	s.Set(ctx, "k", math.MaxInt64, 0) // a TAT of redis-cell
	assert.Regexp(t, `^\[1 10 0 \d+ \d+\]$`, s.must("GO.THROTTLE k 9 1 3600"))
}

// No call leaks memory of the server.
func TestState_noCallLeaksMemory(t *testing.T) {
	lasts(t)
	s := start(t, options{args: []string{"--slowlog-log-slower-than", "-1"}}) // its entries are memory in use
	used := func() int {
		eventually(t, "the memory of other clients is free", func() bool { return s.info("clients", "connected_clients") == "1" })
		n, err := strconv.Atoi(s.info("memory", "used_memory"))
		require.NoError(t, err)
		return n
	}
	round := func(c *redis.Client) {
		p := c.Pipeline()
		for _, call := range []string{
			"GO.THROTTLE k 99 1 3600 90", "GO.THROTTLE k 99 1 3600 90", "GO.THROTTLE k 99 1 3600 0",
			"GO.THROTTLE k 99 7 3600 2", "GO.THROTTLE k 99 1 3600 1", "GO.THROTTLE k 9 1 3600 1", // with fields 2 and 3, and without
			"GO.THROTTLE k 99 1 60 99", "GO.THROTTLE k x 1 60", "CL.THROTTLE k 99 1 60 -100",
			"SET k 4102444800000000000", "GO.THROTTLE k 999999 1 3600 1", "GO.THROTTLE k 999999 1 3600 -1", "DEL k",
			"HSET k 0 4102444800000000000 1 -9 4 4102444800000000000 5 -9", "GO.THROTTLE k 9 1 60 -1",
			"HSET k name Ann", "GO.THROTTLE k 9 1 60", "DEL k", "SADD k a", "GO.THROTTLE k 9 1 60", "DEL k",
			"GO.THROTTLE k 9 1 60 1 MS MS MS MS MS MS MS MS MS MS", "GO.THROTTLE k 9 1 60 -5",
			"GO.WINDOW w 99 3600 9", "GO.WINDOW w 99 3600 91", "GO.WINDOW w 99 3600 -3", "GO.WINDOW w 999 3600 9 UPTO",
			"GO.WINDOW w 999 3600 9 EXACT", "GO.WINDOW w 9999 3600", "GO.WINDOW w 9999 3600 9990", "GO.WINDOW_RO w 9 3600",
			"GO.WINDOW w 99 1 1 MS", "GO.WINDOW w x 1", "GO.WINDOW k 9 60", "GO.WINDOW w 999 3600 -999",
			"GO.QUOTA q 99 3600", "GO.QUOTA q 99 3600 30", "GO.QUOTA q 99 3600 99", "GO.QUOTA_RO q 99 3600 1 ALIGN 5",
			"GO.QUOTA q 99 3600 -2", "GO.QUOTA w 99 3600", "GO.QUOTA q 99 3600 -99", "GO.QUOTA q 9 x",
			"GO.ALL m THROTTLE 9 1 3600 1 THROTTLE 9 7 3600 1 KEY n THROTTLE 9 1 3600 1", "GO.ALL m THROTTLE 9 1 3600 1 THROTTLE 9 7 3600 1 KEY n THROTTLE 9 1 3600 99",
			"GO.ALL m THROTTLE 9 1 3600 1 THROTTLE 9 7 3600 x", "GO.ALL m THROTTLE 9 1 3600 -9 THROTTLE 9 1 3600 -9 KEY n THROTTLE 9 1 3600 -9",
			"GO.ALL m THROTTLE 9 1 3600 KEY n THROTTLE 9 1 3600 1 SURPRISE",
			"GO.ALL m THROTTLE 9 1 3600 1 KEY aw WINDOW 99 3600 9 EXACT KEY aq QUOTA 99 3600 KEY al LEASE 9 3600 a MS", "GO.ALL m THROTTLE 9 1 3600 1 KEY aw WINDOW 99 3600 KEY m",
			"GO.ALL aw WINDOW 99 3600 KEY aq QUOTA 99 3600 100 KEY al LEASE 1 3600 b", "GO.ALL_RO al LEASE 1 3600 b KEY aq QUOTA 99 3600", "GO.ALL aq WINDOW 9 60",
			"GO.ALL aw WINDOW 99 3600 -9 KEY aq QUOTA 99 3600 -9", "GO.RELEASE al a", "GO.LEASE_RO l 3 3600 a", "GO.ALL m THROTTLE 9 1 3600 -9 THROTTLE 9 1 3600 -9",
			"GO.LEASE l 3 3600 a", "GO.LEASE l 3 3600 b", "GO.LEASE l 3 3600 c", "GO.LEASE l 3 3600 d", "GO.LEASE l 3 3600 a",
			"GO.LEASE l 9 1 e MS", "GO.LEASE l 9 1 f MS", "GO.LEASE l x 1 f MS", "GO.LEASE w 1 1 f MS",
			"GO.THROTTLE x 0 7 3600 9 FORCE", "GO.THROTTLE x 0 7 3600 1 RESERVE 99999", "GO.THROTTLE x 0 7 3600 1 LOCKOUT 99", "GO.THROTTLE x 0 7 3600", "GO.THROTTLE x 0 1 3600 1 LOCKOUT 9",
			"GO.ALL x THROTTLE 0 1 60 THROTTLE 9 7 60 KEY w WINDOW 99 3600 9 FORCE", "GO.THROTTLE x 0 1 3153600000 9 FORCE", "HSET x 128 1000000000000000001", "GO.THROTTLE x 0 1 3600 -9", "HSET x 128 x", "GO.THROTTLE x 0 1 60",
			"GO.ALL x THROTTLE 0 1 60 KEY l LEASE 1 60 a FORCE", "GO.THROTTLE x 0 1 60 FORCE UPTO", "GO.QUOTA q 9 3600 20 FORCE", "GO.WINDOW w 9 3600 20 FORCE EXACT", "DEL x q",
			"GO.RELEASE l a a b x", "GO.RELEASE q a", "GO.LEASE l 99 60 g", "GO.LEASE l 99 60 h", "GO.LEASE l 99 60 i",
			"GO.LEASE l 99 60 j", "GO.LEASE l 99 60 k", "GO.LEASE l 99 60 l", "GO.LEASE l 99 60 m", "GO.LEASE l 99 60 n",
			"GO.LEASE l 99 60 o", "GO.LEASE l 99 60 p", "GO.RELEASE l a b c d e f g h i j k l m n o p q", "DEL w",
		} {
			p.Do(ctx, fields(call)...)
		}
		_, _ = p.Exec(ctx)
	}
	run := func(rounds int) {
		c := s.client(options3)
		defer c.Close() // the server keeps up to 48 KiB for a client, now and then
		for range rounds {
			round(c)
		}
	}
	run(500)
	before := used()
	const rounds = 5000
	run(rounds)
	// One leaked string of 16 bytes a round would be 80,000 bytes.
	assert.Less(t, used()-before, rounds*16/2, "bytes after %d rounds", rounds)
}

// The bounds were measured on Redis 7.0 with a million keys of 13 bytes. With 100,000 keys
// the tables of keys and expiries take 5 bytes a key more.
func TestState_memory(t *testing.T) {
	lasts(t)
	s := start(t, options{})
	for _, c := range []struct {
		name, rate string
		most       int64
	}{
		{"everyday rates", "99 1800 3600", 145 + 5},
		{"slow rates", "99 1 3600", 161 + 5},
		{"the count does not divide the period", "99 7 3600", 161 + 5},
	} {
		require.NoError(t, s.FlushAll(ctx).Err())
		used := func() (n int64) {
			n, err := strconv.ParseInt(s.info("memory", "used_memory"), 10, 64)
			require.NoError(t, err)
			return n
		}
		before := used()
		const keys = 100_000
		for batch := range keys / 1000 {
			p := s.Pipeline()
			for i := range 1000 {
				p.Do(ctx, append([]any{"GO.THROTTLE", fmt.Sprintf("user:%08d", batch*1000+i)}, fields(c.rate)...)...)
			}
			_, err := p.Exec(ctx)
			require.NoError(t, err)
		}
		require.EqualValues(t, keys, s.DBSize(ctx).Val())
		// The server resizes its tables in the background.
		each := int64(0)
		eventually(t, c.name+": bytes a key", func() bool { each = (used() - before) / keys; return each <= c.most })
		t.Logf("%s: %d bytes a key", c.name, each)
	}
}

// In Valkey 9.1 HPEXPIRE and then COPY make a hash of length 0: COPY leaves out the fields that have
// expired, and the server has not deleted their hash yet. For each command such a hash is a limiter with
// nothing in use, or a key of another kind.
func TestState_emptyHash(t *testing.T) {
	s := start(t, options{})
	if s.Do(ctx, "HPEXPIRE", "absent", 1, "FIELDS", 1, "f").Err() != nil {
		t.Skip("the server has no HPEXPIRE")
	}
	empty := func(key string) bool {
		for i := range 40 {
			s.Del(ctx, "source", key)
			s.HSet(ctx, "source", "f", 1)
			require.NoError(t, s.Do(ctx, "HPEXPIRE", "source", 1+i%5, "FIELDS", 1, "f").Err())
			time.Sleep(time.Duration(2+i%7) * time.Millisecond)
			if s.Copy(ctx, "source", key, 0, true); s.HLen(ctx, key).Val() == 0 && s.Exists(ctx, key).Val() == 1 {
				return true
			}
		}
		return false
	}
	if !empty("k") {
		t.Skip("COPY makes no hash of length 0 here")
	}
	assert.Regexp(t, `cells:\[\]`, s.look("k"))
	for name, c := range samples {
		require.True(t, empty(c.key(name)), name)
		want := c.Sample.First
		switch {
		case name == "GO.INFO":
			continue
		case c.State != commands.KindHash && c.State != commands.KindAbsent:
			want = commands.ErrWrongType.Text()
		}
		assert.Equal(t, want, flat(s.Do(ctx, c.on(name)...).Result()), name)
		if c.writes() && want == c.Sample.First {
			assert.Equal(t, c.Sample.Second, flat(s.Do(ctx, c.on(name)...).Result()), name)
		}
	}
	assert.Equal(t, "0", s.counters()["gothrottle_panics"])
}
