package tests

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every command replies alike however it is called.
func TestClients_everyCommandInEveryWay(t *testing.T) {
	s := start(t, options{})
	code := `#!lua name=limits
		redis.register_function('take', function(keys, args) return redis.call(unpack(args)) end)`
	require.NoError(t, s.FunctionLoadReplace(ctx, code).Err())
	resp2 := s.client(options2)
	for name, c := range samples {
		for how, call := range map[string]func(words []any) *redis.Cmd{
			"RESP2": func(words []any) *redis.Cmd { return resp2.Do(ctx, words...) },
			"RESP3": func(words []any) *redis.Cmd { return s.Do(ctx, words...) },
			"in lower case": func(words []any) *redis.Cmd {
				return s.Do(ctx, append([]any{strings.ToLower(name)}, words[1:]...)...)
			},
			"pipeline": func(words []any) *redis.Cmd {
				p := s.Pipeline()
				cmd := p.Do(ctx, words...)
				_, err := p.Exec(ctx)
				require.NoError(t, err)
				return cmd
			},
			"MULTI": func(words []any) *redis.Cmd {
				p := s.TxPipeline()
				p.Do(ctx, "GO.WINDOW", "other", "x", 60) // an error stops nothing
				cmd := p.Do(ctx, words...)
				_, err := p.Exec(ctx)
				assert.ErrorContains(t, err, "limit is not")
				return cmd
			},
			"EVAL": func(words []any) *redis.Cmd {
				return s.Eval(ctx, "return redis.call(unpack(ARGV))", []string{words[1].(string)}, words...)
			},
			"EVAL in RESP3": func(words []any) *redis.Cmd {
				return s.Eval(ctx, "redis.setresp(3) return redis.call(unpack(ARGV))", []string{words[1].(string)}, words...)
			},
			"FUNCTION": func(words []any) *redis.Cmd {
				return s.FCall(ctx, "take", []string{words[1].(string)}, words...)
			},
		} {
			words := c.on(name + " " + how)
			assert.Equal(t, c.first, flat(call(words).Result()), "%s, %s", name, how)
			assert.Equal(t, c.second, flat(call(words).Result()), "%s, %s, again", name, how)
		}
	}
}

// A reply has the same bytes in both protocols, integers and arrays of them.
func TestClients_everyReplyOnTheWire(t *testing.T) {
	s := start(t, options{})
	raw := func(protocol string, words []any) string {
		w := s.wireFor(t)
		w.do("HELLO", protocol)
		w.send(words...)
		w.send("PING")
		text := ""
		for !strings.HasSuffix(text, "+PONG\r\n") {
			require.NoError(t, w.conn.SetReadDeadline(time.Now().Add(patience)))
			line, err := w.in.ReadString('\n')
			require.NoError(t, err)
			text += line
		}
		return strings.TrimSuffix(text, "+PONG\r\n")
	}
	for name, c := range samples {
		two, three := raw("2", c.on(name+"2")), raw("3", c.on(name+"3"))
		assert.Equal(t, two, three, name)
		assert.Equal(t, c.first, strings.NewReplacer(":", "", "\r\n", " ").Replace(
			deep(strings.Split(strings.TrimSuffix(two, "\r\n"), "\r\n"))), name)
	}
	assert.Equal(t, "*5\r\n:1\r\n:-1\r\n:1\r\n*5\r\n:0\r\n:2\r\n:2\r\n:-1\r\n:0\r\n*5\r\n:1\r\n:1\r\n:1\r\n:-1\r\n:0\r\n",
		raw("2", fields("GO.MTHROTTLE 2 a b 1 1 60 1 0 1 60 2")))
}

// deep writes lines of integers and array headers as nested lists.
func deep(lines []string) string {
	var next func() string
	next = func() string {
		line := lines[0]
		lines = lines[1:]
		n := 0
		if _, err := fmt.Sscanf(line, "*%d", &n); err != nil {
			return line
		}
		var all []string
		for range n {
			all = append(all, next())
		}
		return "[" + strings.Join(all, " ") + "]"
	}
	return next()
}

