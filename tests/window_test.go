package tests

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// In scripts and MULTI, where the clock stands still, two calls count twice. In the common pipeline with ZADD they are one
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

// MEMORY USAGE: a window takes at most 4 KB, also with a limit of a million. In the common pipeline a
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
}

// Clients call at the same time: check and record are one step. In the common pipeline they are two, so clients that call
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

// Under the load of many clients, no span of a period has more admitted units than the limit, by the recorded times of the
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
