package wire

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"gothrottle/commands"
	"gothrottle/script"
)

// newConn returns a Conn that is stopped when the test ends, and logs nothing.
func newConn(t testing.TB, rdb Processor, clock func() time.Time) *Conn {
	if clock == nil {
		clock = time.Now
	}
	c := New(rdb, clock, slog.New(slog.DiscardHandler), false)
	t.Cleanup(c.Stop)
	return c
}

// process is a Processor that is one function.
type process func(ctx context.Context, cmd redis.Cmder) error

func (p process) Process(ctx context.Context, cmd redis.Cmder) error { return p(ctx, cmd) }

// answer says to every command that one unit of ten was taken.
func answer(_ context.Context, cmd redis.Cmder) error {
	cmd.(interface{ SetVal(any) }).SetVal([]any{int64(0)})
	return nil
}

// ask sends one call.
func ask(c *Conn, limit *Timeout, key string) (any, error) {
	return c.Do(context.Background(), limit, nil, "GO.QUOTA", key, 1, 1000)
}

// refusing is a hook of go-redis that refuses the first command of a pipeline, and sends nothing.
type refusing struct{ redis.Hook }

func (refusing) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (refusing) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (refusing) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(_ context.Context, cmds []redis.Cmder) error {
		cmds[0].SetErr(loading)
		return io.EOF
	}
}

// Each command of a pipeline has its own error. One that a hook did not send has the pipeline's.
func TestLane_errorsOfAPipeline(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ContextTimeoutEnabled: true})
	defer rdb.Close()
	rdb.AddHook(refusing{})
	c := newConn(t, rdb, nil)
	batch := make([]*call, 2)
	for i := range batch {
		limit, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		batch[i] = newCall(within{limit, limit, &Timeout{Limit: time.Minute}}, []any{"GO.QUOTA", "k"})
		batch[i].done = make(chan struct{})
	}
	c.lane(&Timeout{Limit: time.Minute}, "k").flush(c, batch)
	<-batch[1].done
	require.ErrorIs(t, batch[0].err, loading)
	require.ErrorIs(t, batch[1].err, io.EOF)
}

// pool is a Processor whose connections are set up within the time limit of a call.
type pool struct{ process }

func (pool) PoolStats() *redis.PoolStats { return nil }

// shards is a Processor with a server for each key.
type shards struct {
	process
	servers map[string]*redis.Client
}

func newShards(t *testing.T, answer process, keys ...string) shards {
	s := shards{answer, map[string]*redis.Client{}}
	for _, key := range keys {
		s.servers[key] = redis.NewClient(&redis.Options{Addr: key})
		t.Cleanup(func() { _ = s.servers[key].Close() })
	}
	return s
}

func (s shards) GetShardClientForKey(key string) (*redis.Client, error) { return s.servers[key], nil }

// reply is an error reply.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

const loading = reply("LOADING")

// After a call that times out connections are set up: once at a time, again after a rest until the server decides, and not for
// a call that began before. If the first one fails, no others are tried.
func TestConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fails error = loading
		var tries atomic.Int64
		var takes time.Duration
		c := newConn(t, pool{func(ctx context.Context, cmd redis.Cmder) error {
			if cmd.Name() == "exists" {
				tries.Add(1)
				select {
				case <-time.After(takes):
					return fails
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			<-ctx.Done()
			return ctx.Err()
		}}, nil)
		limit := &Timeout{Limit: 50 * time.Millisecond}
		ask := func() { _, _ = ask(c, limit, "t:") }
		l := c.lane(limit, "t:")
		for range 2 { // after the first one it rests
			ask()
			synctest.Wait()
			require.EqualValues(t, 1, tries.Load())
		}
		require.Equal(t, 2, l.circuit.failures)
		time.Sleep(3 * shortestRest)
		fails = nil
		go ask()
		time.Sleep(10 * time.Millisecond) // beyond the calls that share a time limit
		ask()
		synctest.Wait()
		require.EqualValues(t, 1+1+laneWidth, tries.Load())
		require.Equal(t, 1, l.circuit.failures)
		takes = connectTimeout - time.Millisecond // for one, and again for the others
		ask()
		time.Sleep(2 * connectTimeout)
		synctest.Wait()
		require.Zero(t, l.circuit.failures)
		takes, fails = 0, loading
		tries.Store(0)
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			ask()
		}
		synctest.Wait()
		require.InDelta(t, 19, tries.Load(), 10, "tries in a minute")
	})
}

// The hash tag of a key is that of the cluster specification.
func TestHashTag(t *testing.T) {
	for key, tag := range map[string]string{"a": "a", "a{b}c": "b", "{b}{c}": "b", "a{}b": "a{}b", "a{}{b}": "a{}{b}", "a{b": "a{b", "{{b}": "{b"} {
		require.Equal(t, tag, HashTag(key), key)
	}
}

