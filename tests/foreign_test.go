package tests

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/commands"
)

// A foreign value is an error for every call of every command. Its bytes and its expiry stay
// the same.
func TestForeign_valuesAreErrorsForEveryCommand(t *testing.T) {
	s := start(t, options{})
	const end = "1795254135062003000" // 2026, ns
	const score = "-" + end
	const later = "1795254135062004"
	for _, c := range []struct {
		set   string // the command that creates the value; \x01 and \x02 are the prefixes of members
		calls []string
		want  commands.ErrorCode
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
		// Foreign sorted sets.
		{"ZADD KEY 5 Ann 9 Bob", windowCalls, commands.ErrForeignWindow},
		{"ZADD KEY 5 Ann", windowCalls, commands.ErrForeignWindow},
		{"ZADD KEY " + score + " " + score, windowCalls, commands.ErrForeignWindow}, // a member of a window made with ZADD in a pipeline
		{"ZADD KEY 5 Ann 9 Bob", leaseCalls, commands.ErrForeignLeases},
		{"ZADD KEY 5 a", leaseCalls, commands.ErrForeignLeases},
		{"ZADD KEY +inf a", leaseCalls, commands.ErrForeignLeases},
		// Windows for leases, and leases for windows.
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
		// Totals that decrease.
		{"ZADD KEY -4102444800000000 \x01a -4102444800000001 \x015", windowCalls, commands.ErrDamaged},
		// Strings that are no quota.
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
		{"SET KEY 1@" + end[:18] + "x", quotaCalls, commands.ErrForeignString},
		{"SET KEY 1@9007199254740993000", quotaCalls, commands.ErrForeignString},
		{"SET KEY 1000000000000001@" + end, quotaCalls, commands.ErrForeignString},
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
	assert.Zero(t, s.Exists(ctx, "other").Val(), "the other key of GO.ALL")
}

// A call that is an error does not even change how the server stores a foreign string, unless
// the string is as long as one of ours: then the module must read it, and the server turns it
// into a raw string of the same value.
func TestForeign_encodingsStayTheSame(t *testing.T) {
	s := start(t, options{})
	quota := []string{"GO.QUOTA k 5 60", "GO.QUOTA_RO k 5 60", "GO.ALL k QUOTA 5 60"}
	throttle := []string{"GO.THROTTLE k 9 1 3600", "GO.THROTTLE_RO k 9 1 3600", "CL.THROTTLE k 9 1 3600", "GO.ALL_RO k THROTTLE 9 1 3600"}
	other := []string{"GO.WINDOW k 5 60", "GO.ALL k WINDOW 5 60", "GO.LEASE_RO k 5 60 a", "GO.LEASE k 5 60 a", "GO.RELEASE k a"}
	for _, c := range []struct {
		value string
		calls [][]string
	}{
		{"5", [][]string{quota, throttle, other}},
		{"-7", [][]string{quota, throttle, other}},
		{"12345678901234567", [][]string{quota, throttle, other}},
		{"hello", [][]string{quota, throttle, other}},
		{"123456789012345678", [][]string{quota, throttle, other}},
		{"1234567890123456789", [][]string{quota, other}}, // 19 bytes: a key of redis-cell
		{"-1234567890123456789", [][]string{quota, throttle, other}},
		{strings.Repeat("x", 21), [][]string{throttle, other}}, // the shortest quota
		{strings.Repeat("x", 36), [][]string{throttle, other}},
		{strings.Repeat("x", 37), [][]string{quota, throttle, other}},
		{strings.Repeat("x", 1000), [][]string{quota, throttle, other}},
	} {
		s.Set(ctx, "k", c.value, 0)
		encoding := s.ObjectEncoding(ctx, "k").Val()
		require.NotEmpty(t, encoding)
		for _, call := range slices.Concat(c.calls...) {
			require.Regexp(t, "^(ERR|WRONGTYPE) ", s.ask(call), "%s, %s", c.value, call)
			require.Equal(t, encoding, s.ObjectEncoding(ctx, "k").Val(), "%s, %s", c.value, call)
		}
		require.Equal(t, c.value, s.Get(ctx, "k").Val())
	}
}

// Empty strings and strings with odd bytes are no quota. Members without our prefix are
// foreign.
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
