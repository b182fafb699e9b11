package tests

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Two calls at the same instant count twice. In the common pipeline with ZADD they are one
// member and count once.
func TestWindow_everyCallCounts(t *testing.T) {
	s := start(t, options{})
	for _, exact := range []string{"", "EXACT"} {
		for _, limit := range []int64{100, 120, 121, 1000} { // the clock may stand still in scripts and MULTI
			key := fmt.Sprint(limit, exact)
			script := `local n = 0
				for i = 1, ARGV[1] + 50 do
					local r = redis.call('GO.WINDOW', KEYS[1], ARGV[1], 3600, 1, unpack(ARGV, 2))
					if r[1] == 0 then n = n + 1 end
				end
				return n`
			args := append([]any{limit}, fields(exact)...)
			admitted, err := s.Eval(ctx, script, []string{key}, args...).Int64()
			require.NoError(t, err)
			assert.Equal(t, limit, admitted, key)

			p := s.TxPipeline()
			for range limit + 50 {
				p.Do(ctx, append([]any{"GO.WINDOW", "multi" + key, limit, 3600, 1}, fields(exact)...)...)
			}
			cmds, err := p.Exec(ctx)
			require.NoError(t, err)
			for i, cmd := range cmds {
				reply := ints(t, cmd.(*redis.Cmd))
				assert.Equal(t, int64(i)/limit, min(1, reply[0]*2), "%s: call %d", key, i)
				assert.Equal(t, max(0, limit-1-int64(i)), reply[2], "%s: call %d", key, i)
			}
		}
	}
}

// Denied calls leave no trace. The common pipeline records them, so a client that goes on
// calling may never be admitted again.
func TestWindow_deniedCallsLeaveNoTrace(t *testing.T) {
	s := start(t, options{})
	for _, limit := range []int64{3, 500} {
		call := []any{"GO.WINDOW", fmt.Sprint(limit), limit, 1000, limit, "MS"}
		key := call[1].(string)
		require.Equal(t, int64(0), ints(t, s.Do(ctx, call...))[0])
		state, at := s.Dump(ctx, key).Val(), s.expiry(key)
		denied := 0
		eventually(t, "a client that goes on calling is admitted again", func() bool {
			for range 50 {
				if ints(t, s.Do(ctx, call...))[0] == 0 {
					return true
				}
				if denied++; denied%50 == 1 {
					require.Equal(t, state, s.Dump(ctx, key).Val())
					require.Equal(t, at, s.expiry(key))
				}
			}
			return false
		})
		assert.Positive(t, denied, "no call was denied, so the test proves nothing")
	}
}

// A window takes at most 4 KB, also with a limit of a million. In the common pipeline a
// million calls are a million members.
func TestWindow_memory(t *testing.T) {
	lasts(t)
	s := start(t, options{})
	const most, entries = 4096, 121

	// The entries that a minute of traffic would have left.
	now, total, p := s.now()/1000, int64(0), s.Pipeline()
	for i := range int64(115) {
		total += 8000
		p.ZAdd(ctx, "minute", redis.Z{Score: -float64(now - 59_000_000 + i*500_000),
			Member: "\x01" + base36(total) + ":" + base36(8000)})
	}
	for range 20_000 {
		p.Do(ctx, "GO.WINDOW", "minute", 1_000_000, 60, 4)
	}
	cmds, err := p.Exec(ctx)
	require.NoError(t, err)
	reply := ints(t, cmds[len(cmds)-1].(*redis.Cmd))
	assert.Equal(t, int64(0), reply[0])
	assert.LessOrEqual(t, s.ZCard(ctx, "minute").Val(), int64(entries))
	assert.LessOrEqual(t, s.memory("minute"), int64(most))
	t.Logf("60 s / 1,000,000: %d entries, %d bytes", s.ZCard(ctx, "minute").Val(), s.memory("minute"))

	// Real traffic for three windows of 1200 ms. Calls use all 120 parts of a window, unless the machine is busy.
	largest, bytes := int64(0), int64(0)
	for began := s.now(); s.now()-began < 3*1200*1_000_000; {
		p := s.Pipeline()
		for range 20 {
			p.Do(ctx, "GO.WINDOW", "fast", 1_000_000, 1200, 5, "MS")
		}
		_, err := p.Exec(ctx)
		require.NoError(t, err)
		largest, bytes = max(largest, s.ZCard(ctx, "fast").Val()), max(bytes, s.memory("fast"))
	}
	assert.Greater(t, largest, int64(10), "parts of a window")
	assert.LessOrEqual(t, largest, int64(entries))
	assert.LessOrEqual(t, bytes, int64(most))
	t.Logf("1200 ms / 1,000,000: %d entries, %d bytes", largest, bytes)
}

