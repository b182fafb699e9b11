package tests

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// No transcript has transactions: a call in one, or in a script, adds its effect to the effects of the others.
func TestStream_withinTransactionsAndScripts(t *testing.T) {
	s := start(t, options{args: []string{"--repl-diskless-sync", "no"}})
	st := s.replicate()
	s.throttle("k", 99, 100, 360000)
	st.since()

	p := s.TxPipeline()
	p.Do(ctx, "GO.THROTTLE", "k", 99, 100, 360000)
	p.Do(ctx, "GO.THROTTLE", "k", 99, 100, 360000, 0)
	p.Do(ctx, "GO.THROTTLE", "k", 99, 100, 360000)
	_, err := p.Exec(ctx)
	require.NoError(t, err)
	assert.Equal(t, []string{"MULTI", "HSET k 0 <time>", "HSET k 0 <time>", "EXEC"}, texts(st.since()))

	script := `for i = 1, 120 do redis.call('GO.THROTTLE', KEYS[1], 99, 100, 360000) end`
	s.Eval(ctx, script, []string{"k"})
	got := texts(st.since())
	assert.Contains(t, got, "HSET k 0 <time>")
	for _, text := range got {
		assert.NotContains(t, strings.ToUpper(text), "THROTTLE")
		assert.NotContains(t, text, "EVAL")
	}
	s.Eval(ctx, script, []string{"k"}) // all denied
	assert.Empty(t, texts(st.since()))
}

