package tests

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestClients_everyProtocolAndCallerGetsTheSameReply(t *testing.T) {
	s := start(t, options{})
	want := []int64{0, 16, 15, -1, 2}
	for name, call := range map[string]func(key string) *redis.Cmd{
		"RESP2": func(key string) *redis.Cmd {
			return s.client(options2).Do(ctx, "GO.THROTTLE", key, 15, 30, 60)
		},
		"RESP3": func(key string) *redis.Cmd {
			return s.client(options3).Do(ctx, "go.throttle", key, 15, 30, 60)
		},
		"CL.THROTTLE": func(key string) *redis.Cmd {
			return s.Do(ctx, "CL.THROTTLE", key, 15, 30, 60, 1)
		},
		"milliseconds": func(key string) *redis.Cmd {
			return s.Eval(ctx, `local r = redis.call('GO.THROTTLE', KEYS[1], 15, 30, 60000, 1, 'ms')
				r[5] = r[5] / 1000
				return r`, []string{key})
		},
		"options without a quantity": func(key string) *redis.Cmd {
			return s.Eval(ctx, `local r = redis.call('GO.THROTTLE', KEYS[1], 15, 30, 60000, 'Ms')
				r[5] = r[5] / 1000
				return r`, []string{key})
		},
		"pipeline": func(key string) *redis.Cmd {
			p := s.Pipeline()
			first := p.Do(ctx, "GO.THROTTLE", key, 15, 30, 60)
			p.Do(ctx, "GO.THROTTLE", key, 15, 30, 60)
			_, err := p.Exec(ctx)
			require.NoError(t, err)
			return first
		},
		"MULTI": func(key string) *redis.Cmd {
			p := s.TxPipeline()
			first := p.Do(ctx, "GO.THROTTLE", key, 15, 30, 60)
			p.Do(ctx, "GO.THROTTLE", key, "x", 30, 60)
			second := p.Do(ctx, "GO.THROTTLE", key, 15, 30, 60)
			_, err := p.Exec(ctx)
			assert.ErrorContains(t, err, "max_burst")
			assert.Equal(t, []int64{0, 16, 14, -1, 4}, ints(t, second), "an error does not stop the other calls of MULTI")
			return first
		},
		"EVAL": func(key string) *redis.Cmd {
			return s.Eval(ctx, "return redis.call('GO.THROTTLE', KEYS[1], 15, 30, 60)", []string{key})
		},
		"EVAL in RESP3": func(key string) *redis.Cmd {
			return s.Eval(ctx, "redis.setresp(3) return redis.call('GO.THROTTLE', KEYS[1], 15, 30, 60)", []string{key})
		},
		"FUNCTION": func(key string) *redis.Cmd {
			code := `#!lua name=limits
				redis.register_function('take', function(keys, args)
					return redis.call('GO.THROTTLE', keys[1], unpack(args))
				end)`
			require.NoError(t, s.FunctionLoadReplace(ctx, code).Err())
			return s.FCall(ctx, "take", []string{key}, 15, 30, 60)
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, want, ints(t, call("key of "+name)))
		})
	}
}

// The reply on the connection, without a client library in between.
func TestClients_replyOnTheWire(t *testing.T) {
	s := start(t, options{})
	for _, hello := range []string{"2", "3"} {
		w := s.wire()
		w.do("HELLO", hello)
		reply := w.do("GO.THROTTLE", "wire"+hello, 15, 30, 60)
		assert.Equal(t, []any{int64(0), int64(16), int64(15), int64(-1), int64(2)}, reply)
		assert.IsType(t, wireError(""), w.do("GO.THROTTLE", "k", "x", 1, 1))
	}
}

// A read-only script may not call GO.THROTTLE.
func TestClients_readOnlyScriptsAreRefused(t *testing.T) {
	s := start(t, options{})
	err := s.EvalRO(ctx, "return redis.call('GO.THROTTLE', KEYS[1], 15, 30, 60)", []string{"k"}).Err()
	require.Error(t, err)
	assert.Contains(t, err.Error(), "read-only")
	assert.Zero(t, s.DBSize(ctx).Val())
}

