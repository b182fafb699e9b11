package tests

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/commands"
	"gothrottle/commands/memory"
	"gothrottle/tests/corpus"
	servers "gothrottle/tests/server"
)

// A server replies what the transcripts say, its append-only file shows what it replicates, and its keys hold what a replica
// holds. Everything else that a server does follows from the effects: see corpusHost.consistent.
func TestCorpus(t *testing.T) { runTranscripts(t, "corpus", corpus.Options{}) }

// A server without the module replies, replicates and holds the same through the script.
func TestCorpus_script(t *testing.T) { runTranscripts(t, "corpus", corpus.Options{Script: true}) }

// runTranscripts runs the transcripts of a folder on a server.
func runTranscripts(t *testing.T, folder string, o corpus.Options) {
	t.Helper()
	h := &corpusHost{t: t, clock: servers.FrozenClock(t, corpus.Epoch)}
	args := []string{"--appendonly", "yes", "--appendfsync", "no", "--auto-aof-rewrite-percentage", "0", "--enable-debug-command",
		"yes", "--notify-keyspace-events", "KA"}
	if o.Script {
		h.script = script(t)
	} else {
		args = append(args, "--gothrottle.top-keys", "1000")
	}
	h.server = start(t, options{Clock: h.clock, Bare: o.Script, Args: args})
	h.client2, h.watcher, h.appended = h.client(2), h.Conn(), h.appendOnlyFile()
	h.events = h.PSubscribe(ctx, "__keyspace@0__:*", "marks")
	defer h.watcher.Close()
	defer h.events.Close()
	for range 2 {
		_, err := h.events.Receive(ctx) // the confirmation of the subscription
		require.NoError(t, err)
	}
	h.must("DEBUG SET-ACTIVE-EXPIRE 0") // a key goes when a call finds it
	o.Server = true
	corpus.Run(t, h, folder, o)
}

// corpusHost is a server as a host of the transcripts.
type corpusHost struct {
	*server
	t       *testing.T
	script  string // what runs the commands; "": the module
	clock   *servers.Clock
	client2 *redis.Client
	watcher *redis.Conn
	events  *redis.PubSub
	// Everything that is replicated is appended to this file before the reply is sent.
	appended *os.File
}

// appendOnlyFile opens the server's append-only file, which must not be rewritten.
func (s *server) appendOnlyFile() *os.File {
	s.t.Helper()
	files, _ := filepath.Glob(filepath.Join(s.run.Folder, "appendonlydir", "*.incr.aof"))
	require.Len(s.t, files, 1)
	file, err := os.Open(files[0])
	require.NoError(s.t, err)
	s.t.Cleanup(func() { file.Close() })
	return file
}

func (h *corpusHost) Begin(now int64) {
	h.Clock(now)
	h.must("FLUSHALL")
	if h.script == "" {
		require.NoError(h.t, h.ConfigSet(ctx, "gothrottle.policies", "").Err())
		h.must("GO.TOP RESET")
	}
	h.since()
}

func (h *corpusHost) Clock(now int64) {
	h.clock.Set(now)
	h.sees(h.clock)
}

func (h *corpusHost) Call(words []string) (any, [][]string) {
	args := corpus.Args(words)
	if !strings.HasPrefix(words[0], "GO.") && !strings.HasPrefix(words[0], "CL.") {
		reply := h.result(args...)
		effects, _ := h.since()
		return reply, effects
	}
	twin, unsaved := h.twin(args), h.unsaved()
	require.NoError(h.t, h.watcher.Do(ctx, append([]any{"WATCH"}, args...)...).Err())
	if h.script != "" {
		args = corpus.ByScript("EVAL", h.script, words)
	}
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
	if h.script != "" {
		words := []string{name}
		for _, arg := range args[1:] {
			words = append(words, arg.(string))
		}
		return h.result(corpus.ByScript("EVAL_RO", h.script, words)...)
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

// since returns what was replicated since the last call of since, and the keyspace events of each key. The events end with a
// mark, which it publishes.
func (h *corpusHost) since() (effects [][]string, events map[string][]string) {
	text, err := io.ReadAll(h.appended)
	require.NoError(h.t, err)
	parts, inside := 0, false // a torn file may break a call into its parts; a DEL of an expired key does no harm
	for rest := string(text); rest != ""; {
		var words []string
		switch words, rest = command(rest); words[0] {
		case "SELECT":
			continue
		case "MULTI":
			inside = true
			continue
		case "EXEC":
			inside, parts = false, parts+1
			continue
		case "UNLINK": // of an expired key, with lazyfree-lazy-expire
			words[0] = "DEL"
		}
		if effects = append(effects, words); !inside && words[0] != "DEL" {
			parts++
		}
	}
	assert.LessOrEqual(h.t, parts, 1, "a torn file may end amid %q", effects)
	require.NoError(h.t, h.Publish(ctx, "marks", "").Err())
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

// command cuts the first command off the text of an append-only file.
func command(text string) (words []string, rest string) {
	number := func() int {
		header, after, _ := strings.Cut(text, "\r\n")
		n, _ := strconv.Atoi(header[1:])
		text = after
		return n
	}
	for range number() {
		n := number()
		words, text = append(words, text[:n]), text[n+len("\r\n"):]
	}
	return words, text
}

// unsaved returns how many changes count for the save points.
func (h *corpusHost) unsaved() string { return h.info("persistence", "rdb_changes_since_last_save") }

func (h *corpusHost) Values(keys []string) (map[string]*memory.Value, int) {
	found, err := h.client2.Eval(ctx, corpus.ReadKeys, keys).Slice()
	require.NoError(h.t, err)
	return corpus.Values(keys, found), int(h.DBSize(ctx).Val())
}
