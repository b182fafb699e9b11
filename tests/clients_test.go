package tests

import (
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fields splits a line into words for a command.
func fields(line string) []any {
	var all []any
	for _, f := range strings.Fields(line) {
		all = append(all, f)
	}
	return all
}

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
			assert.Equal(t, []int64{0, 16, 14, -1, 4}, ints(t, second), "an error stops nothing in MULTI")
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

// The bytes of a reply, which no client has touched.
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

// A script that may not write may not throttle.
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

// An optimistic transaction is disturbed by what changes the key and nothing else.
func TestClients_watchSeesOnlyWhatChanges(t *testing.T) {
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