// A call that began before the circuit opened, or before it was tried again, makes no pause longer, and does not end it.
func TestCircuit_lateFailures(t *testing.T) {
	var now time.Duration
	c := newConn(t, process(answer), func() time.Time { return time.Unix(0, int64(now)) })
	l := &lane{}
	for now = 1; now <= 20; now++ {
		l.failed(c, 0, time.Hour, io.EOF)
	}
	require.EqualValues(t, circuitFailures, l.circuit.failures)
	require.Equal(t, shortestPause, l.circuit.pause)
	require.False(t, l.admits(now, time.Hour))
	require.True(t, l.admits(now-2*time.Hour, time.Second), "the clock went back")
	now += shortestPause
	require.True(t, l.admits(now, time.Hour))
	require.False(t, l.admits(now+time.Hour, time.Hour), "the trial may last that long")
	l.undecided(now - 1)
	require.False(t, l.admits(now, time.Hour))
	l.undecided(now) // the trial says nothing: the next call may try
	require.True(t, l.admits(now, time.Hour))
	l.failed(c, now, time.Hour, io.EOF)
	require.Equal(t, 2*shortestPause, l.circuit.pause)
	l.works(c)
	for range circuitFailures { // with a success between any two
		l.works(c)
		l.failed(c, now, time.Hour, io.EOF)
		require.True(t, l.admits(now, time.Hour))
	}
}

// Calls whose connections are closed while in use open the circuit after as many as a client may have had idle.
func TestCircuit_closedInUse(t *testing.T) {
	sent := 0
	c := newConn(t, pool{process(func(context.Context, redis.Cmder) error {
		sent++
		return io.EOF
	})}, time.Now)
	for range 2 * mostInUse {
		_, err := c.Do(t.Context(), &Timeout{Limit: time.Hour}, nil, "DEL", "k")
		require.ErrorIs(t, err, ErrUnavailable)
	}
	require.Equal(t, mostInUse+circuitFailures, sent)
}

// A server that stalls for less than two time limits opens no circuit, however many calls fail: a reply comes between.
func TestCircuit_stall(t *testing.T) {
	const limit = 50 * time.Millisecond
	now := time.Duration(0)
	c := newConn(t, process(answer), func() time.Time { return time.Unix(0, int64(now)) })
	for _, replies := range []bool{true, false} {
		l := &lane{}
		for now = limit; now < 2*limit; now += time.Millisecond { // no reply for up to 100 ms
			l.failed(c, now-limit, limit, context.DeadlineExceeded)
			require.True(t, l.admits(now, limit))
		}
		if replies {
			l.works(c)
		}
		l.failed(c, now-limit, limit, context.DeadlineExceeded)
		require.Equal(t, replies, l.admits(now, limit))
	}
}

// The log has one record of an outage and one of its end. It does not report the end while a circuit is open whose keys are
// used. A circuit whose keys nobody uses any more stays open, and does not count.
func TestCircuit_log(t *testing.T) {
	var log strings.Builder
	fails := ""
	server := newShards(t, func(ctx context.Context, cmd redis.Cmder) error {
		if strings.Contains(fails, cmd.Args()[1].(string)[2:]) {
			return io.ErrUnexpectedEOF
		}
		return answer(ctx, cmd)
	}, "t:a", "t:b")
	synctest.Test(t, func(t *testing.T) {
		c := newConn(t, server, nil)
		c.logger = slog.New(slog.NewTextHandler(&log, nil))
		limit := &Timeout{Limit: 50 * time.Millisecond}
		a, b := c.lane(limit, "t:a"), c.lane(limit, "t:b")
		require.NotSame(t, a, b)
		for _, step := range []struct {
			fails, asks  string
			warns, infos int
		}{{"ab", "ab", 1, 0}, {"a", "ab", 1, 0}, {"", "ab", 1, 1}, {"ab", "ab", 2, 1}, {"", "a", 2, 2}, {"a", "a", 3, 2}, {"", "a", 3, 3}} {
			fails = step.fails
			for range 20 {
				for _, key := range step.asks {
					_, _ = ask(c, limit, "t:"+string(key))
				}
				time.Sleep(time.Second)
			}
			require.Equal(t, step.warns, strings.Count(log.String(), "WARN"), log.String())
			require.Equal(t, step.infos, strings.Count(log.String(), "INFO"), log.String())
		}
		require.True(t, b.circuit.open)
	})
}

// Keys of one server share a lane, even if another type embeds the client.
func TestLane_perServer(t *testing.T) {
	one := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	two := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1", "b": "127.0.0.1:2"}, HeartbeatFrequency: time.Hour})
	defer one.Close()
	defer two.Close()
	for rdb, want := range map[Processor]int{one: 1, struct{ *redis.Client }{one}: 1, two: 2, struct{ *redis.Ring }{two}: 2} {
		c := newConn(t, rdb, nil)
		lanes := map[*lane]bool{}
		for i := range 100 {
			lanes[c.lane(&Timeout{}, string(rune('a'+i)))] = true
		}
		require.Len(t, lanes, want, "%T", rdb)
		require.Equal(t, want == 2, c.Sharded())
	}
}