// Calls of the other commands replicate their effects too, and nothing if there are none.
// MULTI and EXEC enclose two or more effects.
func TestStream_effectsOfEveryCommand(t *testing.T) {
	s := start(t, options{args: []string{"--repl-diskless-sync", "no", "--appendonly", "yes",
		"--shutdown-timeout", "0"}})
	st := s.replicate()
	var inAOF []string
	for _, c := range []struct {
		call string
		want string // commands separated by bars, without MULTI and EXEC
	}{
		// A sliding window with an entry per call.
		{"GO.WINDOW w 10 360000 0", ""},
		{"GO.WINDOW w 10 360000 -1", ""},
		{"GO.WINDOW w 10 360000 11", ""},
		{"GO.WINDOW w 10 360000 x", ""},
		{"GO.WINDOW_RO w 10 360000 1", ""},
		{"GO.WINDOW w 10 360000 1", "ZADD w <time> \x011|PEXPIREAT w <time>"},
		{"GO.WINDOW w 10 360000", "ZADD w <time> \x012"},
		{"GO.WINDOW w 10 360000 5", "ZADD w <time> \x017:5"},
		{"GO.WINDOW w 10 360000 4", ""}, // denied
		{"GO.WINDOW w 10 360000 11", ""},
		{"GO.WINDOW w 10 360000 0", ""},
		{"GO.WINDOW w 10 360000 1 1", ""},
		{"GO.WINDOW w 10 360000 20 UPTO", "ZADD w <time> \x01a:3"},
		{"GO.WINDOW w 10 360000 20 UPTO", ""},
		{"GO.WINDOW w 10 720000 1", ""},                                        // denied with another period
		{"GO.WINDOW w 10 360000 -4", "ZADD w <time> \x01a:3:6|ZREM w \x01a:3"}, // 6 are left
		{"GO.WINDOW w 10 720000 1", "ZADD w <time> \x01b:1:7|ZREM w \x011 \x012|PEXPIREAT w <time>"},
		{"PERSIST w", "PERSIST w"},
		{"GO.WINDOW w 10 720000 9", ""},
		{"GO.WINDOW w 11 720000 1", "ZADD w <time> \x01c:1:8|PEXPIREAT w <time>"},
		{"GO.WINDOW w 11 720000 -99", "DEL w"},
		{"GO.WINDOW w 11 720000 -99", ""},
		// Where calls share an entry, the new entry is added before the old one is removed.
		{"GO.WINDOW v 1000 3153600000", "ZADD v <time> \x011|PEXPIREAT v <time>"},
		{"GO.WINDOW v 1000 3153600000", "ZADD v <time> \x012:2|ZREM v \x011"},
		{"GO.WINDOW v 1000 3153600000 998", "ZADD v <time> \x01rs:rs|ZREM v \x012:2"},
		{"GO.WINDOW v 1000 3153600000", ""},
		{"GO.WINDOW v 1001 3153600000 1 EXACT", "ZADD v <time> \x01rt"},
		// A call on a fixed window has one effect.
		{"GO.QUOTA q 10 360000 0", ""},
		{"GO.QUOTA q 10 360000 -1", ""},
		{"GO.QUOTA q 10 360000 11", ""},
		{"GO.QUOTA q 10 360000 1 ALIGN", ""},
		{"GO.QUOTA_RO q 10 360000 1", ""},
		{"GO.QUOTA q 10 360000", "SET q 1@<time> PXAT <time>"},
		{"GO.QUOTA q 10 360000 8", "SET q 9@<time> KEEPTTL"},
		{"GO.QUOTA q 10 360000 2", ""}, // denied
		{"GO.QUOTA q 10 180000 2", ""},
		{"GO.QUOTA q 10 360000 0", ""},
		{"GO.QUOTA q 10 360000 2 UPTO", "SET q 10@<time> KEEPTTL"},
		{"GO.QUOTA q 10 360000 2 UPTO", ""},
		{"GO.QUOTA q 10 360000 -3", "SET q 7@<time> KEEPTTL"},
		{"PERSIST q", "PERSIST q"},
		{"GO.QUOTA q 10 360000 4", ""},
		{"GO.QUOTA q 10 360000", "SET q 8@<time> PXAT <time>"},
		{"PEXPIRE q 100000", "PEXPIREAT q <time>"},
		{"GO.QUOTA q 10 360000", "SET q 9@<time> PXAT <time>"},
		{"GO.QUOTA q 10 360000 -10", "DEL q"},
		{"GO.QUOTA q 10 360000 1 ALIGN 0", "SET q 1@<time> PXAT <time>"},
		// Several limits: all of them change, or none.
		{"GO.ALL a THROTTLE 1 1 3600 0 KEY b THROTTLE 1 1 3600 0", ""},
		{"GO.ALL a THROTTLE 1 1 3600 1 KEY b THROTTLE 1 1 3600 3", ""},
		{"GO.ALL a THROTTLE 1 1 3600 1 KEY b THROTTLE 1 1 3600 x", ""},
		{"GO.ALL a THROTTLE 99 100 360000 1 KEY b THROTTLE 9 1 3600 1",
			"HSET a 0 <time> 1 3600|PEXPIREAT a <time>|HSET b 0 <time> 1 3600|PEXPIREAT b <time>"},
		{"GO.ALL a THROTTLE 99 100 360000 1 KEY b THROTTLE 9 1 3600 10", ""}, // the first limit would admit
		{"GO.ALL b THROTTLE 9 1 3600 10 KEY a THROTTLE 99 100 360000 1", ""},
		{"GO.ALL a THROTTLE 99 100 360000 1 KEY b THROTTLE 9 1 3600 0", "HSET a 0 <time>"},
		{"GO.ALL a THROTTLE 99 100 360000 -99 KEY b THROTTLE 9 1 3600 -9", "DEL a|DEL b"},
		{"GO.ALL c THROTTLE 9 1 3600 1 THROTTLE 9 7 36000 2 KEY d THROTTLE 9 1 3600 1", "HSET c 0 <time> 1 3600 4 <time> 5 36000 6 2 7 7|" +
			"PEXPIREAT c <time>|HSET d 0 <time> 1 3600|PEXPIREAT d <time>"},
		{"GO.ALL c THROTTLE 9 1 3600 0 THROTTLE 9 1 3600 -1", "HSET c 4 <time> 5 3600|HDEL c 6 7|PEXPIREAT c <time>"},
		{"GO.ALL_RO c THROTTLE 9 1 1800 KEY d THROTTLE 9 1 3600 KEY e WINDOW 9 3600", ""},
		// One clause of each kind.
		{"GO.ALL at THROTTLE 9 1 36000 KEY aw WINDOW 9 36000 2 KEY aq QUOTA 9 36000 3 KEY al LEASE 2 36000 a",
			"HSET at 0 <time> 1 36000|PEXPIREAT at <time>|ZADD aw <time> \x012:2|PEXPIREAT aw <time>|SET aq 3@<time> PXAT <time>|ZADD al <time> \x02a|PEXPIREAT al <time>"},
		{"GO.ALL al LEASE 2 36000 b KEY aw WINDOW 9 36000 8", ""},
		{"GO.ALL aq QUOTA 9 36000 7 KEY al LEASE 2 36000 a", ""},
		{"GO.ALL aw WINDOW 9 36000 0 KEY aq QUOTA 9 36000 0", ""},
		{"GO.ALL aq QUOTA 9 36000 6 KEY al LEASE 2 36000 b KEY aw WINDOW 9 36000 -1",
			"SET aq 9@<time> KEEPTTL|ZADD al <time> \x02b|ZADD aw <time> \x012:2:1|ZREM aw \x012:2"},
		{"GO.ALL al LEASE 2 36000 c KEY aw WINDOW 9 36000 2", ""},
		{"GO.ALL aq QUOTA 9 36000 -9 KEY aw WINDOW 9 36000 -9 KEY at THROTTLE 9 1 36000 -9", "DEL aq|DEL aw|DEL at"},
		// A denied call with a new rate rewrites that limit alone.
		{"GO.ALL d THROTTLE 9 1 1800 10 KEY c THROTTLE 9 1 3600 1", "HSET d 0 <time> 1 1800|PEXPIREAT d <time>"},
		{"GO.ALL d THROTTLE 9 1 1800 10 KEY c THROTTLE 9 1 3600 1", ""},
		// Leases.
		{"GO.LEASE l 2 360000 a", "ZADD l <time> \x02a|PEXPIREAT l <time>"},
		{"GO.LEASE l 2 360000 b", "ZADD l <time> \x02b"},
		{"GO.LEASE l 2 360000 c", ""},
		{"GO.LEASE_RO l 2 360000 a", ""},
		{"GO.LEASE_RO l 9 360000 c", ""},
		{"GO.LEASE l 2 0 c", ""},
		{"GO.LEASE l 2 360000 a", "ZADD l <time> \x02a"}, // renewed
		{"GO.LEASE l 1 720000 a", "ZADD l <time> \x02a|PEXPIREAT l <time>"},
		{"GO.RELEASE l c d", ""},
		{"GO.RELEASE l c a a", "ZREM l \x02a|PEXPIREAT l <time>"},
		{"GO.RELEASE l b", "ZREM l \x02b"}, // removing the last lease deletes the key, on the replica too
		{"GO.RELEASE l b", ""},
	} {
		s.Do(ctx, fields(c.call)...)
		got := texts(st.since())
		if n := len(got); n > 1 {
			require.Equal(t, []string{"MULTI", "EXEC"}, []string{got[0], got[n-1]}, "%s: %q", c.call, got)
			got = got[1 : n-1]
			require.Greater(t, len(got), 1, c.call)
		}
		assert.Equal(t, c.want, strings.Join(got, "|"), c.call)
		inAOF = append(inAOF, got...)
	}

	// The append-only file holds the same effects, and no calls of the module.
	s.terminate()
	file, err := s.run.Files("appendonlydir/*.incr.aof")
	require.NoError(t, err)
	var logged []string
	for _, text := range texts(effectsIn(t, file)) {
		if name, _, _ := strings.Cut(text, " "); name != "SELECT" && name != "MULTI" && name != "EXEC" {
			logged = append(logged, text)
		}
	}
	assert.Equal(t, inAOF, logged)
	assert.NotContains(t, strings.ToUpper(file), "GO.")
}

