package tests

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/commands"
)

func TestErrors_eachText(t *testing.T) {
	s := start(t, options{})
	s.RPush(ctx, "list", "a")
	s.HSet(ctx, "profile", "name", "Ann")
	s.HSet(ctx, "damaged", "0", "soon", "1", 1)
	s.Set(ctx, "text", "hello", 0)
	s.ZAdd(ctx, "board", redis.Z{Score: 9, Member: "Ann"}, redis.Z{Score: 5, Member: "Bob"})
	s.must("GO.LEASE held 5 3600 a")
	s.must("GO.WINDOW log 5 3600")
	s.ZAdd(ctx, "backward", redis.Z{Score: -4e15, Member: "\x012"}, redis.Z{Score: -4e15 - 1, Member: "\x011"})
	const most = 1_000_000_000_000_000
	s.ZAdd(ctx, "fullwindow", redis.Z{Score: -float64(s.now() / 1000), Member: "\x01" + base36(most) + ":" + base36(most)})
	s.Set(ctx, "fullquota", fmt.Sprintf("%d@%d000", most, s.now()/1000+3_600_000_000), time.Hour)
	before := s.dataset()
	changes := s.info("persistence", "rdb_changes_since_last_save")
	provoked := map[commands.ErrorCode]bool{}
	for _, c := range allWrongCalls() {
		for _, call := range inAllNames(c.Call) {
			want := wrongTexts(call, c.Want)
			err := s.Do(ctx, fields(call)...).Err()
			if assert.Error(t, err, call) {
				// Servers differ in the case of the command's name.
				got := strings.ReplaceAll(err.Error(), strings.Fields(call)[0], strings.ToLower(strings.Fields(call)[0]))
				assert.Contains(t, want, got, call)
			}
			err = s.Eval(ctx, "return redis.call(unpack(ARGV))", nil, fields(call)...).Err()
			if assert.Error(t, err, call) {
				text, _, _ := strings.Cut(c.Want.Text(), "<word>")
				assert.True(t, strings.HasPrefix(err.Error(), text), "%s in a script: %v", call, err)
			}
		}
		provoked[c.Want] = true
	}
	// An empty word is no number, in any argument.
	for i, want := range map[int]commands.ErrorCode{
		2: commands.ErrMaxBurstNotInteger, 3: commands.ErrCountNotInteger,
		4: commands.ErrPeriodNotInteger, 5: commands.ErrQuantityNotInteger,
	} {
		call := fields("GO.THROTTLE k 15 30 60 1")
		call[i] = ""
		assert.EqualError(t, s.Do(ctx, call...).Err(), want.Text())
	}

	assert.Equal(t, changes, s.info("persistence", "rdb_changes_since_last_save"))
	same(t, before, s.dataset(), "after the errors")

	for e := commands.NoError + 1; e < commands.NumErrors; e++ {
		// panic_test.go, top_test.go and forks_linux_test.go provoke them.
		if e != commands.ErrInternal && e != commands.ErrTopOff && e != commands.ErrForked {
			assert.True(t, provoked[e], "no call provokes %q", e.Text())
		}
	}
}

// An error that names a word names the right one, at most 64 bytes of the word, and nothing that
// would break the protocol.
func TestErrors_nameTheWord(t *testing.T) {
	s := start(t, options{})
	odd := make([]byte, 256)
	for i := range odd {
		odd[i] = byte(i)
	}
	long := strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		words []any
		want  string
	}{
		{fields("GO.THROTTLE k 15 30 60 1 foo MS"), "ERR unknown option 'foo'"},
		{fields("GO.THROTTLE k 15 30 60 MS UPTO Ms"), "ERR option 'Ms' given more than once"},
		{fields("CL.THROTTLE k 15 30 60 FOO"), "ERR quantity is not an integer"},
		{fields("GO.QUOTA k 15 30 EXACT"), "ERR unknown option 'EXACT'"},
		{fields("GO.ALL k FOO 15 30 60"), "ERR a clause must begin with THROTTLE, WINDOW, QUOTA or LEASE, not 'FOO'"},
		{fields("GO.ALL k THROTTLE 15 30 60 KEY l FOO 1 1 1"), "ERR a clause must begin with THROTTLE, WINDOW, QUOTA or LEASE, not 'FOO'"},
		{fields("GO.ALL k THROTTLE 15 30 60 1 UPTO"), "ERR unknown option 'UPTO'"},
		{fields("GO.ALL k WINDOW 15 60 EXACT exact"), "ERR option 'exact' given more than once"},
		{fields("GO.ALL_RO k WINDOW 15 60 ms KEY"), "ERR unknown option 'KEY'"},
		{[]any{"GO.LEASE", "k", 1, 60, "a", "%s%n'"}, "ERR unknown option '%s%n''"},
		{[]any{"GO.LEASE", "k", 1, 60, "a", ""}, "ERR unknown option ''"},
		{[]any{"GO.LEASE", "k", 1, 60, "a", "a\r\n+OK\x00\xff"}, "ERR unknown option 'a??+OK??'"},
		{[]any{"GO.LEASE", "k", 1, 60, "a", string(odd)}, "ERR unknown option '" + strings.Repeat("?", 32) + string(odd[32:64]) + "'"},
		{[]any{"GO.LEASE", "k", 1, 60, "a", long}, "ERR unknown option '" + long[:64] + "'"},
		{[]any{"GO.ALL", "k", long}, "wrong number of arguments"},
		{[]any{"GO.ALL", "k", long, 1, 1, 1}, "ERR a clause must begin with THROTTLE, WINDOW, QUOTA or LEASE, not '" + long[:64] + "'"},
	} {
		assert.ErrorContains(t, s.Do(ctx, c.words...).Err(), c.want, "%.80v", c.words)
		assert.Equal(t, "PONG", s.Ping(ctx).Val())
	}
}