// oddNames are names that a C program, a format string or a protocol could trip over.
func oddNames() []string {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return []string{"", " ", "a b", "%s%n%d", "\x00", "a\x00b", "a", "\r\n", "\xff\xfe", "\x01", "\x02", "KEY", "MS",
		"ключ☃", "{tag}rest", string(all),
		strings.Repeat("k", 512<<10), strings.Repeat("k", 512<<10-1) + "\x00"}
}

func TestClients_anyKeyAndAnyIDForEveryCommand(t *testing.T) {
	s := start(t, options{})
	names := oddNames()
	for command, c := range samples {
		require.NoError(t, s.FlushAll(ctx).Err())
		for i, key := range names {
			assert.Equal(t, c.first, flat(s.Do(ctx, c.on(key)...).Result()), "%s, key %d", command, i)
		}
		for i, key := range names {
			assert.Equal(t, c.second, flat(s.Do(ctx, c.on(key)...).Result()), "%s, key %d again", command, i)
			assert.Equal(t, c.effect != "", s.Exists(ctx, key).Val() == 1, "%s, key %d", command, i)
		}
	}
	// Keys that begin alike are different ones, and the order is kept.
	words := []any{"GO.MTHROTTLE", len(names)}
	for _, key := range names {
		words = append(words, key)
	}
	for i := range names {
		words = append(words, 99, 1, 3600, i+1)
	}
	require.NoError(t, s.FlushAll(ctx).Err())
	require.NoError(t, s.Do(ctx, words...).Err())
	for i, key := range names {
		assert.EqualValues(t, 100-i-1, s.throttle(key, 99, 1, 3600, 0)[2], "key %d", i)
	}
	// Holders.
	require.NoError(t, s.FlushAll(ctx).Err())
	n := len(names)
	for range 2 {
		for i, id := range names {
			held, err := s.Do(ctx, "GO.LEASE", "k", n, 3600, id).Int64Slice()
			require.NoError(t, err)
			assert.Equal(t, []int64{0, -1, 3600}, []int64{held[0], held[3], held[4]}, "id %d", i)
		}
		assert.EqualValues(t, n, s.ZCard(ctx, "k").Val())
	}
	assert.Equal(t, fmt.Sprintf("[1 %d 0 3600 -1]", n), s.ask(fmt.Sprintf("GO.LEASE k %d 3600 another", n)))
	for i, id := range names {
		assert.EqualValues(t, 1, s.Do(ctx, "GO.RELEASE", "k", id, id).Val(), "id %d", i)
		assert.EqualValues(t, 0, s.Do(ctx, "GO.RELEASE", "k", id).Val(), "id %d", i)
	}
	assert.Zero(t, s.DBSize(ctx).Val())
}