// More callers have gone than a pipeline has commands. The one after them must not wait forever: nothing else asks for it.
func TestLane_manyHaveGone(t *testing.T) {
	l, waits := lane{}, &call{}
	for range maxPipeline + 1 {
		l.queue = append(l.queue, &call{gone: true})
	}
	l.queue = append(l.queue, waits)
	require.Equal(t, []*call{waits}, l.take())
	require.Empty(t, l.take())
	for range maxPipeline + 1 { // and no pipeline has more commands
		l.queue = append(l.queue, &call{})
	}
	require.Len(t, l.take(), maxPipeline)
	require.Len(t, l.take(), 1)
}

// A reply has up to 10^13 ms, which no Duration holds.
func TestReplies_longTimes(t *testing.T) {
	require.Equal(t, time.Duration(1<<63-1), Millis(1e13))
	require.Equal(t, 100*365*24*time.Hour, Millis(100*365*24*3600*1000))
}

// Every error text of the module has a meaning of its own. Only two are outages, and no text that nobody knows is, whatever a
// newer module says. A connection's time-out is the context's.
func TestErrors_ofTheModule(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 10_000 {
		text := "ERR"
		for range 1 + r.IntN(6) {
			text += " " + strings.Fields("the max number of clients LOADING OOM 17 internal clause: 3: 'get' is isn't key too a forked process")[r.IntN(17)]
		}
		if known := hasPrefix(text, outages); !known && errors.Is(meaning(text), ErrUnavailable) {
			t.Errorf("%q is an outage", text)
		}
	}
	require.ErrorIs(t, Classify(os.ErrDeadlineExceeded), context.DeadlineExceeded)
	require.NotErrorIs(t, Classify(redis.ErrClosed), redis.ErrClosed, "go-redis drops nodes of a cluster")
	require.Equal(t, ErrParams, meaning("ERR wrong number of arguments for 'go.all' command"))
	for code := commands.ErrInternal; code <= commands.ErrTopOff; code++ {
		outage := code == commands.ErrInternal || code == commands.ErrForked
		for _, text := range []string{code.Text(), strings.Replace(code.Text(), "ERR ", "ERR clause 31: ", 1)} {
			if got := errors.Is(meaning(text), ErrUnavailable); got != outage && (outage || text == code.Text() || meaning(code.Text()) == ErrParams) {
				t.Errorf("%q: %v", text, meaning(text))
			}
		}
	}
}

// A call that Stop ends says nothing of the server: an open circuit stays open. A circuit counts for the log for 10 s after its
// pause, if nobody tries it.
func TestCircuit_untried(t *testing.T) {
	var now time.Duration
	c := newConn(t, newShards(t, answer, "a", "k"), func() time.Time { return time.Unix(0, int64(now)) })
	limit := &Timeout{Limit: time.Hour}
	for range circuitFailures {
		c.lane(limit, "k").failed(c, now, 0, io.EOF)
	}
	now += longestPause + time.Second
	c.lane(limit, "a").works(c)
	require.True(t, c.away.Load())
	c.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := c.Do(ctx, limit, nil, "GO.QUOTA", "k", 1, 1000) // it would be sent by a goroutine
	require.ErrorIs(t, err, ErrClosed)
	require.True(t, c.lane(limit, "k").circuit.open)
	now += untried
	c.lane(limit, "a").works(c)
	require.False(t, c.away.Load())
}

// Calls that find no script send its text once. A server that never knows it gets no call more than three times. The script
// has no DEL.
func TestScript_isSentOnce(t *testing.T) {
	for _, learns := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			known, sent, texts := false, map[string]int{}, 0
			c := newConn(t, process(func(ctx context.Context, cmd redis.Cmder) error {
				words := cmd.Args()
				key, text := words[3].(string), words[0] == "EVAL"
				require.Equal(t, []any{1, key, "GO.QUOTA", 1, 1000}, words[2:])
				mu.Lock()
				sent[key]++
				if text {
					require.Equal(t, script.Text, words[1])
					texts++
				}
				runs := known || text
				mu.Unlock()
				time.Sleep(time.Duration(key[3]-'a'+1) * time.Millisecond) // when one reply comes, another has sent the text
				if !runs {
					return reply("NOSCRIPT No matching script.")
				}
				mu.Lock()
				defer mu.Unlock()
				known = known || text && learns
				return answer(ctx, cmd)
			}), nil)
			c.sha = "0123"
			var all sync.WaitGroup
			for _, key := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} { // twice as many as a lane sends together
				all.Go(func() {
					_, err := ask(c, &Timeout{Limit: time.Minute}, "{k}"+key)
					require.NoError(t, err)
				})
			}
			all.Wait()
			for key, n := range sent {
				require.LessOrEqual(t, n, 3, key)
			}
			if learns {
				require.Equal(t, 1, texts)
			}
			require.Equal(t, []any{"DEL", "k"}, c.address([]any{"DEL", "k"}, nil))
		})
	}
}
