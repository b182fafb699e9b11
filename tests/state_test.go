package tests

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/commands"
	"gothrottle/tests/corpus"
)

// No transcript shows the server's memory: no call leaks any. The calls are those of the transcripts.
func TestState_noCallLeaksMemory(t *testing.T) {
	lasts(t)
	s := start(t, options{args: []string{"--slowlog-log-slower-than", "-1"}}) // its entries are memory in use
	used := func() int {
		eventually(t, "the memory of other clients is free", func() bool { return s.info("clients", "connected_clients") == "1" })
		n, err := strconv.Atoi(s.info("memory", "used_memory"))
		require.NoError(t, err)
		return n
	}
	calls := corpusCalls(t)
	run := func(rounds int) {
		c := s.client(options3)
		defer c.Close() // the server keeps up to 48 KiB for a client, now and then
		for range rounds {
			p := c.Pipeline()
			for _, words := range calls {
				p.Do(ctx, words...)
			}
			p.Do(ctx, "FLUSHALL")
			_, _ = p.Exec(ctx)
		}
	}
	run(20)
	before := used()
	const rounds = 200
	run(rounds)
	// One leaked string of 16 bytes a round would be 3,200 bytes.
	assert.Less(t, used()-before, rounds*16/2, "bytes after %d rounds", rounds)
}

// corpusCalls returns the calls of all transcripts, with DEL between the cases.
func corpusCalls(t *testing.T) (all [][]any) {
	t.Helper()
	for _, file := range corpus.Files(t, "corpus") {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		cases, err := corpus.Parse(string(text))
		require.NoError(t, err)
		for _, c := range cases {
			all = append(all, []any{"FLUSHDB"})
			for _, step := range c.Steps {
				if step.Call {
					words, err := corpus.Words(step.Text, corpus.Epoch)
					require.NoError(t, err)
					all = append(all, anyOf(words))
				}
			}
		}
	}
	return all
}

// The bounds were measured on Redis 7.0 with a million keys of 13 bytes. With 100,000 keys
// the tables of keys and expiries take 5 bytes a key more.
func TestState_memory(t *testing.T) {
	lasts(t)
	s := start(t, options{})
	for _, c := range []struct {
		name, rate string
		most       int64
	}{
		{"everyday rates", "99 1800 3600", 145 + 5},
		{"slow rates", "99 1 3600", 161 + 5},
		{"the count does not divide the period", "99 7 3600", 161 + 5},
	} {
		require.NoError(t, s.FlushAll(ctx).Err())
		used := func() (n int64) {
			n, err := strconv.ParseInt(s.info("memory", "used_memory"), 10, 64)
			require.NoError(t, err)
			return n
		}
		before := used()
		const keys = 100_000
		for batch := range keys / 1000 {
			p := s.Pipeline()
			for i := range 1000 {
				p.Do(ctx, append([]any{"GO.THROTTLE", fmt.Sprintf("user:%08d", batch*1000+i)}, fields(c.rate)...)...)
			}
			_, err := p.Exec(ctx)
			require.NoError(t, err)
		}
		require.EqualValues(t, keys, s.DBSize(ctx).Val())
		// The server resizes its tables in the background.
		each := int64(0)
		eventually(t, c.name+": bytes a key", func() bool { each = (used() - before) / keys; return each <= c.most })
		t.Logf("%s: %d bytes a key", c.name, each)
	}
}

// A window takes at most 4 KB: with a limit of a million, and under many forced calls, which exceed a small limit. In the
// common pipeline with ZADD a million calls are a million members.
func TestState_memoryOfAWindow(t *testing.T) {
	lasts(t)
	s := start(t, options{})
	for _, call := range []string{"GO.WINDOW a 1000000 2000 4 MS", "GO.WINDOW b 5 2000 3 MS FORCE"} {
		for from := s.now(); s.now()-from < 2_100_000_000; { // more than a period
			p := s.Pipeline()
			for range 1000 {
				p.Do(ctx, fields(call)...)
			}
			_, err := p.Exec(ctx)
			require.NoError(t, err)
		}
		key := call[10:11]
		assert.LessOrEqual(t, s.ZCard(ctx, key).Val(), int64(121), call)
		assert.LessOrEqual(t, s.memory(key), int64(4096), call)
	}
}

// In Valkey 9.1 HPEXPIRE and then COPY make a hash of length 0: COPY leaves out the fields that have
// expired, and the server has not deleted their hash yet. For each command such a hash is a limiter with
// nothing in use, or a key of another kind.
func TestState_emptyHash(t *testing.T) {
	s := start(t, options{})
	if s.Do(ctx, "HPEXPIRE", "absent", 1, "FIELDS", 1, "f").Err() != nil {
		t.Skip("the server has no HPEXPIRE")
	}
	empty := func(key string) bool {
		for i := range 40 {
			s.Del(ctx, "source", key)
			s.HSet(ctx, "source", "f", 1)
			require.NoError(t, s.Do(ctx, "HPEXPIRE", "source", 1+i%5, "FIELDS", 1, "f").Err())
			time.Sleep(time.Duration(2+i%7) * time.Millisecond)
			if s.Copy(ctx, "source", key, 0, true); s.HLen(ctx, key).Val() == 0 && s.Exists(ctx, key).Val() == 1 {
				return true
			}
		}
		return false
	}
	if !empty("k") {
		t.Skip("COPY makes no hash of length 0 here")
	}
	assert.Contains(t, s.ask("GO.INFO k"), "cells:[]")
	for name, c := range samples {
		require.True(t, empty(c.key(name)), name)
		want := c.Sample.First
		switch {
		case name == "GO.INFO":
			continue
		case c.State != commands.KindHash && c.State != commands.KindAbsent:
			want = commands.ErrWrongType.Text()
		}
		assert.Equal(t, want, flat(s.Do(ctx, c.on(name)...).Result()), name)
		if c.writes() && want == c.Sample.First {
			assert.Equal(t, c.Sample.Second, flat(s.Do(ctx, c.on(name)...).Result()), name)
		}
	}
	assert.Equal(t, "0", s.counters()["gothrottle_panics"])
}