// An optimistic transaction is disturbed by what changes the key and nothing else.
func TestClients_watchSeesOnlyWhatChangesByEveryCommand(t *testing.T) {
	s := start(t, options{})
	for _, c := range []struct {
		before, call string
		disturbed    bool
	}{
		{"", "GO.WINDOW k 2 3600 0", false},
		{"", "GO.WINDOW k 2 3600 -1", false},
		{"", "GO.WINDOW k 2 3600 3", false},
		{"", "GO.WINDOW k 2 3600 1", true},
		{"GO.WINDOW k 2 3600 2", "GO.WINDOW k 2 3600", false},
		{"GO.WINDOW k 2 3600 2", "GO.WINDOW k 2 3600 1 UPTO", false},
		{"GO.WINDOW k 2 3600 2", "GO.WINDOW k 2 3600 0", false},
		{"GO.WINDOW k 2 3600 2", "GO.WINDOW k 1 3600 0", false},
		{"GO.WINDOW k 2 3600 2", "GO.WINDOW k 2 3600 x", false},
		{"GO.WINDOW k 2 3600 2", "GO.WINDOW k 2 7200 1", false},
		{"GO.WINDOW k 2 3600 1", "GO.WINDOW k 2 3600 9 UPTO", true},
		{"GO.WINDOW k 2 3600 2", "GO.WINDOW k 2 3600 -1", true},
		{"GO.WINDOW k 2 3600 2", "GO.WINDOW k 2 3600 -2", true},
		{"", "GO.QUOTA k 2 3600 0", false},
		{"", "GO.QUOTA k 2 3600 -1", false},
		{"", "GO.QUOTA k 2 3600 3", false},
		{"", "GO.QUOTA k 2 3600 1", true},
		{"GO.QUOTA k 2 3600 2", "GO.QUOTA k 2 3600", false},
		{"GO.QUOTA k 2 3600 2", "GO.QUOTA k 1 3600 0", false},
		{"GO.QUOTA k 2 3600 2", "GO.QUOTA k 2 60 1", false},
		{"GO.QUOTA k 2 3600 2", "GO.QUOTA k 2 60 1 ALIGN", false},
		{"GO.QUOTA k 2 3600 1", "GO.QUOTA k 2 3600 1", true},
		{"GO.QUOTA k 2 3600 2", "GO.QUOTA k 2 3600 -1", true},
		{"GO.QUOTA k 2 3600 2", "GO.QUOTA k 2 3600 -2", true},
		{"", "GO.MTHROTTLE 2 k l 1 1 3600 0 1 1 3600 0", false},
		{"", "GO.MTHROTTLE 2 k l 1 1 3600 1 1 1 3600 3", false},
		{"", "GO.MTHROTTLE 2 k l 1 1 3600 0 1 1 3600 1", false},
		{"", "GO.MTHROTTLE 2 l k 1 1 3600 0 1 1 3600 1", true},
		{"GO.THROTTLE k 1 1 3600 2", "GO.MTHROTTLE 2 l k 1 1 3600 1 1 1 3600 1", false},
		{"GO.THROTTLE k 1 1 3600 2", "GO.MTHROTTLE 2 k k 1 1 3600 1 1 1 3600 1", false},
		{"GO.THROTTLE k 1 1 3600 2", "GO.MTHROTTLE 2 k k 1 1 3600 0 1 1 3600 1", true},
		{"GO.THROTTLE k 1 1 3600 1", "GO.THROTTLE k 1 1 3600 5 UPTO", true},
		{"GO.THROTTLE k 1 1 3600 2", "GO.THROTTLE k 1 1 3600 5 UPTO", false},
		{"", "GO.LEASE k 1 60 a", true},
		{"GO.LEASE k 1 60 a", "GO.LEASE k 1 60 b", false},
		{"GO.LEASE k 1 60 a", "GO.LEASE k 0 60 a", false},
		{"GO.LEASE k 1 60 a", "GO.LEASE k 1 120 a", true},
		{"", "GO.RELEASE k a", false},
		{"GO.LEASE k 1 60 a", "GO.RELEASE k b c", false},
		{"GO.LEASE k 1 60 a", "GO.RELEASE k a", true},
		{"GO.THROTTLE k 1 1 3600 1", "GO.THROTTLE_RO k 1 1 3600 1", false},
		{"GO.THROTTLE k 1 1 3600 2", "GO.THROTTLE_RO k 1 1 1800 1", false},
		{"GO.WINDOW k 2 3600 1", "GO.WINDOW_RO k 2 3600 1", false},
		{"GO.QUOTA k 2 3600 1", "GO.QUOTA_RO k 2 3600 -1", false},
		{"", "GO.QUOTA_RO k 2 3600 1", false},
	} {
		s.Del(ctx, "k", "l")
		if c.before != "" {
			s.must(c.before)
		}
		err := s.Watch(ctx, func(tx *redis.Tx) error {
			s.Do(ctx, fields(c.call)...)
			_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Ping(ctx).Err() })
			return err
		}, "k")
		if !errors.Is(err, redis.TxFailedErr) {
			require.NoError(t, err)
		}
		assert.Equal(t, c.disturbed, errors.Is(err, redis.TxFailedErr), "%s; %s", c.before, c.call)
	}
}
