package tests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/commands"
)

// wrongCalls provokes every error text of the command table; foreign_test.go and
// panic_test.go go on with what stands at keys and with errors of our own.
var wrongCalls = []struct {
	call string
	want commands.Error
}{
	// Each argument must be an integer: one sign, decimal digits, nothing else.
	{"GO.THROTTLE k x 30 60", commands.ErrMaxBurstNotInteger},
	{"GO.THROTTLE k 1.0 30 60", commands.ErrMaxBurstNotInteger},
	{"GO.THROTTLE k 1e3 30 60", commands.ErrMaxBurstNotInteger},
	{"GO.THROTTLE k 0x1 30 60", commands.ErrMaxBurstNotInteger},
	{"GO.THROTTLE k + 30 60", commands.ErrMaxBurstNotInteger},
	{"GO.THROTTLE k --1 30 60", commands.ErrMaxBurstNotInteger},
	{"GO.THROTTLE k 1_000 30 60", commands.ErrMaxBurstNotInteger},
	{"GO.THROTTLE k \u0661 30 60", commands.ErrMaxBurstNotInteger},
	{"GO.THROTTLE k 15 x 60", commands.ErrCountNotInteger},
	{"GO.THROTTLE k 15 inf 60", commands.ErrCountNotInteger},
	{"GO.THROTTLE k 15 30 x", commands.ErrPeriodNotInteger},
	{"GO.THROTTLE k 15 30 60s", commands.ErrPeriodNotInteger},
	{"GO.THROTTLE k 15 30 60 1.5", commands.ErrQuantityNotInteger},
	{"GO.THROTTLE k 15 30 60 1x", commands.ErrQuantityNotInteger},
	{"CL.THROTTLE k 15 30 60 x", commands.ErrQuantityNotInteger},
	{"CL.THROTTLE k 15 30 60 MS", commands.ErrQuantityNotInteger},
	// Each has its bounds: the first that is outside, and what is no 64-bit number.
	{"GO.THROTTLE k -1 30 60", commands.ErrMaxBurstRange},
	{"GO.THROTTLE k 1000000000000 1000000000000 1", commands.ErrMaxBurstRange},
	{"GO.THROTTLE k 9223372036854775807 30 60", commands.ErrMaxBurstRange},
	{"GO.THROTTLE k 9223372036854775808 30 60", commands.ErrMaxBurstRange},
	{"GO.THROTTLE k 18446744073709551617 30 60", commands.ErrMaxBurstRange},
	{"GO.THROTTLE k -9223372036854775809 30 60", commands.ErrMaxBurstRange},
	{"GO.THROTTLE k " + strings.Repeat("1", 1000) + " 30 60", commands.ErrMaxBurstRange},
	{"GO.THROTTLE k 15 0 60", commands.ErrCountRange},
	{"GO.THROTTLE k 15 -0 60", commands.ErrCountRange},
	{"GO.THROTTLE k 15 -30 60", commands.ErrCountRange},
	{"GO.THROTTLE k 15 1000000000001 60", commands.ErrCountRange},
	{"GO.THROTTLE k 15 30 0", commands.ErrPeriodRangeSeconds},
	{"GO.THROTTLE k 15 30 -60", commands.ErrPeriodRangeSeconds},
	{"GO.THROTTLE k 0 1 3153600001", commands.ErrPeriodRangeSeconds},
	{"GO.THROTTLE k 0 1000000 9223372036854775807", commands.ErrPeriodRangeSeconds},
	{"GO.THROTTLE k 15 30 0 MS", commands.ErrPeriodRangeMillis},
	{"GO.THROTTLE k 15 30 -1 1 MS", commands.ErrPeriodRangeMillis},
	{"GO.THROTTLE k 0 1 3153600000001 1 MS", commands.ErrPeriodRangeMillis},
	{"GO.THROTTLE k 15 30 60 1000000000002", commands.ErrQuantityRange},
	{"GO.THROTTLE k 15 30 60 -1000000000002", commands.ErrQuantityRange},
	{"GO.THROTTLE k 15 30 60 -9223372036854775808", commands.ErrQuantityRange},
	{"GO.THROTTLE k 15 30 60 9223372036854775808", commands.ErrQuantityRange},
	// And together no more than 100 years.
	{"GO.THROTTLE k 1 1 1576800001", commands.ErrWindowTooLong},
	{"GO.THROTTLE k 2 2 2102400001", commands.ErrWindowTooLong},
	{"GO.THROTTLE k 1 1 1576800000001 MS", commands.ErrWindowTooLong},
	{"GO.THROTTLE k 999999999999 1 3153600000", commands.ErrWindowTooLong},
	{"GO.THROTTLE k 999999999999 1 3153600000 0", commands.ErrWindowTooLong},
	// redis-cell has no rate above one unit per ns, and so has its command.
	{"CL.THROTTLE k 15 1000000001 1", commands.ErrRateTooHigh},
	// Options.
	{"GO.THROTTLE k 15 30 60 SM", commands.ErrUnknownOption},
	{"GO.THROTTLE k 15 30 60 1 M", commands.ErrUnknownOption},
	{"GO.THROTTLE k 15 30 60 1 2", commands.ErrUnknownOption},
	{"GO.THROTTLE k 15 30 60 MS 1", commands.ErrUnknownOption},
	{"GO.THROTTLE k 15 30 60 1 MS\x00", commands.ErrUnknownOption},
	{"GO.THROTTLE k 15 30 60 MS MS", commands.ErrRepeatedOption},
	{"GO.THROTTLE k 15 30 60 1 ms Ms", commands.ErrRepeatedOption},
	// What stands at the key.
	{"GO.THROTTLE list 15 30 60", commands.ErrWrongType},
	{"GO.THROTTLE profile 15 30 60", commands.ErrForeignHash},
	{"GO.THROTTLE damaged 15 30 60", commands.ErrDamaged},
}

