package failover

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/require"

	servers "gothrottle/tests/server"
)

var ctx = context.Background()

// server is a process on a host, and a client that watches it from that host.
type server struct {
	*redis.Client
	*host
	t    *testing.T
	addr string
	run  *servers.Server
}

// newServer starts a server on a new host.
func newServer(n *network, name string, o servers.Options) *server {
	n.t.Helper()
	s := &server{host: n.host(name), t: n.t}
	o.Host, o.Inside, o.Args = s.ip, s.inside, append([]string{"--protected-mode", "no"}, o.Args...)
	s.run = servers.New(n.t, o)
	s.addr = s.run.Addr
	s.Client = redis.NewClient(s.plain(s.host))
	n.t.Cleanup(func() { s.Client.Close() })
	return s
}

// plain returns options of a client of this server.
func (s *server) plain(from *host) *redis.Options {
	return &redis.Options{Addr: s.addr, Dialer: from.dial, DialTimeout: callTimeout, ReadTimeout: callTimeout, DialerRetries: 1,
		ContextTimeoutEnabled: true, MaxRetries: -1, DisableIdentity: true, MaintNotificationsConfig: noNotifications}
}

var noNotifications = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}

// replication returns a field of INFO replication, or "" if the server does not answer.
func (s *server) replication(field string) string {
	return servers.Field(s.Info(ctx, "replication").Val(), field)
}

// follows reports whether the server is a replica in step with a master.
func (s *server) follows(master *server) bool {
	return s.replication("role") == "slave" && s.replication("master_host") == master.ip &&
		s.replication("master_link_status") == "up" && s.replication("slave_repl_offset") == master.replication("master_repl_offset")
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	require.NoError(t, servers.Await(what, ok))
}
