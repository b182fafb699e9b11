package tests

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/require"

	"gothrottle/commands"
)

// options says how a server differs from the default. The default server has a free port and
// an empty folder, saves nothing and loads the module without arguments and with the policies
// of the samples.
type options struct {
	bare    bool     // without the module
	module  string   // another module file (local servers only)
	modArgs []string // load arguments of the module
	args    []string // more arguments of the server
	config  string   // path of a configuration file (local servers only)
	data    *data    // an existing folder, to start on the data of another server
	net     string   // Docker network (containers only)
	clock   *clock   // the wall clock of the server (local servers only)
}

// server is one running server. The end of the test ends the server.
type server struct {
	t    testing.TB
	addr string
	data *data
	instance
	*redis.Client
}

// instance is a running server: a process of this machine or a container.
type instance interface {
	log() string
	exited() bool           // the server has ended
	terminate()             // SIGTERM, and wait for the end
	kill()                  // SIGKILL, and wait for the end
	peer() (string, string) // IP or name, and port, under which another server reaches this one
}

// launch starts a server without waiting until it answers.
func launch(t testing.TB, o options) (i instance, addr string) {
	t.Helper()
	if o.data == nil {
		o.data = newData(t)
	}
	args := append([]string{"--save", "", "--dir", o.data.inside, "--repl-diskless-sync-delay", "0"}, o.args...)
	if !o.bare {
		module := env.module
		if o.module != "" {
			module = o.module
		}
		args = append(append(args, "--loadmodule", module), o.modArgs...)
		// With the load argument module-name the configuration has another name.
		if !slices.Contains(o.modArgs, "redis-cell") {
			args = append(args, "--gothrottle.policies", commands.SamplePolicies())
		}
	}
	if env.image != "" {
		return launchContainer(t, o, args)
	}
	return launchProcess(t, o, args)
}

// start starts a server and returns when the server answers.
func start(t testing.TB, o options) *server {
	t.Helper()
	if o.data == nil {
		o.data = newData(t)
	}
	i, addr := launch(t, o)
	s := &server{t: t, addr: addr, data: o.data, instance: i}
	s.Client = s.client(options3)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of the server at %s:\n%s", s.addr, tail(i.log(), 60))
		}
	})
	eventually(t, "the server answers", func() bool {
		if i.exited() {
			t.Fatal("the server did not start")
		}
		// go-redis would log every failed attempt, so Dial finds out first whether the port is
		// open.
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return false
		}
		conn.Close()
		return s.Ping(ctx).Err() == nil
	})
	return s
}

// refuse starts a server, waits until it ends by itself and returns its log.
func refuse(t testing.TB, o options) string {
	t.Helper()
	i, _ := launch(t, o)
	eventually(t, "the server ends by itself", i.exited)
	return i.log()
}

// restart ends the server with SIGTERM and starts a server with o on the same data.
func (s *server) restart(o options) *server {
	s.t.Helper()
	s.terminate()
	require.True(s.t, s.exited())
	o.data = s.data
	return start(s.t, o)
}

// options3 and options2 are the versions of the protocol.
const (
	options3 = 3
	options2 = 2
)

// client returns a new client. The client never repeats a call.
func (s *server) client(protocol int) *redis.Client {
	c := redis.NewClient(&redis.Options{
		Addr: s.addr, Protocol: protocol, MaxRetries: -1, DisableIdentity: true, DialerRetries: 1,
		ReadTimeout: patience, WriteTimeout: patience, PoolSize: 100,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	s.t.Cleanup(func() { c.Close() })
	return c
}

// follow makes s a replica of master and waits until s has received everything.
func (s *server) follow(master *server) {
	s.t.Helper()
	ip, port := master.peer()
	require.NoError(s.t, s.SlaveOf(ctx, ip, port).Err())
	inStep(s.t, master, s)
}

// startReplica starts a server and a replica of it.
func startReplica(t testing.TB) (master, replica *server) {
	t.Helper()
	net := newNetwork(t)
	master, replica = start(t, options{net: net}), start(t, options{net: net})
	replica.follow(master)
	return master, replica
}

// info returns one field of an INFO section, "" if the field is absent.
func (s *server) info(section, field string) string {
	s.t.Helper()
	text, err := s.Info(ctx, section).Result()
	require.NoError(s.t, err)
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// counters returns the fields of the module's section of INFO.
func (s *server) counters() map[string]string {
	s.t.Helper()
	all := map[string]string{}
	for line := range strings.Lines(s.Info(ctx, "gothrottle").Val()) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			all[name] = value
		}
	}
	return all
}

// since says whether the server has the features of Redis major.minor. Valkey reports Redis
// 7.2.4, so since says false for all that is newer.
func (s *server) since(major, minor int) bool {
	var a, b int
	version := s.info("server", "redis_version")
	_, err := fmt.Sscanf(version, "%d.%d", &a, &b)
	require.NoError(s.t, err, version)
	return a > major || a == major && b >= minor
}

// now returns the server's clock in ns.
func (s *server) now() int64 {
	s.t.Helper()
	now, err := s.Time(ctx).Result()
	require.NoError(s.t, err)
	return now.UnixNano()
}

// throttle calls GO.THROTTLE and returns the integers of the reply. An error fails the test.
func (s *server) throttle(words ...any) []int64 {
	s.t.Helper()
	return ints(s.t, s.Do(ctx, append([]any{"GO.THROTTLE"}, words...)...))
}

// ints returns a reply that is an array of integers. Anything else fails the test.
func ints(t testing.TB, c *redis.Cmd) []int64 {
	t.Helper()
	v, err := c.Int64Slice()
	require.NoError(t, err, c.String())
	return v
}

// tail returns the last n lines of text.
func tail(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
