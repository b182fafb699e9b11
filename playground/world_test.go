package main

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	servers "gothrottle/tests/server"
)

const policies = "playground-api THROTTLE 4 5 1s, THROTTLE 29 30 1m; playground-login THROTTLE 4 5 60s LOCKOUT 10s; other THROTTLE 1 1 1s"

// patience is how long a test waits for something that must come. It is long, because machines may be slow.
const patience = time.Minute

// startServer starts a server with the module of GOTHROTTLE_MODULE, and returns its address and a client.
func startServer(t *testing.T, args ...string) (string, *redis.Client) {
	t.Helper()
	servers.Needed(t, "test-playground")
	s := servers.New(t, servers.Options{Args: append([]string{"--gothrottle.top-keys", "100", "--gothrottle.policies", policies}, args...)})
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr, ContextTimeoutEnabled: true, MaxRetries: -1})
	t.Cleanup(func() { _ = rdb.Close() })
	return s.Addr, rdb
}

// startPage serves the page of a server, and returns its address.
func startPage(t *testing.T, addr string, rdb *redis.Client, play bool) (string, *app) {
	t.Helper()
	about, err := settings{addr: addr, play: play}.ask(t.Context(), rdb)
	require.NoError(t, err)
	a := newApp(rdb, about)
	server := httptest.NewServer(guard("", a.handler()))
	t.Cleanup(func() {
		a.close()
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL, a
}

// counts returns the counters of a command.
func counts(t *testing.T, rdb *redis.Client, command string) Counter {
	t.Helper()
	for _, c := range newWatcher(rdb).ask(context.Background()).Commands {
		if c.Name == command {
			return c
		}
	}
	t.Fatalf("INFO has no %s", command)
	return Counter{}
}