func TestClients_databasesAreApart(t *testing.T) {
	s := start(t, options{})
	for _, db := range []int{0, 9, 0} {
		conn := s.Conn()
		require.NoError(t, conn.Select(ctx, db).Err())
		want := []int64{0, 2, 1, -1, 3600}
		if conn.Exists(ctx, "k").Val() == 1 {
			want = []int64{0, 2, 0, -1, 7200}
		}
		assert.Equal(t, want, ints(t, conn.Do(ctx, "GO.THROTTLE", "k", 1, 1, 3600)), "database %d", db)
		conn.Close()
	}
}

// A call disturbs an optimistic transaction if and only if the call changes the key.
func TestClients_watchIsDisturbedOnlyByChanges(t *testing.T) {
	s := start(t, options{})
	full := "k 1 1 3600 2"
	for _, c := range []struct {
		name, before, call string
		disturbed          bool
	}{
		{"denied", full, "k 1 1 3600 1", false},
		{"above the limit", full, "k 1 1 3600 3", false},
		{"peek", full, "k 1 1 3600 0", false},
		{"a limited peek at another rate", full, "k 0 1 1800 0", false},
		{"peek of nothing", "", "k 1 1 3600 0", false},
		{"refund of nothing", "", "k 1 1 3600 -1", false},
		{"error", full, "k 1 0 3600 1", false},
		{"admitted", "k 1 1 3600 1", "k 1 1 3600 1", true},
		{"admitted, a new key", "", "k 1 1 3600 1", true},
		{"refund", full, "k 1 1 3600 -1", true},
		{"refund to full", full, "k 1 1 3600 -2", true},
		{"denied with a new rate", full, "k 1 1 1800 1", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.Del(ctx, "k")
			if c.before != "" {
				s.throttle(fields(c.before)...)
			}
			err := s.Watch(ctx, func(tx *redis.Tx) error {
				s.Do(ctx, append([]any{"GO.THROTTLE"}, fields(c.call)...)...)
				_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Ping(ctx).Err() })
				return err
			}, "k")
			if !errors.Is(err, redis.TxFailedErr) {
				require.NoError(t, err)
			}
			assert.Equal(t, c.disturbed, errors.Is(err, redis.TxFailedErr))
		})
	}
}

// Every command gives the same reply in every way to call it.
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
				require.NoError(t, failure(err))
				return cmd
			},
			"MULTI": func(words []any) *redis.Cmd {
				p := s.TxPipeline()
				p.Do(ctx, "GO.WINDOW", "other", "x", 60) // an error does not stop the other calls
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
			assert.Equal(t, c.Sample.First, flat(call(words).Result()), "%s, %s", name, how)
			assert.Equal(t, c.Sample.Second, flat(call(words).Result()), "%s, %s, again", name, how)
		}
	}
}

// A reply has the same bytes in RESP2 and RESP3, but for null.
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
		assert.Equal(t, two, strings.ReplaceAll(three, "_\r\n", "$-1\r\n"), name)
		assert.Equal(t, c.Sample.First, strings.NewReplacer(":", "", "$-1", "(nil)", "\r\n", " ").Replace(
			deep(strings.Split(strings.TrimSuffix(two, "\r\n"), "\r\n"))), name)
	}
	assert.Equal(t, "*8\r\n:1\r\n:1\r\n:1\r\n:-1\r\n:0\r\n:1\r\n*5\r\n:0\r\n:2\r\n:2\r\n:-1\r\n:0\r\n*5\r\n:1\r\n:1\r\n:1\r\n:-1\r\n:0\r\n",
		raw("2", fields("GO.ALL a THROTTLE 1 1 60 1 KEY b THROTTLE 0 1 60 2")))
}

