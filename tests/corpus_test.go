package tests

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"gothrottle/commands"
	"gothrottle/commands/memory"
	"gothrottle/tests/corpus"
)

// A server replies what the transcripts say, a replica link shows what it replicates, and its keys hold what a replica
// holds. On Valkey 9.1 and in a container, where the clock goes on, cases that set it are left out.
func TestCorpus(t *testing.T) {
	h := &corpusHost{t: t}
	if env.image == "" {
		h.clock = newClock(t)
		h.clock.freeze(time.UnixMicro(corpus.Epoch))
	}
	h.server = start(t, options{clock: h.clock, args: []string{"--repl-diskless-sync", "no", "--enable-debug-command", "yes", "--gothrottle.top-keys", "1000",
		"--repl-timeout", "2147483647"}}) // weeks go by between cases
	h.client2 = h.client(options2)
	h.must("DEBUG SET-ACTIVE-EXPIRE 0") // a key goes when a call finds it
	h.stream = h.replicate()
	o := corpus.Options{Server: true}
	if h.runs() {
		h.clock, o.Now = nil, func() int64 { return h.now() / 1000 }
	}
	corpus.Run(t, h, "corpus", o)
}

// corpusHost is a server as a host of the transcripts.
type corpusHost struct {
	*server
	t       *testing.T
	clock   *clock // nil: it cannot be set
	client2 *redis.Client
	stream  *stream
}

// runs reports whether the server's clock goes on. That of Valkey 9.1 goes on, and comes back.
func (h *corpusHost) runs() bool {
	before := h.now()
	for range 100 {
		if h.now() != before {
			return true
		}
	}
	return h.clock == nil
}

func (h *corpusHost) Begin(now int64) {
	h.Clock(now)
	h.must("FLUSHALL")
	require.NoError(h.t, h.ConfigSet(ctx, "gothrottle.policies", "").Err())
	h.must("GO.TOP RESET")
	h.stream.since()
}

func (h *corpusHost) Clock(now int64) {
	if h.clock != nil {
		h.clock.freeze(time.UnixMicro(now))
		h.sees(time.UnixMicro(now))
	}
}

func (h *corpusHost) Call(words []string) (any, [][]string) {
	args := make([]any, len(words))
	for i, word := range words {
		args[i] = word
	}
	reply, err := h.client2.Do(ctx, args...).Result()
	var effects [][]string
	for _, e := range h.stream.since() {
		switch e.words[0] {
		case "MULTI", "EXEC":
			continue
		case "UNLINK": // of an expired key, with lazyfree-lazy-expire
			e.words[0] = "DEL"
		}
		effects = append(effects, e.words)
	}
	if err != nil && !errors.Is(err, redis.Nil) {
		return err, effects
	}
	return reply, effects
}

// readKeys is a script that returns what keys hold: type, expiry and content of each.
const readKeys = `local all = {}
for i, key in ipairs(KEYS) do
	local kind, content = redis.call('TYPE', key).ok, {}
	if kind == 'hash' then content = redis.call('HGETALL', key) end
	if kind == 'zset' then content = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') end
	if kind == 'string' then content = {redis.call('GET', key)} end
	all[i] = {kind, redis.call('PEXPIRETIME', key), content}
end
return all`

func (h *corpusHost) Values(keys []string) (map[string]*memory.Value, int) {
	all := map[string]*memory.Value{}
	if len(keys) > 0 {
		found, err := h.client2.Eval(ctx, readKeys, keys).Slice()
		require.NoError(h.t, err)
		for i, key := range keys {
			if v := valueOf(h.t, found[i].([]any)); v != nil {
				all[key] = v
			}
		}
	}
	return all, int(h.DBSize(ctx).Val())
}

// valueOf converts what the script says of one key.
func valueOf(t testing.TB, found []any) *memory.Value {
	kinds := map[string]commands.Kind{"string": commands.KindString, "hash": commands.KindHash, "zset": commands.KindZset, "list": commands.KindOther}
	v, content := &memory.Value{Kind: kinds[found[0].(string)]}, found[2].([]any)
	if v.Kind == commands.KindAbsent {
		return nil
	}
	v.Expire = max(found[1].(int64), 0)
	if v.Kind == commands.KindString {
		v.Text = content[0].(string)
		return v
	}
	for i := 0; i < len(content); i += 2 {
		first, second := content[i].(string), content[i+1].(string)
		if v.Kind == commands.KindHash {
			v.SetField(first, second)
			continue
		}
		score, err := strconv.ParseFloat(second, 64)
		require.NoError(t, err)
		v.Set = append(v.Set, memory.Member{Score: score, Text: first})
	}
	return v
}
