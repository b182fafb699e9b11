package tests

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
)

// ioThreads makes a server read commands on several threads.
var ioThreads = []string{"--io-threads", "4"}

// together runs f for some clients that call at the same time, each on a connection of its own.
func (s *server) together(clients int, f func(client int, conn *redis.Conn)) {
	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			conn := s.Conn()
			defer conn.Close()
			f(client, conn)
		})
	}
	wg.Wait()
}

// admitsExactly checks that clients that send pipelines at the same time are admitted what fits, and no more. Nothing drains
// meanwhile. The keys begin with a tag.
func (s *server) admitsExactly(t *testing.T, tag string) {
	t.Helper()
	for call, want := range map[string]int64{
		"GO.THROTTLE {}a 999 1 3000000":           1000,
		"GO.THROTTLE {}b 999 7 21000001":          1000, // the count does not divide the period
		"GO.THROTTLE {}c 999 1 3000000 3":         333,
		"GO.WINDOW {}d 100 3600":                  100,
		"GO.WINDOW {}e 1000 3600 1 EXACT":         1000,
		"GO.WINDOW {}f 1000000 3153600000 1000":   1000,
		"GO.QUOTA {}g 1000 3153600000 1 ALIGN 17": 1000,
		"GO.ALL {}h THROTTLE 299 1 3000000 KEY {}i WINDOW 500 3000000 KEY {}j QUOTA 400 3000000": 300,
	} {
		words := fields(strings.ReplaceAll(call, "{}", tag))
		var admitted atomic.Int64
		s.together(32, func(_ int, conn *redis.Conn) {
			for before := int64(-1); before < admitted.Load() && before <= want; {
				before = admitted.Load()
				p := conn.Pipeline()
				for range 20 {
					p.Do(ctx, words...)
				}
				cmds, err := p.Exec(ctx)
				assert.NoError(t, err, call)
				for _, cmd := range cmds {
					if all, ok := cmd.(*redis.Cmd).Val().([]any); ok && all[0] == int64(0) {
						admitted.Add(1)
					}
				}
			}
		})
		assert.Equal(t, want, admitted.Load(), call)
	}
}

// No transcript has clients that call at the same time. Afterwards the append-only file holds every effect.
func TestConcurrency(t *testing.T) {
	for _, args := range [][]string{nil, ioThreads} {
		o := options{Args: append([]string{"--appendonly", "yes"}, args...)}
		s := start(t, o)
		s.admitsExactly(t, "")
		before := s.dataset()
		same(t, before, s.restart(o).dataset(), "restarted from the append-only file")
	}
}
