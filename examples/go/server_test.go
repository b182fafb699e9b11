package examples

import (
	"log/slog"
	"testing"

	"github.com/redis/go-redis/v9"

	servers "gothrottle/tests/server"
)

var quiet = slog.New(slog.DiscardHandler)

// startServer starts a server with the module of GOTHROTTLE_MODULE, and returns its address and a client.
func startServer(t *testing.T) (string, *redis.Client) {
	t.Helper()
	return start(t, servers.Options{Args: []string{"--gothrottle.policies", "api THROTTLE 1 1 60s"}})
}

func start(t *testing.T, o servers.Options) (string, *redis.Client) {
	t.Helper()
	servers.Needed(t, "test-examples")
	s := servers.New(t, o)
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = rdb.Close() })
	return s.Addr, rdb
}
