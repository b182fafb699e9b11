package tests

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/require"
)

// options say how a server differs from the default one: a free port, an empty
// folder of its own, nothing saved, the module loaded without arguments.
type options struct {
	bare    bool     // without the module
	module  string   // another module file (local servers only)
	modArgs []string // load arguments of the module
	args    []string // more arguments of the server
	data    *data    // an existing folder, to restart on what another server left
	net     string   // Docker network (containers only)
}

// server is one running server. It ends with its test.
type server struct {
	t    testing.TB
	addr string
	data *data
	host
	*redis.Client
}

// host is where a server runs: a process of this machine or a container.
type host interface {
	log() string
	exited() bool           // the server has ended
	terminate()             // SIGTERM, and wait for the end
	kill()                  // at once, and wait
	peer() (string, string) // address under which another server reaches it
}

// launch starts a server without waiting until it answers.
func launch(t testing.TB, o options) (h host, addr string) {
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
	}
	if env.image != "" {
		return launchContainer(t, o, args)
	}
	return launchProcess(t, o, args)
}

// start runs a server and returns once it answers.
func start(t testing.TB, o options) *server {
	t.Helper()
	if o.data == nil {
		o.data = newData(t)
	}
	h, addr := launch(t, o)
	s := &server{t: t, addr: addr, data: o.data, host: h}
	s.Client = s.client(options3)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of the server at %s:\n%s", s.addr, tail(h.log(), 60))
		}
	})
	eventually(t, "the server answers", func() bool {
		if h.exited() {
			t.Fatal("the server did not start")
		}
		// A port that is not open yet is no news; go-redis would log every attempt.
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return false
		}
		conn.Close()
		return s.Ping(ctx).Err() == nil
	})
	return s
}

// refuse starts a server that is expected to end by itself and returns its log.
func refuse(t testing.TB, o options) string {
	t.Helper()
	h, _ := launch(t, o)
	eventually(t, "the server gives up", h.exited)
	return h.log()
}

// restart ends the server in good order and starts one with o on the same data.
func (s *server) restart(o options) *server {
	s.t.Helper()
	s.terminate()
	require.True(s.t, s.exited())
	o.data = s.data
	return start(s.t, o)
}

// options3 and options2 select the version of the protocol.
const (
	options3 = 3
	options2 = 2
)

// client opens a client of its own; calls are never repeated behind our back.
func (s *server) client(protocol int) *redis.Client {
	c := redis.NewClient(&redis.Options{
		Addr: s.addr, Protocol: protocol, MaxRetries: -1, DisableIdentity: true, DialerRetries: 1,
		ReadTimeout: patience, WriteTimeout: patience, PoolSize: 100,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	s.t.Cleanup(func() { c.Close() })
	return c
}

// follow makes s a replica of master and waits until it has caught up.
func (s *server) follow(master *server) {
	s.t.Helper()
	ip, port := master.peer()
	require.NoError(s.t, s.SlaveOf(ctx, ip, port).Err())
	inStep(s.t, master, s)
}

// info returns one field of an INFO section, "" if it is not there.
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

// since says whether the server has what Redis has had since major.minor. Valkey
// grew out of 7.2 and has of the later only what noted says.
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

// throttle is a GO.THROTTLE call that must give five integers.
func (s *server) throttle(words ...any) []int64 {
	s.t.Helper()
	return ints(s.t, s.Do(ctx, append([]any{"GO.THROTTLE"}, words...)...))
}

// ints returns a reply that must be an array of integers.
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
