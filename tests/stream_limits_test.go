package tests

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What each call of the other commands replicates: effects, and only where there are
// some. MULTI and EXEC stand around more than one.
func TestStream_effectsOfEveryCommand(t *testing.T) {
	s := start(t, options{args: []string{"--repl-diskless-sync", "no", "--appendonly", "yes",
		"--shutdown-timeout", "0"}})
	st := s.replicate()
	var inAOF []string
	for _, c := range []struct {
		call string
		want string // without MULTI and EXEC, a bar between commands
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
		{"GO.WINDOW w 10 720000 1", ""},                                        // nor does another period, if denied
		{"GO.WINDOW w 10 360000 -4", "ZADD w <time> \x01a:3:6|ZREM w \x01a:3"}, // 6 are left
		{"GO.WINDOW w 10 720000 1", "ZADD w <time> \x01b:1:7|ZREM w \x011 \x012|PEXPIREAT w <time>"},
		{"PERSIST w", "PERSIST w"},
		{"GO.WINDOW w 10 720000 9", ""},
		{"GO.WINDOW w 11 720000 1", "ZADD w <time> \x01c:1:8|PEXPIREAT w <time>"},
		{"GO.WINDOW w 11 720000 -99", "DEL w"},
		{"GO.WINDOW w 11 720000 -99", ""},
		// Where calls share one, the new entry comes before the old one goes.
		{"GO.WINDOW v 1000 3153600000", "ZADD v <time> \x011|PEXPIREAT v <time>"},
		{"GO.WINDOW v 1000 3153600000", "ZADD v <time> \x012:2|ZREM v \x011"},
		{"GO.WINDOW v 1000 3153600000 998", "ZADD v <time> \x01rs:rs|ZREM v \x012:2"},
		{"GO.WINDOW v 1000 3153600000", ""},
		{"GO.WINDOW v 1001 3153600000 1 EXACT", "ZADD v <time> \x01rt"},
		// A fixed window is one command.
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
		// Several limits: all of them or none.
		{"GO.MTHROTTLE 2 a b 1 1 3600 0 1 1 3600 0", ""},
		{"GO.MTHROTTLE 2 a b 1 1 3600 1 1 1 3600 3", ""},
		{"GO.MTHROTTLE 2 a b 1 1 3600 1 1 1 3600 x", ""},
		{"GO.MTHROTTLE 2 a b 99 100 360000 1 9 1 3600 1",
			"HSET a 0 <time> 1 3600|PEXPIREAT a <time>|HSET b 0 <time> 1 3600|PEXPIREAT b <time>"},
		{"GO.MTHROTTLE 2 a b 99 100 360000 1 9 1 3600 10", ""}, // the first would be admitted
		{"GO.MTHROTTLE 2 b a 9 1 3600 10 99 100 360000 1", ""},
		{"GO.MTHROTTLE 2 a b 99 100 360000 1 9 1 3600 0", "HSET a 0 <time>"},
		{"GO.MTHROTTLE 2 a b 99 100 360000 -99 9 1 3600 -9", "DEL a|DEL b"},
		{"GO.MTHROTTLE 3 c d c 9 1 3600 1 9 1 3600 1 9 7 36000 2", "HSET c 0 <time> 1 3600 4 <time> 5 36000 6 2 7 7|" +
			"PEXPIREAT c <time>|HSET d 0 <time> 1 3600|PEXPIREAT d <time>"},
		{"GO.MTHROTTLE 2 c c 9 1 3600 0 9 1 3600 -1", "HSET c 4 <time> 5 3600|HDEL c 6 7|PEXPIREAT c <time>"},
		// A denied call whose rate is new rewrites that limit alone.
		{"GO.MTHROTTLE 2 d c 9 1 1800 10 9 1 3600 1", "HSET d 0 <time> 1 1800|PEXPIREAT d <time>"},
		{"GO.MTHROTTLE 2 d c 9 1 1800 10 9 1 3600 1", ""},
		// Leases.
		{"GO.LEASE l 2 360000 a", "ZADD l <time> \x02a|PEXPIREAT l <time>"},
		{"GO.LEASE l 2 360000 b", "ZADD l <time> \x02b"},
		{"GO.LEASE l 2 360000 c", ""},
		{"GO.LEASE l 2 0 c", ""},
		{"GO.LEASE l 2 360000 a", "ZADD l <time> \x02a"}, // renewed
		{"GO.LEASE l 1 720000 a", "ZADD l <time> \x02a|PEXPIREAT l <time>"},
		{"GO.RELEASE l c d", ""},
		{"GO.RELEASE l c a a", "ZREM l \x02a|PEXPIREAT l <time>"},
		{"GO.RELEASE l b", "ZREM l \x02b"}, // the last: the key is gone with it, there too
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

	// The append-only file says the same, and nothing of the calls.
	s.terminate()
	file := s.data.read(t, "appendonlydir/*.incr.aof")
	var logged []string
	for _, text := range texts(effectsIn(t, file)) {
		if name, _, _ := strings.Cut(text, " "); name != "SELECT" && name != "MULTI" && name != "EXEC" {
			logged = append(logged, text)
		}
	}
	assert.Equal(t, inAOF, logged)
	assert.NotContains(t, strings.ToUpper(file), "GO.")
}

// What has lapsed is removed, by name, by the next call that is admitted; at most 128
// entries at once.
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
	eventually(t, "all has lapsed", func() bool {
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
	eventually(t, "that has lapsed too", func() bool { return s.must("GO.WINDOW_RO w 1000 1 0 MS") == "[0 1000 1000 -1 0]" })
	assert.Equal(t, 128, removed("GO.WINDOW w 1000 1 1 MS"))
	assert.Equal(t, 128, removed("GO.WINDOW w 1000 1 1 MS"))
	assert.GreaterOrEqual(t, removed("GO.WINDOW w 1000 1 1 MS"), 301-2*128)
	assert.LessOrEqual(t, s.ZCard(ctx, "w").Val(), int64(3))
	assert.Equal(t, 0, removed("GO.LEASE l 1 3600 x"), "denied")
	assert.Equal(t, 128, removed("GO.LEASE l 1 3600 stays"), "renewed")
	assert.Equal(t, 200-128, removed("GO.LEASE l 1 3600 stays"), "renewed again")
	assert.Equal(t, int64(1), s.ZCard(ctx, "l").Val())
}

// The new commands' effects count as changes for the save points, what has none does not.
func TestStream_effectsOfEveryCommandCountForSavePoints(t *testing.T) {
	s := start(t, options{}) // nobody listens: neither a replica nor a file
	changes := func() string { return s.info("persistence", "rdb_changes_since_last_save") }
	for _, c := range []struct {
		call    string
		changes bool
	}{
		{"GO.WINDOW w 2 3600 0", false},
		{"GO.WINDOW w 2 3600 2", true},
		{"GO.WINDOW w 2 3600 1", false},
		{"GO.WINDOW w 2 3600 -1", true},
		{"GO.WINDOW w 2 3600 -1", true},
		{"GO.WINDOW w 2 3600 -1", false},
		{"GO.QUOTA q 2 3600 0", false},
		{"GO.QUOTA q 2 3600 2", true},
		{"GO.QUOTA q 2 3600 1", false},
		{"GO.QUOTA q 2 3600 -1", true},
		{"GO.QUOTA q 2 3600 -1", true},
		{"GO.QUOTA q 2 3600 -1", false},
		{"GO.MTHROTTLE 2 m n 1 1 3600 1 1 1 3600 0", true},
		{"GO.MTHROTTLE 2 m n 1 1 3600 0 1 1 3600 0", false},
		{"GO.MTHROTTLE 2 m n 1 1 3600 1 1 1 3600 3", false},
		{"GO.MTHROTTLE 2 m n 1 1 3600 -2 1 1 3600 0", true},
		{"GO.LEASE l 1 60 a", true},
		{"GO.LEASE l 1 60 b", false},
		{"GO.RELEASE l b", false},
		{"GO.RELEASE l a", true},
		{"GO.THROTTLE_RO k 1 1 60", false},
		{"GO.WINDOW_RO k 1 60", false},
		{"GO.QUOTA_RO k 1 60", false},
	} {
		before := changes()
		s.must(c.call)
		assert.Equal(t, c.changes, changes() != before, c.call)
	}
}
