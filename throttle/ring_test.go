package throttle_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/throttle"
)

// newAdmitter listens as a server that admits every call.
func newAdmitter(t *testing.T) string {
	t.Helper()
	return listen(t, func(conn net.Conn) { answer(conn, "*5\r\n:0\r\n:9\r\n:8\r\n:-1\r\n:1\r\n") }).Addr().String()
}

// answer answers what go-redis asks when it connects, and each call of the module by a reply.
func answer(conn net.Conn, reply string) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		switch word := strings.ToUpper(strings.TrimSpace(line)); {
		case word == "COMMAND":
			_, _ = io.WriteString(conn, "*0\r\n")
		case word == "HELLO" || word == "CLIENT":
			_, _ = io.WriteString(conn, "-ERR unknown command\r\n")
		case word == "PING":
			_, _ = io.WriteString(conn, "+PONG\r\n")
		case strings.HasPrefix(word, "GO."):
			_, _ = io.WriteString(conn, reply)
		}
	}
}

// A dead shard of a ring opens no circuit of another one.
func TestRing_deadShard(t *testing.T) {
	alive, dead := newAdmitter(t), newSwallower(t)
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"alive": alive, "dead": dead.Addr().String()},
		ContextTimeoutEnabled: true, HeartbeatFrequency: time.Hour})
	t.Cleanup(func() { _ = ring.Close() })
	var log strings.Builder
	c := newReal(t, ring, throttle.Options{Timeout: 2 * time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	isDead := func(key string) bool {
		shard, err := ring.GetShardClientForKey(key)
		require.NoError(t, err)
		return shard.Options().Addr == dead.Addr().String()
	}
	for n := 0; !strings.Contains(log.String(), "WARN"); n++ {
		require.Less(t, n, 10, "rounds of calls that open no circuit")
		var calls sync.WaitGroup
		for i := range 400 {
			if key := fmt.Sprint(i); isDead(key) {
				calls.Go(func() {
					_, err := c.Allow(background, key, throttle.PerSecond(9))
					assert.ErrorIs(t, err, throttle.ErrUnavailable)
				})
			}
		}
		calls.Wait()
	}
	for i := range 400 {
		if key := fmt.Sprint(i); !isDead(key) {
			_, err := c.Allow(background, key, throttle.PerSecond(9))
			require.NoError(t, err)
		}
	}
}

// All over a ring refuses keys of several hash tags: the shards of the later keys would not be asked.
func TestRing_allNeedsOneHashTag(t *testing.T) {
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}, ContextTimeoutEnabled: true,
		HeartbeatFrequency: time.Hour})
	t.Cleanup(func() { _ = ring.Close() })
	for _, row := range []struct {
		prefix, first, second string
		want                  error
	}{
		{"", "user:1", "org:1", throttle.ErrParams},
		{"", "{1}:user", "{2}:org", throttle.ErrParams},
		{"", "{1}:user", "{1}:org", throttle.ErrUnavailable}, // sent
		{"{app}:", "user:1", "org:1", throttle.ErrUnavailable},
	} {
		c := newReal(t, ring, throttle.Options{KeyPrefix: row.prefix, Logger: quiet})
		limit := throttle.PerSecond(9)
		_, err := c.All(background, throttle.Take{Key: row.first, Limit: limit, N: 1}, throttle.Take{Key: row.second, Limit: limit, N: 1})
		require.ErrorIs(t, err, row.want, "%+v", row)
	}
}