func TestClients_anyKeyAndAnyIDForEveryCommand(t *testing.T) {
	s := start(t, options{})
	names := oddNames()
	for command, c := range samples {
		require.NoError(t, s.FlushAll(ctx).Err())
		for i, key := range names {
			assert.Equal(t, c.Sample.First, flat(s.Do(ctx, c.on(key)...).Result()), "%s, key %d", command, i)
		}
		for i, key := range names {
			assert.Equal(t, c.Sample.Second, flat(s.Do(ctx, c.on(key)...).Result()), "%s, key %d again", command, i)
			assert.Equal(t, c.Sample.Writes, s.Exists(ctx, c.key(key)).Val() == 1, "%s, key %d", command, i)
		}
	}
	// Keys with a common prefix are different keys, and the order of the keys is kept.
	words := []any{"GO.ALL"}
	for i, key := range names {
		if i > 0 {
			words = append(words, "KEY")
		}
		words = append(words, key, "THROTTLE", 99, 1, 3600, i+1)
	}
	require.NoError(t, s.FlushAll(ctx).Err())
	require.NoError(t, s.Do(ctx, words...).Err())
	for i, key := range names {
		assert.EqualValues(t, 100-i-1, s.throttle(key, 99, 1, 3600, 0)[2], "key %d", i)
	}
	// IDs of leases.
	require.NoError(t, s.FlushAll(ctx).Err())
	names = slices.DeleteFunc(names, func(id string) bool { return len(id) > 512 })
	names = append(names, strings.Repeat("k", 512), strings.Repeat("k", 511)+"\x00")
	n := len(names)
	for round := range int64(2) {
		for i, id := range names {
			peek := ints(t, s.Do(ctx, "GO.LEASE_RO", "k", n, 3600, id))
			held, err := s.Do(ctx, "GO.LEASE", "k", n, 3600, id).Int64Slice()
			require.NoError(t, err)
			assert.Equal(t, []int64{0, -1, 3600, round}, []int64{held[0], held[3], held[4], held[5]}, "id %d", i)
			assert.Equal(t, peek, held, "id %d", i)
		}
		assert.EqualValues(t, n, s.ZCard(ctx, "k").Val())
	}
	assert.Equal(t, fmt.Sprintf("[1 %d 0 3600 3600 0]", n), s.ask(fmt.Sprintf("GO.LEASE k %d 3600 another", n)))
	for i, id := range names {
		assert.EqualValues(t, 1, s.Do(ctx, "GO.RELEASE", "k", id, id).Val(), "id %d", i)
		assert.EqualValues(t, 0, s.Do(ctx, "GO.RELEASE", "k", id).Val(), "id %d", i)
	}
	assert.Zero(t, s.DBSize(ctx).Val())
}

// A call disturbs an optimistic transaction if and only if the call changes the key.
func TestClients_watchIsDisturbedOnlyByChangesOfEveryCommand(t *testing.T) {
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
		{"", "GO.ALL k THROTTLE 1 1 3600 0 KEY l THROTTLE 1 1 3600 0", false},
		{"", "GO.ALL k THROTTLE 1 1 3600 1 KEY l THROTTLE 1 1 3600 3", false},
		{"", "GO.ALL k THROTTLE 1 1 3600 0 KEY l THROTTLE 1 1 3600 1", false},
		{"", "GO.ALL l THROTTLE 1 1 3600 0 KEY k THROTTLE 1 1 3600 1", true},
		{"GO.THROTTLE k 1 1 3600 2", "GO.ALL l THROTTLE 1 1 3600 1 KEY k THROTTLE 1 1 3600 1", false},
		{"GO.THROTTLE k 1 1 3600 2", "GO.ALL k THROTTLE 1 1 3600 1 THROTTLE 1 1 3600 1", false},
		{"GO.THROTTLE k 1 1 3600 2", "GO.ALL k THROTTLE 1 1 3600 0 THROTTLE 1 1 3600 1", true},
		{"GO.THROTTLE k 1 1 3600 1", "GO.THROTTLE k 1 1 3600 5 UPTO", true},
		{"GO.THROTTLE k 1 1 3600 2", "GO.THROTTLE k 1 1 3600 5 UPTO", false},
		{"", "GO.ALL k WINDOW 1 60 KEY l QUOTA 1 60 2", false},
		{"", "GO.ALL l QUOTA 1 60 0 KEY k WINDOW 1 60", true},
		{"GO.QUOTA k 2 60 1", "GO.ALL k QUOTA 2 60 KEY l LEASE 1 60 a", true},
		{"GO.LEASE k 1 60 a", "GO.ALL k LEASE 1 60 b KEY l WINDOW 1 60", false},
		{"GO.LEASE k 1 60 a", "GO.ALL k LEASE 1 60 a KEY l WINDOW 1 60 2", false},
		{"GO.LEASE k 1 60 a", "GO.ALL k LEASE 1 60 a KEY l WINDOW 1 60", true},
		{"GO.THROTTLE k 1 1 3600 1", "GO.ALL_RO k THROTTLE 1 1 3600 1 KEY l LEASE 1 60 a", false},
		{"GO.LEASE k 1 60 a", "GO.LEASE_RO k 1 60 a", false},
		{"", "GO.LEASE_RO k 1 60 a", false},
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
