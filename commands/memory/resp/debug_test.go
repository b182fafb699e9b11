package resp_test

import (
	"strings"
	"testing"
	"time"

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

// Programs in other languages set faults and the clock by DEBUG, whose connection stays as it is.
func TestServer_debug(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := network(t, resp.Options{Debug: true}).Add("10.0.0.1:6379")
		control, rdb := client(t, s, redis.Options{PoolSize: 1}), client(t, s, redis.Options{ReadTimeout: time.Second})
		debug(t, control, "FAULT NONE")
		used := 0
		for _, row := range []struct {
			line, want string
			takes      int
		}{
			{"FAULT SILENT", "i/o timeout", 1}, // runs when the silence ends
			{"FAULT MUTE", "i/o timeout", 1},
			{"FAULT NOMODULE", "unknown command", 0},
			{"FAULT SLOW 2s", "i/o timeout", 1},
			{"FAULT ERROR LOADING it", "LOADING it", 0},
			{"FAULT WRITES READONLY it", "READONLY it", 0},
			{"CUTBEFORE 1", "EOF", 0},
			{"CUTAFTER 1", "EOF", 1},
			{"HALFOPEN", "i/o timeout", 0},
			{"CUT", "EOF", 0},
			{"RESTART", "EOF", 0},
			{"STALL 2s", "i/o timeout", 1},
		} {
			require.NoError(t, rdb.Ping(ctx).Err())
			debug(t, control, row.line)
			_, err := take(ctx, rdb, "k")
			require.ErrorContains(t, err, row.want, row.line)
			time.Sleep(5 * time.Second)
			debug(t, control, "FAULT NONE")
			time.Sleep(5 * time.Second)
			used += row.takes + 1
			require.EqualValues(t, 1000-used, must(take(ctx, rdb, "k")), row.line)
		}
		debug(t, control, "ADVANCE 1h")
		require.EqualValues(t, 999, must(take(ctx, rdb, "k")))
		for _, words := range [][]any{{}, {"NONE"}, {"FAULT"}, {"FAULT", "REPLY"}, {"FAULT", "SLOW"}, {"STALL"}, {"PROMOTE"}} {
			require.ErrorContains(t, control.Do(ctx, append([]any{"DEBUG"}, words...)...).Err(), "ERR ", words)
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
