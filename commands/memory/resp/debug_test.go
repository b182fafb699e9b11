package resp_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"gothrottle/commands/memory/resp"
)

// debug sends DEBUG over a connection that faults don't touch.
func debug(t *testing.T, rdb *redis.Client, line string) {
	t.Helper()
	words := []any{"DEBUG"}
	for word := range strings.FieldsSeq(line) {
		words = append(words, word)
	}
	require.NoError(t, rdb.Do(ctx, words...).Err(), line)
}

// DEBUG also moves the clock. Other words are an error, and a server without the option has no DEBUG.
func TestServer_debug(t *testing.T) {
	bubble(t, func(t *testing.T) {
		rdb := client(t, network(t, resp.Options{Debug: true}).Add("10.0.0.1:6379"), redis.Options{})
		for range 2 {
			require.EqualValues(t, 999, must(take(ctx, rdb, "k")))
			debug(t, rdb, "ADVANCE 1h")
		}
		for _, words := range [][]any{{}, {"NONE"}, {"FAULT"}, {"FAULT", "REPLY"}, {"FAULT", "SLOW"}, {"STALL"}, {"PROMOTE"}} {
			require.ErrorContains(t, rdb.Do(ctx, append([]any{"DEBUG"}, words...)...).Err(), "ERR ", words)
		}
		plain := client(t, network(t, resp.Options{}).Add("10.0.0.1:6379"), redis.Options{})
		require.ErrorContains(t, plain.Do(ctx, "DEBUG", "CUT").Err(), "unknown command")
	})
}

// Servers without the module keep to the script when a fault ends, and Sentinels promote a copy.
func TestServer_debugBare(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := network(t, resp.Options{Debug: true, Bare: true})
		master := n.Add("10.0.0.1:6379")
		copy := master.AddCopy("10.0.0.2:6379", 0)
		w := n.NewSentinel("mymaster", master, "10.0.0.3:26379")
		control := client(t, n.Server("10.0.0.3:26379"), redis.Options{})
		debug(t, control, "FAULT NONE")
		_, err := take(ctx, client(t, master, redis.Options{}), "k")
		require.ErrorContains(t, err, "unknown command")
		debug(t, control, "PROMOTE")
		require.Equal(t, copy, w.Master())
	})
}