func TestErrors_eachText(t *testing.T) {
	s := start(t, options{})
	s.RPush(ctx, "list", "a")
	s.HSet(ctx, "profile", "name", "Ann")
	s.HSet(ctx, "damaged", "t", "soon", "p", 1)
	changes := s.info("persistence", "rdb_changes_since_last_save")
	provoked := map[commands.Error]bool{}
	for _, c := range wrongCalls {
		for _, call := range inBothNames(c.call) {
			assert.EqualError(t, s.Do(ctx, fields(call)...).Err(), c.want.Text(), call)
			err := s.Eval(ctx, "return redis.call(unpack(ARGV))", nil, fields(call)...).Err()
			if assert.Error(t, err, call) {
				assert.True(t, strings.HasPrefix(err.Error(), c.want.Text()), "%s in a script: %v", call, err)
			}
		}
		provoked[c.want] = true
	}
	// An empty word is no number, wherever it stands.
	for i, want := range map[int]commands.Error{
		2: commands.ErrMaxBurstNotInteger, 3: commands.ErrCountNotInteger,
		4: commands.ErrPeriodNotInteger, 5: commands.ErrQuantityNotInteger,
	} {
		call := fields("GO.THROTTLE k 15 30 60 1")
		call[i] = ""
		assert.EqualError(t, s.Do(ctx, call...).Err(), want.Text())
	}

	assert.Equal(t, changes, s.info("persistence", "rdb_changes_since_last_save"))
	assert.EqualValues(t, 3, s.DBSize(ctx).Val())

	for e := commands.NoError + 1; e < commands.NumErrors; e++ {
		if e != commands.ErrInternal { // panic_test.go provokes it
			assert.True(t, provoked[e], "no call provokes %q", e.Text())
		}
	}
}

// inBothNames returns a call and, unless it has options, its twin under redis-cell's
// name.
func inBothNames(call string) []string {
	words := strings.Fields(call)
	tail := words[min(len(words), 5):]
	if words[0] == "GO.THROTTLE" && (len(tail) == 0 || len(tail) == 1 && strings.ContainsAny(tail[0], "0123456789")) {
		return []string{call, "CL.THROTTLE" + strings.TrimPrefix(call, "GO.THROTTLE")}
	}
	return []string{call}
}

// Every text has the form of the server's own errors, and none stands for two things.
func TestErrors_form(t *testing.T) {
	seen := map[string]bool{}
	for e := commands.NoError + 1; e < commands.NumErrors; e++ {
		assert.Regexp(t, `^[A-Z]+ [^\r\n]*[^.\r\n]$`, e.Text(), "error %d", e)
		assert.False(t, seen[e.Text()], "twice: %s", e.Text())
		seen[e.Text()] = true
	}
}

// The bounds themselves are accepted, and give exact replies.
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
		// Numbers are read as redis-cell reads them.
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

// wrongArity checks a call of n words, the name among them.
func (s *server) wrongArity(name string, n int) {
	s.t.Helper()
	call := []any{name}
	for len(call) < n {
		call = append(call, "1")
	}
	err := s.Do(ctx, call...).Err()
	if assert.Error(s.t, err, "%d words", n) {
		want := fmt.Sprintf("err wrong number of arguments for '%s' command", strings.ToLower(name))
		assert.Equal(s.t, want, strings.ToLower(err.Error()))
	}
}

// The server's own refusals: each once, each without a trace.
func TestErrors_ofTheServer(t *testing.T) {
	s := start(t, options{})
	call := []any{"GO.THROTTLE", "k", 15, 30, 60}

	// Memory is full: the command may grow it.
	require.NoError(t, s.ConfigSet(ctx, "maxmemory", "1").Err())
	assert.ErrorContains(t, s.Do(ctx, call...).Err(), "OOM command not allowed")
	assert.ErrorContains(t, s.Eval(ctx, "return redis.call(unpack(ARGV))", nil, call...).Err(), "OOM ")
	require.NoError(t, s.ConfigSet(ctx, "maxmemory", "0").Err())

	// The user may not call it, or not with this key.
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

	// A replica takes no writes.
	net := newNetwork(t)
	master := start(t, options{net: net})
	replica := start(t, options{net: net})
	replica.follow(master)
	assert.ErrorContains(t, replica.Do(ctx, call...).Err(), "READONLY ")
	assert.ErrorContains(t, replica.Do(ctx, "GO.THROTTLE", "k", 15, 30, 60, 0).Err(), "READONLY ")

	// A cluster sees the key: slots that nobody serves refuse it.
	cluster := start(t, options{args: []string{"--cluster-enabled", "yes", "--cluster-port", freePort(t),
		"--cluster-require-full-coverage", "no"}})
	assert.ErrorContains(t, cluster.Do(ctx, call...).Err(), "CLUSTERDOWN ")
	require.NoError(t, cluster.Do(ctx, "CLUSTER", "ADDSLOTSRANGE", 0, 16383).Err())
	eventually(t, "the slots are served", func() bool { return cluster.Do(ctx, call...).Err() == nil })

	for _, s := range []*server{s, master, replica} {
		assert.Zero(t, s.DBSize(ctx).Val())
	}
}
