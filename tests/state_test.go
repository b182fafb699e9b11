package tests

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/commands"
)

func TestState_fields(t *testing.T) {
	s := start(t, options{})
	const sec = int64(time.Second)
	for _, c := range []struct {
		call                string
		period, frac, count int64 // as stored; count 0 means that frac and count are absent
		added               int64 // ns from the time of the call to the TAT
	}{
		// Two fields suffice if the count divides the period in ns.
		{"15 30 60", 2, 0, 0, 2 * sec},
		{"15 30 60 5", 2, 0, 0, 10 * sec},
		{"15 3 3 1 MS", -sec / 1000, 0, 0, sec / 1000},
		{"0 1 100000000", 100_000_000, 0, 0, 100_000_000 * sec},
		{"99 64 60", -937_500_000, 0, 0, 937_500_000},
		{"1000 60000000000 60 1000", -1, 0, 0, 1000},
		// Otherwise field 2 is the fraction of a ns of the TAT in parts of field 3, and the rate is in
		// lowest terms.
		{"15 7 60", 60, 3, 7, 8_571_428_571},
		{"15 14 120", 60, 3, 7, 8_571_428_571},
		{"15 7 60 7", 60, 0, 7, 60 * sec},
		{"15 3 1 2", 1, 2, 3, 666_666_666},
		{"99 120000000000 60 5", -1, 1, 2, 2},
	} {
		before := s.now()
		reply := s.throttle(append([]any{c.call}, fields(c.call)...)...)
		after := s.now()
		require.Equal(t, int64(0), reply[0], c.call)
		got := s.state(c.call)
		called := got["0"] - c.added
		assert.Zero(t, called%1000, "%s: the clock counts microseconds", c.call)
		assert.True(t, before-int64(50*time.Millisecond) <= called && called <= after,
			"%s: TAT %d, called between %d and %d", c.call, got["0"], before, after)
		want := map[string]int64{"0": got["0"], "1": c.period}
		if c.count != 0 {
			want["2"], want["3"] = c.frac, c.count
		}
		assert.Equal(t, want, got, c.call)
	}
}

// The fields 2 and 3 go away when the count of a new rate divides the period.
func TestState_fieldsFollowTheRate(t *testing.T) {
	s := start(t, options{})
	for i, c := range []struct {
		call string
		want map[string]int64
	}{
		{"k 9 1 3600", map[string]int64{"1": 3600}},
		{"k 9 7 3600", map[string]int64{"1": 3600, "3": 7}},
		{"k 9 11 3600", map[string]int64{"1": 3600, "3": 11}},
		{"k 9 2 3600", map[string]int64{"1": 1800}},
	} {
		require.Equal(t, int64(0), s.throttle(fields(c.call)...)[0])
		got := s.state("k")
		_, fraction := got["2"]
		assert.Equal(t, c.want["3"] != 0, fraction, "step %d", i)
		delete(got, "0")
		delete(got, "2")
		assert.Equal(t, c.want, got, "step %d", i)
	}
}

func TestState_expiryIsNeverBeforeTheEndNorLongAfter(t *testing.T) {
	s := start(t, options{})
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ limit, count, period int64 }{
		{1, 1, 1}, {1, 1, 86400}, {16, 30, 60}, {1000, 1000, 3600}, {1000, 1, 1}, {10, 7, 3601},
		{1_000_000, 999_999, 86400},
	} {
		key := fmt.Sprint(c)
		for range 60 {
			quantity := 1 + random.Int64N(max(1, c.limit/20))
			if random.IntN(5) == 0 {
				quantity = -quantity
			}
			s.throttle(key, c.limit-1, c.count, c.period, quantity)
			if s.Exists(ctx, key).Val() == 1 {
				s.lastsLongEnough(key, slack(c.limit, c.count, c.period*1000), key)
			}
		}
	}
}

// Callers with different bursts share a key: a small burst leaves a reserve for the other
// callers. The key must live as long as the usage of the largest burst.
func TestState_expiryWhereBurstsShareAKey(t *testing.T) {
	s := start(t, options{})
	random := rand.New(rand.NewPCG(3, 4))
	limits := []int64{4, 1000, 50}
	for i := range 300 {
		limit := limits[random.IntN(len(limits))]
		quantity := 1 + random.Int64N(limit/2)
		if reply := s.throttle("k", limit-1, 1, 1, quantity); reply[0] == 0 {
			s.lastsLongEnough("k", slack(limit, 1, 1000), fmt.Sprintf("call %d, limit %d", i, limit))
		}
		if i%20 == 19 {
			s.throttle("k", 999, 1, 1, -random.Int64N(1000))
		}
	}
	// A key whose expiry is a multiple of a step derived from the burst fails here.
	s.Del(ctx, "k")
	s.throttle("k", 3, 1, 1, 1)
	s.throttle("k", 999, 1, 1, 200)
	s.lastsLongEnough("k", slack(1000, 1, 1000), "1 of 4, then 200 of 1000")
}