// Every text has the form of the errors of the server, and no two errors have the same text.
func TestErrors_form(t *testing.T) {
	seen := map[string]bool{}
	for e := commands.NoError + 1; e < commands.NumErrors; e++ {
		assert.Regexp(t, `^[A-Z]+ [^\r\n]*[^.\r\n]$`, e.Text(), "error %d", e)
		assert.False(t, seen[e.Text()], "two errors have the text %s", e.Text())
		seen[e.Text()] = true
	}
}

// Numbers at their bounds are accepted by the other commands too.
func TestErrors_boundsOfTheOtherCommandsAreAccepted(t *testing.T) {
	s := startStill(t)
	for _, c := range []struct{ call, want string }{
		{"GO.WINDOW w1 1000000000000 3153600000 1000000000000", "[0 1000000000000 0 -1 3153600000]"},
		{"GO.WINDOW w2 1 3153600000000 1 MS EXACT", "[0 1 0 -1 3153600000000]"},
		{"GO.WINDOW w3 1 60 1000000000001", "[1 1 1 -1 0]"},
		{"GO.WINDOW w3 1 60 1000000000001 UPTO", "[0 1 0 60 60 1]"},
		{"GO.WINDOW w3 1 60 -1000000000001 upto", "[0 1 1 -1 0 -1]"},
		{"GO.WINDOW +w4 +07 0060 -0", "[0 7 7 -1 0]"},
		{"GO.QUOTA q1 1000000000000 3153600000 1000000000000", "[0 1000000000000 0 -1 3153600000]"},
		{"GO.QUOTA q2 1 3153600000000 1 MS", "[0 1 0 -1 3153600000000]"},
		{"GO.QUOTA q3 1 60 1000000000001", "[1 1 1 -1 0]"},
		{"GO.QUOTA q3 1 60 1000000000001 UPTO", "[0 1 0 60 60 1]"},
		{"GO.QUOTA q3 1 60 -1000000000001 UPTO", "[0 1 1 -1 0 -1]"},
		{"GO.QUOTA q3 1 60 0 align 3153600000 ms UPTO", "[0 1 1 -1 0 0]"},
		{"GO.QUOTA q3 1 60 0 UPTO ALIGN -3153600000", "[0 1 1 -1 0 0]"},
		{"GO.THROTTLE t1 9 1 60 1000000000001 UPTO", "[0 10 0 60 600 10]"},
		{"GO.THROTTLE t1 9 1 60 UPTO", "[1 10 0 60 600 0]"},
		{"GO.THROTTLE t1 9 1 60 -1000000000001 UPTO", "[0 10 10 -1 0 -10]"},
		{"GO.ALL m THROTTLE 999999999999 1000000000000 1 1000000000001", "[1 1000000000000 1000000000000 -1 0 0 [1 1000000000000 1000000000000 -1 0]]"},
		{"GO.ALL m THROTTLE 0 1 3153600000000 1 ms", "[0 1 0 -1 3153600000000 0 [0 1 0 -1 3153600000000]]"},
		{"GO.LEASE l1 1000000000000 3153600000 a", "[0 1000000000000 999999999999 -1 3153600000 0]"},
		{"GO.LEASE l2 1 3153600000000 MS mS", "[0 1 0 -1 3153600000000 0]"},
		{"GO.LEASE l3 1 60 " + strings.Repeat("x", 512), "[0 1 0 -1 60 0]"},
		{"GO.ALL aw WINDOW 1000000000000 3153600000 1000000000000 KEY aq QUOTA 1000000000000 3153600000 1000000000000 KEY al LEASE 1000000000000 3153600000 a",
			"[0 1000000000000 0 -1 3153600000 0 [0 1000000000000 0 -1 3153600000] [0 1000000000000 0 -1 3153600000] [0 1000000000000 999999999999 -1 3153600000 0]]"},
		{"GO.RELEASE l1" + strings.Repeat(" a", 1024), "1"},
	} {
		assert.Equal(t, c.want, s.ask(c.call), c.call)
	}
}

