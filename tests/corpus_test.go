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

	"gothrottle/commands"
	"gothrottle/commands/memory"
	"gothrottle/tests/corpus"
)

// A server replies what the transcripts say, a replica link shows what it replicates, and its keys hold what a replica
// holds. Everything else that a server does follows from the effects: see corpusHost.consistent. On Valkey 9.1 and in a
// container, where the clock goes on, cases that set it are left out.
func TestCorpus(t *testing.T) { runTranscripts(t, "corpus", corpus.Options{}) }

// runTranscripts runs the transcripts of a folder on a server.
func runTranscripts(t *testing.T, folder string, o corpus.Options) {
	t.Helper()
	h, set := &corpusHost{t: t}, options{}
	if !inImage() {
		h.clock = newClock(t)
		h.clock.freeze(time.UnixMicro(corpus.Epoch))
		set.Clock = h.clock.Clock
	}
	set.Args = []string{"--repl-diskless-sync", "no", "--enable-debug-command", "yes", "--gothrottle.top-keys", "1000",
		"--notify-keyspace-events", "KA", "--repl-timeout", "2147483647"} // weeks go by between cases
	h.server = start(t, set)
	h.client2, h.watcher, h.stream = h.client(2), h.Conn(), h.replicate()
	h.events = h.PSubscribe(ctx, "__keyspace@0__:*", "marks")
	defer h.watcher.Close()
	defer h.events.Close()
	for range 2 {
		_, err := h.events.Receive(ctx) // the confirmation of the subscription
		require.NoError(t, err)
	}
	h.must("DEBUG SET-ACTIVE-EXPIRE 0") // a key goes when a call finds it
	if o.Server = true; h.clock == nil || h.clockRuns() {
		h.clock, o.Now = nil, func() int64 { return h.now() / 1000 }
	}
	corpus.Run(t, h, folder, o)
}

// corpusHost is a server as a host of the transcripts.
type corpusHost struct {
	*server
	t       *testing.T
	clock   *clock // nil: it cannot be set
	client2 *redis.Client
	watcher *redis.Conn
	events  *redis.PubSub
	stream  *stream
}

func (h *corpusHost) Begin(now int64) {
	h.Clock(now)
	h.must("FLUSHALL")
	require.NoError(h.t, h.ConfigSet(ctx, "gothrottle.policies", "").Err())
	h.must("GO.TOP RESET")
	h.since()
}

func (h *corpusHost) Clock(now int64) {
	if h.clock != nil {
		h.clock.freeze(time.UnixMicro(now))
		h.sees(time.UnixMicro(now))
	}
}

func (h *corpusHost) Call(words []string) (any, [][]string) {
	args := anyOf(words)
	if !strings.HasPrefix(words[0], "GO.") && !strings.HasPrefix(words[0], "CL.") {
		reply := h.result(args...)
		effects, _ := h.since()
		return reply, effects
	}
	if h.clock == nil { // the fewer commands in a case, the less its times differ
		reply := h.result(args...)
		effects, events := h.since()
		h.consistent(words, effects, events)
		return reply, effects
	}
	twin, unsaved := h.twin(args), h.unsaved()
	require.NoError(h.t, h.watcher.Do(ctx, append([]any{"WATCH"}, args...)...).Err())
	reply := h.result(args...)
	require.NoError(h.t, h.watcher.Do(ctx, "MULTI").Err())
	disturbed := errors.Is(h.watcher.Do(ctx, "EXEC").Err(), redis.Nil)
	effects, events := h.since()
	if err, failed := twin.(error); failed {
		assert.IsType(h.t, err, reply, "the read-only twin of %q: %v", words, err)
	} else if twin != nil {
		assert.Equal(h.t, reply, twin, "the read-only twin of %q", words)
	}
	changed := h.consistent(words, effects, events)
	assert.Equal(h.t, changed, disturbed, "%q disturbs a transaction that watches its keys", words)
	assert.Equal(h.t, changed, h.unsaved() != unsaved, "%q counts for the save points", words)
	return reply, effects
}

// consistent checks the keyspace events of a call: they are those of the same commands by a client. It reports whether the
// call changes anything. A DEL of a key that has expired does not.
func (h *corpusHost) consistent(words []string, effects [][]string, got map[string][]string) (changed bool) {
	want := map[string][]string{}
	for _, e := range effects {
		key, all := e[1], map[string][]string{"HSET": {"hset"}, "HDEL": {"hdel"}, "ZADD": {"zadd"}, "ZREM": {"zrem"}, "PEXPIREAT": {"expire"},
			"SET": {"set"}, "DEL": {"del"}}[e[0]]
		if e[0] == "SET" && e[3] == "PXAT" {
			all = []string{"set", "expire"}
		}
		if n := len(want[key]); e[0] == "DEL" && n < len(got[key]) && got[key][n] == "expired" {
			all = []string{"expired"}
		} else {
			changed = true
		}
		if want[key] = append(want[key], all...); e[0] == "ZREM" && h.Exists(ctx, key).Val() == 0 {
			want[key] = append(want[key], "del")
		}
	}
	assert.Equal(h.t, want, got, "events of %q", words)
	return changed
}

// twin returns what the read-only twin of a call replies in a script that may not write, nil if there is no twin.
func (h *corpusHost) twin(args []any) any {
	name := fmt.Sprint(args[0], "_RO")
	if !slices.ContainsFunc(commands.Table, func(c commands.Command) bool { return c.Name == name }) {
		return nil
	}
	return h.result(append([]any{"EVAL_RO", "return redis.pcall(unpack(ARGV))", 0, name}, args[1:]...)...)
}

// result returns the reply of a call, an error if it is one.
func (h *corpusHost) result(args ...any) any {
	reply, err := h.client2.Do(ctx, args...).Result()
	if failure(err) != nil {
		return err
	}
	return reply
}

// since returns what was replicated since the last call of since, and the keyspace events of each key. The stream ends with
// a mark, which it publishes.
func (h *corpusHost) since() (effects [][]string, events map[string][]string) {
	for _, e := range h.stream.since() {
		switch e[0] {
		case "MULTI", "EXEC":
			continue
		case "UNLINK": // of an expired key, with lazyfree-lazy-expire
			e[0] = "DEL"
		}
		effects = append(effects, e)
	}
	events = map[string][]string{}
	for m := range h.events.Channel() {
		if m.Channel == "marks" {
			break
		}
		_, key, _ := strings.Cut(m.Channel, ":")
		events[key] = append(events[key], m.Payload)
	}
	return effects, events
}

// unsaved returns how many changes count for the save points.
func (h *corpusHost) unsaved() string { return h.info("persistence", "rdb_changes_since_last_save") }

func (h *corpusHost) Values(keys []string) (map[string]*memory.Value, int) {
	all := map[string]*memory.Value{}
	if len(keys) > 0 {
		found, err := h.client2.Eval(ctx, corpus.ReadKeys, keys).Slice()
		require.NoError(h.t, err)
		for i, key := range keys {
			if v := corpus.Value(found[i].([]any)); v != nil {
				all[key] = v
			}
		}
	}
	return all, int(h.DBSize(ctx).Val())
}