// Check and record are one step. In the common pipeline they are two, so clients that call
// at the same time may exceed the limit.
func TestWindow_manyClientsAreAdmittedExactlyTheLimit(t *testing.T) {
	s := start(t, options{})
	for _, c := range []struct {
		call  string
		limit int64
	}{
		{"GO.WINDOW a 100 3600", 100},
		{"GO.WINDOW b 1000 3600", 1000},
		{"GO.WINDOW c 1000 3600 1 EXACT", 1000},
		{"GO.WINDOW d 1000000 3153600000 1000", 1_000_000},
		{"GO.QUOTA e 1000 3600", 1000},
		{"GO.QUOTA f 1000 3153600000 1 ALIGN 17", 1000},
	} {
		weight := int64(1)
		if c.limit == 1_000_000 {
			weight = 1000
		}
		var admitted atomic.Int64
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				conn := s.Conn()
				defer conn.Close()
				for denied := 0; denied < 3 && admitted.Load()*weight <= 2*c.limit; {
					reply, err := conn.Do(ctx, fields(c.call)...).Int64Slice()
					if !assert.NoError(t, err) {
						return
					}
					if reply[0] == 0 {
						admitted.Add(1)
					} else {
						denied++
					}
				}
			})
		}
		wg.Wait()
		assert.Equal(t, c.limit, admitted.Load()*weight, c.call)
	}
}

// No span of a period has more admitted units than the limit, by the recorded times of the
// calls: under load, with quantities, with and without EXACT.
func TestWindow_neverMoreThanTheLimitInAnySpan(t *testing.T) {
	s := start(t, options{args: []string{"--repl-diskless-sync", "no", "--client-output-buffer-limit", "replica 0 0 0"}})
	for _, limit := range []int64{1, 50, 121, 5000} {
		st := s.replicate()
		const periodMs = 3
		var denied atomic.Int64
		var wg sync.WaitGroup
		key := fmt.Sprint("k", limit)
		for client := range 16 {
			wg.Go(func() {
				random := rand.New(rand.NewPCG(uint64(client), uint64(limit)))
				for range 20 {
					p := s.Pipeline()
					for range 50 {
						words := []any{"GO.WINDOW", key, limit, periodMs, 1 + random.Int64N(max(1, limit/40)), "MS"}
						switch random.IntN(4) {
						case 0:
							words = append(words, "EXACT")
						case 1:
							words = append(words, "UPTO")
						}
						p.Do(ctx, words...)
					}
					cmds, err := p.Exec(ctx)
					assert.NoError(t, err)
					for _, cmd := range cmds {
						reply, _ := cmd.(*redis.Cmd).Int64Slice()
						if len(reply) > 0 {
							denied.Add(reply[0])
						}
					}
				}
			})
		}
		wg.Wait()
		all := admissions(t, st.since())
		used, first := int64(0), 0
		for _, a := range all { // the span (a.at - period, a.at]
			used += a.units
			for all[first].at <= a.at-periodMs*1000 {
				used -= all[first].units
				first++
			}
			require.LessOrEqual(t, used, limit, "%s: units in the period up to %d", key, a.at)
		}
		t.Logf("limit %d: %d admitted, %d denied, over %v", limit, len(all), denied.Load(),
			time.Duration(all[len(all)-1].at-all[0].at)*time.Microsecond)
		assert.Greater(t, len(all), int(min(limit, 20)))
		assert.Positive(t, denied.Load())
		st.w.conn.Close()
	}
}

