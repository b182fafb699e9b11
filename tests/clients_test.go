package tests

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A transcript has one client in RESP2, and short keys. Every command gives the same reply in every way to call it.
func TestClients_everyCommandInEveryWay(t *testing.T) {
	s := start(t, options{})
	code := `#!lua name=limits
		redis.register_function('take', function(keys, args) return redis.call(unpack(args)) end)`
	require.NoError(t, s.FunctionLoadReplace(ctx, code).Err())
	resp2 := s.client(2)
	for name, c := range samples {
		for how, call := range map[string]func(words []any) *redis.Cmd{
			"RESP2": func(words []any) *redis.Cmd { return resp2.Do(ctx, words...) },
			"RESP3": func(words []any) *redis.Cmd { return s.Do(ctx, words...) },
			"in lower case": func(words []any) *redis.Cmd {
				return s.Do(ctx, append([]any{strings.ToLower(name)}, words[1:]...)...)
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
			words := c.on(strings.Repeat("k", 70_000) + name + how)
			assert.Equal(t, c.Sample.First, flat(call(words).Result()), "%s, %s", name, how)
			assert.Equal(t, c.Sample.Second, flat(call(words).Result()), "%s, %s, again", name, how)
		}
		err := s.EvalRO(ctx, "return redis.call(unpack(ARGV))", nil, c.on("read-only script")...).Err()
		assert.Equal(t, c.Writes(), failure(err) != nil && strings.Contains(err.Error(), "read-only"), "%s in a read-only script: %v", name, err)
	}
}
