package tests

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/commands"
)

// calls of each kind, of which every one must give the error; KEY stands for the key.
var (
	windowCalls = []string{"GO.WINDOW KEY 5 3600", "GO.WINDOW KEY 5 3600 0", "GO.WINDOW KEY 5 3600 -9",
		"GO.WINDOW KEY 5 3600 6", "GO.WINDOW KEY 5 3600 3 UPTO", "GO.WINDOW KEY 500 60000 1 EXACT", "GO.WINDOW_RO KEY 5 3600"}
	quotaCalls = []string{"GO.QUOTA KEY 5 3600", "GO.QUOTA KEY 5 3600 0", "GO.QUOTA KEY 5 3600 -9",
		"GO.QUOTA KEY 5 3600 6", "GO.QUOTA KEY 5 3600 3 UPTO ALIGN 0", "GO.QUOTA_RO KEY 5 3600"}
	leaseCalls = []string{"GO.LEASE KEY 5 3600 a", "GO.LEASE KEY 1 3600 b", "GO.RELEASE KEY a", "GO.RELEASE KEY a b c"}
	gcraCalls  = []string{"GO.THROTTLE KEY 5 1 60", "GO.THROTTLE KEY 5 1 60 -9", "GO.THROTTLE KEY 5 1 60 9 UPTO",
		"GO.THROTTLE_RO KEY 5 1 60", "GO.MTHROTTLE 1 KEY 5 1 60 1", "GO.MTHROTTLE 2 KEY KEY 5 1 60 1 5 1 60 -9",
		"GO.MTHROTTLE 2 other KEY 5 1 60 1 5 1 60 1", "GO.MTHROTTLE 2 KEY other 5 1 60 0 5 1 60 1"}
)