// Numbers at their bounds are accepted and give exact replies.
func TestErrors_boundsAreAccepted(t *testing.T) {
	s := start(t, options{})
	const trillion = 1_000_000_000_000
	for _, c := range []struct {
		call string
		want []int64
	}{
		{"999999999999 1000000000000 1", []int64{0, trillion, trillion - 1, -1, 1}},
		{"999999999999 1 1 1 MS", []int64{0, trillion, trillion - 1, -1, 1}},
		{"999999999999 1 3 1000000000000 MS", []int64{0, trillion, 0, -1, 3 * trillion}},
		{"0 1 3153600000", []int64{0, 1, 0, -1, 3_153_600_000}},
		{"0 1 3153600000000 MS", []int64{0, 1, 0, -1, 3_153_600_000_000}},
		{"1 1 1576800000 2", []int64{0, 2, 0, -1, 3_153_600_000}},
		{"2 2 2102400000 3", []int64{0, 3, 0, -1, 3_153_600_000}},
		{"0 1000000000000 3153600000", []int64{0, 1, 0, -1, 1}},
		{"999999999999 1000000000000 3153600000 1000000000000", []int64{0, trillion, 0, -1, 3_153_600_000}},
		{"15 30 60 1000000000001", []int64{1, 16, 16, -1, 0}},
		{"15 30 60 -1000000000001", []int64{0, 16, 16, -1, 0}},
		{"999999999999 1 3 1000000000001 MS", []int64{1, trillion, trillion, -1, 0}},
		// Numbers may be written in every way that redis-cell accepts.
		{"+15 +30 +60 +1", []int64{0, 16, 15, -1, 2}},
		{"0015 00000000000000000000000000030 060 -0", []int64{0, 16, 16, -1, 0}},
		{"-0 1 60", []int64{0, 1, 0, -1, 60}},
	} {
		assert.Equal(t, c.want, s.throttle(append([]any{c.call}, fields(c.call)...)...), c.call)
		script := "return redis.call('GO.THROTTLE', KEYS[1], unpack(ARGV))"
		reply, err := s.Eval(ctx, script, []string{"script " + c.call}, fields(c.call)...).Int64Slice()
		require.NoError(t, err, c.call)
		assert.Equal(t, c.want, reply, "%s in a script", c.call)
	}
}

func TestErrors_wrongArity(t *testing.T) {
	s := start(t, options{})
	for _, row := range commands.Table {
		least := row.Least()
		for n := 1; n < least; n++ {
			s.wrongArity(row.Name, n)
		}
		if row.MaxArity > 0 {
			s.wrongArity(row.Name, row.MaxArity+1)
			s.wrongArity(row.Name, 1000)
		}
	}
	assert.Zero(t, s.DBSize(ctx).Val())
}

// Refusals of the server. None of them leaves a key behind.
func TestErrors_refusalsOfTheServer(t *testing.T) {
	s := start(t, options{})
	call := []any{"GO.THROTTLE", "k", 15, 30, 60}

	// When memory is full, the server refuses commands with the flag denyoom.
	require.NoError(t, s.ConfigSet(ctx, "maxmemory", "1").Err())
	for name, c := range samples {
		words := c.on("k")
		err := s.Do(ctx, words...).Err()
		inScript := s.Eval(ctx, "return redis.call(unpack(ARGV))", nil, words...).Err()
		if strings.Contains(c.Flags, "deny-oom") {
			assert.ErrorContains(t, err, "OOM command not allowed", name)
			assert.ErrorContains(t, inScript, "OOM ", name)
		} else {
			assert.NoError(t, failure(err), name)
		}
	}
	require.NoError(t, s.ConfigSet(ctx, "maxmemory", "0").Err())

	// The user may not use the command, or not with this key.
	require.NoError(t, s.Do(ctx, "ACL", "SETUSER", "reader", "on", "nopass", "~*", "+@read", "+auth").Err())
	require.NoError(t, s.Do(ctx, "ACL", "SETUSER", "app", "on", "nopass", "~app:*", "+go.throttle").Err())
	for _, user := range []string{"reader", "app"} {
		w := s.wire()
		require.Equal(t, status("OK"), w.do("AUTH", user, "any"))
		reply := w.do(call...)
		if assert.IsType(t, wireError(""), reply, user) {
			assert.Regexp(t, "^NOPERM ", reply, user)
		}
	}

	// A replica refuses commands that may write.
	master, replica := startReplica(t)
	for name, c := range samples {
		err := replica.Do(ctx, c.on("k")...).Err()
		if c.writes() {
			assert.ErrorContains(t, err, "READONLY ", name)
		} else {
			assert.NoError(t, failure(err), name)
		}
	}
	assert.ErrorContains(t, replica.Do(ctx, "GO.THROTTLE", "k", 15, 30, 60, 0).Err(), "READONLY ")

	// A cluster refuses a key whose slot no node serves.
	cluster := start(t, options{cluster: true, args: []string{"--cluster-require-full-coverage", "no"}})
	assert.ErrorContains(t, cluster.Do(ctx, call...).Err(), "CLUSTERDOWN ")
	require.NoError(t, cluster.Do(ctx, "CLUSTER", "ADDSLOTSRANGE", 0, 16383).Err())
	eventually(t, "the slots are served", func() bool { return cluster.Do(ctx, call...).Err() == nil })

	for _, s := range []*server{s, master, replica} {
		assert.Zero(t, s.DBSize(ctx).Val())
	}
}