// An admitted call removes lapsed entries, at most 128 of them. A denied call removes lapsed
// leases, and nothing else. Its effect names each one.
func TestStream_lapsedEntries(t *testing.T) {
	s := start(t, options{args: []string{"--repl-diskless-sync", "no"}})
	for range 300 {
		s.must("GO.WINDOW w 1000 3600 1 EXACT")
	}
	p := s.TxPipeline()
	for i := range 200 {
		p.Do(ctx, "GO.LEASE", "l", 1000, 100, i, "MS")
	}
	_, err := p.Exec(ctx)
	require.NoError(t, err)
	require.Equal(t, int64(200), s.ZCard(ctx, "l").Val())
	s.must("GO.LEASE l 1000 3600 stays")
	eventually(t, "all entries have lapsed", func() bool {
		return s.must("GO.WINDOW_RO w 1000 1 0 MS") == "[0 1000 1000 -1 0]" &&
			s.now()/1000 > -int64(s.ZScore(ctx, "l", "\x02199").Val())
	})
	st := s.replicate()
	removed := func(call string) (n int) {
		s.must(call)
		for _, e := range st.since() {
			if e.words[0] == "ZREM" {
				n += len(e.words) - 2
			}
		}
		return n
	}
	assert.Equal(t, 0, removed("GO.WINDOW w 1000 1 0 MS"), "a peek")
	assert.Equal(t, 0, removed("GO.WINDOW w 1000 1 1001 MS"), "denied")
	assert.Equal(t, 0, removed("GO.WINDOW w 1000 3600 1 EXACT"), "within an hour nothing lapses")
	eventually(t, "the last entry has lapsed too", func() bool { return s.must("GO.WINDOW_RO w 1000 1 0 MS") == "[0 1000 1000 -1 0]" })
	assert.Equal(t, 128, removed("GO.WINDOW w 1000 1 1 MS"))
	assert.Equal(t, 128, removed("GO.WINDOW w 1000 1 1 MS"))
	assert.GreaterOrEqual(t, removed("GO.WINDOW w 1000 1 1 MS"), 301-2*128)
	assert.LessOrEqual(t, s.ZCard(ctx, "w").Val(), int64(3))
	assert.Equal(t, 0, removed("GO.LEASE_RO l 1 3600 x"), "read only")
	assert.Equal(t, 128, removed("GO.LEASE l 1 3600 x"), "denied: a denied call removes lapsed leases too")
	assert.Equal(t, 200-128, removed("GO.LEASE l 1 3600 stays"), "renewed")
	assert.Equal(t, 0, removed("GO.LEASE l 1 3600 stays"), "renewed again")
	assert.Equal(t, int64(1), s.ZCard(ctx, "l").Val())
}