// What stands at a key that is not the command's is an error for every call, and stays
// as it is, to the byte.
func TestForeign_forEveryCommand(t *testing.T) {
	s := start(t, options{})
	const end = "1795254135062003" // 2026, µs
	const score = "-" + end
	const later = "1795254135062004"
	for _, c := range []struct {
		set   string // made with this command; \1 and \2 are the prefixes of members
		calls []string
		want  commands.Error
	}{
		// Other types.
		{"RPUSH KEY a", windowCalls, commands.ErrWrongType},
		{"HSET KEY 0 4102444800000000000 1 -1000", windowCalls, commands.ErrWrongType},
		{"SET KEY 1@" + end, windowCalls, commands.ErrWrongType},
		{"RPUSH KEY a", leaseCalls, commands.ErrWrongType},
		{"SET KEY a", leaseCalls, commands.ErrWrongType},
		{"HSET KEY a 1", leaseCalls, commands.ErrWrongType},
		{"RPUSH KEY a", quotaCalls, commands.ErrWrongType},
		{"ZADD KEY " + score + " \x011", quotaCalls, commands.ErrWrongType},
		{"HSET KEY a 1", quotaCalls, commands.ErrWrongType},
		{"ZADD KEY " + score + " \x011", gcraCalls, commands.ErrWrongType},
		{"SET KEY 1@" + end, gcraCalls, commands.ErrWrongType},
		{"XADD KEY * t 1", gcraCalls, commands.ErrWrongType},
		{"HSET KEY name Ann", gcraCalls, commands.ErrForeignHash},
		{"HSET KEY 0 4102444800000000000", gcraCalls, commands.ErrForeignHash},
		// Someone's sorted set.
		{"ZADD KEY 5 Ann 9 Bob", windowCalls, commands.ErrForeignWindow},
		{"ZADD KEY 5 Ann", windowCalls, commands.ErrForeignWindow},
		{"ZADD KEY " + score + " " + score, windowCalls, commands.ErrForeignWindow}, // the ZADD pipeline's own
		{"ZADD KEY 5 Ann 9 Bob", leaseCalls, commands.ErrForeignLeases},
		{"ZADD KEY 5 a", leaseCalls, commands.ErrForeignLeases},
		{"ZADD KEY +inf a", leaseCalls, commands.ErrForeignLeases},
		// Each other's.
		{"ZADD KEY " + score + " \x02a", windowCalls, commands.ErrForeignWindow},
		{"ZADD KEY " + score + " \x021", windowCalls, commands.ErrForeignWindow},
		{"ZADD KEY " + score + " \x011", leaseCalls, commands.ErrForeignLeases},
		{"ZADD KEY -4102444800000000 \x01a", leaseCalls, commands.ErrForeignLeases},
		// Members and scores that a window never has.
		{"ZADD KEY " + score + " \x01", windowCalls, commands.ErrForeignWindow},
		{"ZADD KEY " + score + " \x0101", windowCalls, commands.ErrForeignWindow},
		{"ZADD KEY " + score + " \x01A", windowCalls, commands.ErrForeignWindow},
		{"ZADD KEY " + score + " \x01-1", windowCalls, commands.ErrForeignWindow},
		{"ZADD KEY " + score + " \x01+1", windowCalls, commands.ErrForeignWindow},
		{"ZADD KEY " + score + " \x011:", windowCalls, commands.ErrForeignWindow},
		{"ZADD KEY " + score + " \x011:1", windowCalls, commands.ErrForeignWindow},
		{"ZADD KEY " + score + " \x012:0", windowCalls, commands.ErrForeignWindow},
		{"ZADD KEY " + score + " \x012:2:", windowCalls, commands.ErrForeignWindow},
		{"ZADD KEY " + score + " \x012:2:0", windowCalls, commands.ErrForeignWindow},
		{"ZADD KEY " + score + " \x012:2:1:1", windowCalls, commands.ErrForeignWindow},
		{"ZADD KEY " + score + " \x012;2", windowCalls, commands.ErrForeignWindow},
		{"ZADD KEY " + score + " \x013w5e11264sgsg", windowCalls, commands.ErrForeignWindow},   // 2^64
		{"ZADD KEY " + score + " \x012:zzzzzzzzzzzzz", windowCalls, commands.ErrForeignWindow}, // above 2^62
		{"ZADD KEY " + score + ".5 \x011", windowCalls, commands.ErrForeignWindow},
		{"ZADD KEY 1 \x011", windowCalls, commands.ErrForeignWindow},
		{"ZADD KEY +inf \x011", windowCalls, commands.ErrForeignWindow},
		{"ZADD KEY -inf \x011", windowCalls, commands.ErrForeignWindow},
		{"ZADD KEY -1e17 \x011", windowCalls, commands.ErrForeignWindow},
		{"ZADD KEY -4102444800000000.5 \x02a", leaseCalls, commands.ErrForeignLeases},
		{"ZADD KEY -inf \x02a", leaseCalls, commands.ErrForeignLeases},
		{"ZADD KEY 1 \x02a", leaseCalls, commands.ErrForeignLeases},
		// Totals that go backward.
		{"ZADD KEY -4102444800000000 \x01a -4102444800000001 \x015", windowCalls, commands.ErrDamaged},
		// Strings that no quota has.
		{"SET KEY hello", quotaCalls, commands.ErrForeignString},
		{"SET KEY 5", quotaCalls, commands.ErrForeignString},
		{"SET KEY 4102444800000000000", quotaCalls, commands.ErrForeignString},
		{"SET KEY 1@", quotaCalls, commands.ErrForeignString},
		{"SET KEY @" + end, quotaCalls, commands.ErrForeignString},
		{"SET KEY 0@" + end, quotaCalls, commands.ErrForeignString},
		{"SET KEY -1@" + end, quotaCalls, commands.ErrForeignString},
		{"SET KEY +1@" + end, quotaCalls, commands.ErrForeignString},
		{"SET KEY 01@" + end, quotaCalls, commands.ErrForeignString},
		{"SET KEY 1@0", quotaCalls, commands.ErrForeignString},
		{"SET KEY 1@0" + end, quotaCalls, commands.ErrForeignString},
		{"SET KEY 1@" + end + "@", quotaCalls, commands.ErrForeignString},
		{"SET KEY 1@@" + end, quotaCalls, commands.ErrForeignString},
		{"SET KEY 1@" + end + "x", quotaCalls, commands.ErrForeignString},
		{"SET KEY 1@9007199254740993", quotaCalls, commands.ErrForeignString},
		{"SET KEY 1000000000001@" + end, quotaCalls, commands.ErrForeignString},
		{"SET KEY 18446744073709551617@" + later, quotaCalls, commands.ErrForeignString},
		{"SETBIT KEY 0 0", quotaCalls, commands.ErrForeignString},
		{"SETBIT KEY 80000 1", quotaCalls, commands.ErrForeignString},
	} {
		for _, ttl := range []bool{false, true} {
			s.Del(ctx, "KEY")
			s.must(c.set)
			if ttl {
				s.PExpire(ctx, "KEY", time.Hour)
			}
			dump, at := s.Dump(ctx, "KEY").Val(), s.expiry("KEY")
			changes := s.info("persistence", "rdb_changes_since_last_save")
			for _, call := range c.calls {
				assert.Equal(t, c.want.Text(), s.ask(call), "%q, %s", c.set, call)
			}
			assert.Equal(t, dump, s.Dump(ctx, "KEY").Val(), "%q", c.set)
			assert.Equal(t, at, s.expiry("KEY"), "%q", c.set)
			assert.Equal(t, changes, s.info("persistence", "rdb_changes_since_last_save"), "%q", c.set)
		}
	}
	assert.Zero(t, s.Exists(ctx, "other").Val(), "the other key of several limits")
}