// A call counts correctly what calls with other parameters wrote.
func TestWindow_changedParameters(t *testing.T) {
	s := startStill(t)
	for _, c := range []struct {
		name  string
		calls []string // a call and its reply, separated by a bar
	}{
		{"the limit raised and lowered", []string{
			"100 3600 100|[0 100 0 -1 3600]",
			"100 3600|[1 100 0 3600 3600]",
			"10000 3600 0|[0 10000 9900 -1 3600]",
			"10000 3600 9900|[0 10000 0 -1 3600]",
			"10000 3600|[1 10000 0 3600 3600]",
			"100 3600 0|[1 100 0 3600 3600]", // more than the limit is in use
			"100 3600 1|[1 100 0 3600 3600]",
			"10000 3600 -9950|[0 10000 9950 -1 3600]",
			"100 3600 0|[0 100 50 -1 3600]",
			"100 3600 51|[1 100 50 3600 3600]",
			"100 3600 50|[0 100 0 -1 3600]",
			"10001 3600 UPTO|[0 10001 9900 -1 3600 1]",
		}},
		{"EXACT on and off", []string{
			"1000 3600 400|[0 1000 600 -1 3600]",
			"1000 3600 100 EXACT|[0 1000 500 -1 3600]",
			"1000 3600 100 EXACT|[0 1000 400 -1 3600]",
			"1000 3600 100|[0 1000 300 -1 3600]",
			"1000 3600 301 EXACT|[1 1000 300 3600 3600]",
			"1000 3600 -250 EXACT|[0 1000 550 -1 3600]",
			"1000 3600 551|[1 1000 550 3600 3600]",
			"1000 3600 550|[0 1000 0 -1 3600]",
			"1000 3600 1 EXACT|[1 1000 0 3600 3600]",
			"120 3600 0|[1 120 0 3600 3600]",
			"1000 3600 -1000|[0 1000 1000 -1 0]",
		}},
		{"the period changed, in s and ms", []string{
			"10 36000 4|[0 10 6 -1 36000]",
			"10 3600 3|[0 10 3 -1 3600]",
			"10 36000 3|[0 10 0 -1 36000]",
			"10 360000 0|[0 10 0 -1 360000]",
			"10 360000 1|[1 10 0 360000 360000]",
			"10 3600 0|[0 10 0 -1 3600]",
			"10 3600 -2|[0 10 2 -1 3600]",
			"10 7200 2|[0 10 0 -1 7200]",
			"10 7200 1|[1 10 0 7200 7200]",
		}},
	} {
		for i, line := range c.calls {
			call, want, _ := strings.Cut(line, "|")
			got := flat(s.Do(ctx, append([]any{"GO.WINDOW", c.name}, fields(call)...)...).Result())
			assert.Equal(t, want, got, "%s: step %d, %s", c.name, i, call)
		}
	}
	s = start(t, options{})
	// With and without MS the window is the same if the period is the same.
	s.must("GO.WINDOW ms 10 3600 4")
	reply := ints(t, s.Do(ctx, fields("GO.WINDOW ms 10 3600000 7 MS")...))
	assert.Equal(t, []int64{1, 10, 6}, reply[:3])
	assert.True(t, reply[3] > 3_590_000 && reply[3] <= 3_600_000, "%v", reply)
	s.must("GO.WINDOW ms 10 3600000 6 MS")
	assert.Equal(t, "[1 10 0 3600 3600]", s.must("GO.WINDOW ms 10 3600"))
	// A call with a shorter period removes older entries. A longer period counts what is left.
	s.must("GO.WINDOW short 10 3600 10")
	eventually(t, "the entry is older than 5 ms", func() bool { return s.must("GO.WINDOW_RO short 10 5 0 MS") == "[0 10 10 -1 0]" })
	assert.Equal(t, "[1 10 0 3600 3600]", s.must("GO.WINDOW short 10 3600"), "a peek removes nothing")
	assert.Regexp(t, `^\[0 10 9 -1 [1-5]\]$`, s.must("GO.WINDOW short 10 5 1 MS"))
	assert.Equal(t, "[0 10 8 -1 3600]", s.must("GO.WINDOW short 10 3600"))
	// After a raised limit, calls share entries, so the number of entries stays small.
	for i := range 3000 {
		s.must(fmt.Sprintf("GO.WINDOW many %d 3153600000 1", []int{100, 10_000}[min(1, i/90)]))
	}
	assert.Equal(t, "[0 10000 7000 -1 3153600000]", s.must("GO.WINDOW_RO many 10000 3153600000 0"))
	assert.LessOrEqual(t, s.ZCard(ctx, "many").Val(), int64(90+2))
}