// EXPIRE and PERSIST by hand stay in effect until the next admitted call mends them.
func TestState_usersExpiryStandsUntilTheNextAdmittedCall(t *testing.T) {
	s := start(t, options{})
	limited, peek, admitted := "9 1 3600 9", "9 1 3600 0", "9 1 3600 1"
	now := s.now() / 1_000_000
	for name, set := range map[string][]any{
		"PERSIST":        {"PERSIST", "k"},
		"EXPIRE, sooner": {"PEXPIREAT", "k", now + 60_000},
		"EXPIRE, later":  {"PEXPIREAT", "k", now + 1e10},
	} {
		s.Del(ctx, "k")
		s.throttle(append([]any{"k"}, fields("9 1 3600 2")...)...)
		require.Equal(t, int64(1), s.Do(ctx, set...).Val())
		byHand := s.expiry("k")
		for _, call := range []string{limited, peek} {
			s.throttle(append([]any{"k"}, fields(call)...)...)
			assert.Equal(t, byHand, s.expiry("k"), "%s, then %s", name, call)
		}
		s.throttle(append([]any{"k"}, fields(admitted)...)...)
		s.lastsLongEnough("k", slack(10, 1, 3_600_000), name)
	}
}

func TestState_callsWithoutEffectCreateNoKey(t *testing.T) {
	s := start(t, options{})
	for _, call := range []string{"k 9 1 60 0", "k 9 1 60 -1", "k 9 1 60 11", "k 9 0 60 1"} {
		s.Do(ctx, append([]any{"GO.THROTTLE"}, fields(call)...)...)
		assert.Zero(t, s.DBSize(ctx).Val(), call)
	}
}

// A limiter is an ordinary key: commands that move or copy keys move or copy the limiter.
func TestState_movesWithItsKey(t *testing.T) {
	s := start(t, options{})
	full := []any{9, 7, 360000}
	use := func(key string, quantity int) []int64 {
		return s.throttle(append(append([]any{key}, full...), quantity)...)
	}
	require.Equal(t, int64(0), use("a", 10)[0])
	st, at := s.state("a"), s.expiry("a")

	require.NoError(t, s.Copy(ctx, "a", "copy", 0, false).Err())
	require.NoError(t, s.Do(ctx, "RESTORE", "restored", at, s.Dump(ctx, "a").Val(), "ABSTTL").Err())
	require.NoError(t, s.Rename(ctx, "a", "renamed").Err())
	for _, key := range []string{"copy", "restored", "renamed"} {
		assert.Equal(t, st, s.state(key), key)
		assert.Equal(t, at, s.expiry(key), key)
		assert.Equal(t, int64(1), use(key, 1)[0], key)
	}
	assert.Equal(t, int64(10), use("a", 0)[2], "nothing is left under the old name")
	// A copy is independent of its original.
	assert.Equal(t, int64(5), use("copy", -5)[2])
	assert.Equal(t, int64(0), use("renamed", 0)[2])
}

// A hash may hold further cells, in the fields 4, 5 and so on. A call on the first cell keeps
// them, and the key lives until the last cell is empty.
func TestState_furtherCellsAreKept(t *testing.T) {
	s := start(t, options{})
	const hour = int64(time.Hour)
	tat := s.now() + 1000*hour
	for _, further := range []map[string]any{
		{"4": tat, "5": 3600},
		{"4": tat, "5": 3600, "6": 3, "7": 7},
		{"4": tat - hour, "5": 3600, "8": tat, "9": 3600, "10": 0, "11": 9},
	} {
		s.Del(ctx, "k")
		for field, value := range further {
			require.NoError(t, s.HSet(ctx, "k", field, value).Err())
		}
		require.NoError(t, s.HSet(ctx, "k", "0", s.now()+hour, "1", 3600).Err())
		assert.Equal(t, []int64{0, 10, 8, -1, 7200}, s.throttle("k", 9, 1, 3600))
		void := (tat + 999_999) / 1_000_000
		assert.LessOrEqual(t, void, s.expiry("k"))
		// The first cell is empty, but the others are in use.
		assert.Equal(t, []int64{0, 10, 10, -1, 0}, s.throttle("k", 9, 1, 3600, -10))
		if assert.EqualValues(t, 1, s.Exists(ctx, "k").Val()) {
			got := s.state("k")
			for name, value := range further {
				assert.EqualValues(t, value, got[name], name)
			}
			assert.LessOrEqual(t, void, s.expiry("k"))
		}
	}
}

// A state at the ends of what is valid is accepted, by a peek and by a call that takes units.
func TestState_valuesAtTheEndsOfTheirRangesAreAccepted(t *testing.T) {
	s := start(t, options{})
	for _, state := range farStates() {
		reply, err := s.Eval(ctx, placeState, []string{"k"}, state...).Int64Slice()
		require.NoError(t, err, "%v", state)
		if state[1] == int64(1e18) { // a TAT in 2001
			assert.Equal(t, []int64{0, 10, 10, -1, 0}, reply, "%v", state)
		} else {
			assert.Positive(t, reply[4], "%v", state)
		}
		assert.NoError(t, s.Do(ctx, "GO.THROTTLE", "k", 9, 1, 3600).Err(), "%v", state)
	}
}

// So is a state with a lockout. A call is limited while the lockout stands.
func TestState_lockoutsAtTheEndsOfTheirRangeAreAccepted(t *testing.T) {
	s := start(t, options{})
	for _, state := range lockedStates() {
		reply, err := s.Eval(ctx, placeState, []string{"k"}, state...).Int64Slice()
		require.NoError(t, err, "%v", state)
		inUse, stands := state[1] != int64(1e18), state[len(state)-1] != int64(1e18)
		assert.Equal(t, inUse || stands, reply[0] == 1, "%v: %v", state, reply)
		assert.Equal(t, inUse || stands, reply[4] > 0, "%v: %v", state, reply)
		assert.NoError(t, s.Do(ctx, "GO.THROTTLE", "k", 9, 7, 60, 1, "FORCE").Err(), "%v", state)
	}
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