// Strings that are empty or hold bytes are no quota either, nor is a member without a
// prefix; an empty holder's name is one.
func TestForeign_oddBytesInWindowsAndQuotas(t *testing.T) {
	s := start(t, options{})
	for i, value := range []string{"", " ", "\x00", "1@1\x00", "\x001@1", "1\x00@1", " 1@1", "1@ 1", "\xff\xfe", "١@1"} {
		s.Set(ctx, "text", value, 0)
		s.Del(ctx, "set")
		s.ZAdd(ctx, "set", redis.Z{Score: -1, Member: value})
		assert.Equal(t, commands.ErrForeignString.Text(), s.ask("GO.QUOTA text 5 60"), "value %d", i)
		assert.Equal(t, commands.ErrForeignWindow.Text(), s.ask("GO.WINDOW set 5 60"), "value %d", i)
		assert.Equal(t, commands.ErrForeignLeases.Text(), s.ask("GO.LEASE set 5 60 a"), "value %d", i)
		assert.Equal(t, commands.ErrForeignLeases.Text(), s.ask("GO.RELEASE set a"), "value %d", i)
		assert.Equal(t, value, s.Get(ctx, "text").Val())
		assert.Equal(t, []string{value}, s.ZRange(ctx, "set", 0, -1).Val())
	}
}

// One foreign member among ours is never removed, wherever it stands: neither when what
// has lapsed is cleared, nor when all is given back. It is seen by the call that would
// remove it, if not before.
func TestForeign_oneMemberAmongOurs(t *testing.T) {
	s := start(t, options{})
	random := rand.New(rand.NewPCG(9, 10))
	now := s.now() / 1000
	member := func(m string) redis.Z { // before, among and after our entries
		return redis.Z{Score: -float64([]int64{0, 5, now - 1e9, now + 50_000, now + 1e9, 4e15}[random.IntN(6)]), Member: m}
	}
	refused := map[string]int{}
	for round := range 300 {
		s.Del(ctx, "w", "l")
		for i := range 1 + random.IntN(4) {
			s.must(fmt.Sprintf("GO.WINDOW w 100 %d 3 EXACT", 1+random.IntN(1000)))
			s.must(fmt.Sprintf("GO.LEASE l 100 %d id%d MS", 1+random.IntN(1_000_000), i))
		}
		inWindow, inLeases := member("Ann"), member("Bob")
		require.NoError(t, s.ZAdd(ctx, "w", inWindow).Err())
		require.NoError(t, s.ZAdd(ctx, "l", inLeases).Err())
		for range 10 {
			for _, call := range []string{
				fmt.Sprintf("GO.WINDOW w 100 %d %d MS", 1+random.IntN(100_000), random.IntN(9)-6),
				fmt.Sprintf("GO.WINDOW w 100 1000 -%d", 1+random.IntN(40)),
				fmt.Sprintf("GO.LEASE l %d 1000 id%d", 1+random.IntN(6), random.IntN(6)),
				fmt.Sprintf("GO.RELEASE l id%d id%d", random.IntN(6), random.IntN(6)),
			} {
				if reply := s.ask(call); !strings.HasPrefix(reply, "[") && reply != "0" && reply != "1" && reply != "2" {
					require.Contains(t, []string{commands.ErrForeignWindow.Text(), commands.ErrForeignLeases.Text()}, reply, call)
					refused[reply]++
				}
			}
			require.Equal(t, inWindow.Score, s.ZScore(ctx, "w", "Ann").Val(), "round %d", round)
			require.Equal(t, inLeases.Score, s.ZScore(ctx, "l", "Bob").Val(), "round %d", round)
		}
		require.EqualValues(t, 2, s.Exists(ctx, "w", "l").Val())
	}
	assert.Greater(t, refused[commands.ErrForeignWindow.Text()], 300, "%v", refused)
	assert.Greater(t, refused[commands.ErrForeignLeases.Text()], 300, "%v", refused)
}

// Nor is one that has the very time of an entry of ours, whichever of them that is.
func TestForeign_oneMemberAtTheTimeOfOurs(t *testing.T) {
	s := start(t, options{})
	for _, name := range []string{"Ann", "\x00"} { // after our members, and before them
		for _, i := range []int64{0, 1, 126, 127, 128, 129, 255, 256, 298} {
			s.Del(ctx, "w")
			for range 300 {
				s.must("GO.WINDOW w 1000 3600 1 EXACT")
			}
			at := s.ZRangeWithScores(ctx, "w", i, i).Val()[0].Score
			require.NoError(t, s.ZAdd(ctx, "w", redis.Z{Score: at, Member: name}).Err())
			assert.Equal(t, commands.ErrForeignWindow.Text(), s.ask("GO.WINDOW w 1000 3600 -1000"), "%q at %d", name, i)
			require.EqualValues(t, 301, s.ZCard(ctx, "w").Val(), "%q at %d", name, i)
		}
	}
}
