package tests

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
)

// ioThreads makes a server read commands on several threads.
var ioThreads = []string{"--io-threads", "4"}

// No transcript has clients that call at the same time. With pipelines they are admitted what fits, and no more: nothing
// drains meanwhile. Afterwards the append-only file holds every effect.
func TestConcurrency(t *testing.T) {
	for _, args := range [][]string{nil, ioThreads} {
		o := options{Args: append([]string{"--appendonly", "yes"}, args...)}
		s := start(t, o)
		for call, want := range map[string]int64{
			"GO.THROTTLE a 999 7 21000001 3":                                                   333, // the count does not divide the period
			"GO.WINDOW b 1000 3600 1 EXACT":                                                    1000,
			"GO.WINDOW c 1000000 3153600000 1000":                                              1000,
			"GO.QUOTA d 1000 3153600000 1 ALIGN 17":                                            1000,
			"GO.ALL e THROTTLE 299 1 3000000 KEY f WINDOW 500 3000000 KEY g QUOTA 400 3000000": 300,
		} {
			assert.Equal(t, want, s.admitted(t, call, want), call)
		}
		before := s.dataset()
		assert.Equal(t, before, s.restart(o).dataset(), "restarted from the append-only file")
	}
}

// admitted returns how often a call is admitted to 32 clients together, which stop when none or more than most are.
func (s *server) admitted(t *testing.T, call string, most int64) int64 {
	t.Helper()
	var admitted atomic.Int64
	var clients sync.WaitGroup
	for range 32 {
		clients.Go(func() {
			for before := int64(-1); before < admitted.Load() && before <= most; {
				before = admitted.Load()
				cmds, err := s.Pipelined(ctx, func(p redis.Pipeliner) error {
					for range 20 {
						p.Do(ctx, fields(call)...)
					}
					return nil
				})
				assert.NoError(t, err, call)
				for _, cmd := range cmds {
					if all, ok := cmd.(*redis.Cmd).Val().([]any); ok && all[0] == int64(0) {
						admitted.Add(1)
					}
				}
			}
		})
	}
	clients.Wait()
	return admitted.Load()
}
