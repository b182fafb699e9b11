package tests

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"gothrottle/tests/corpus"
	servers "gothrottle/tests/server"
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
	data    string   // an existing folder or volume, to start on the data of another server
	net     string   // Docker network (containers only)
	clock   *clock   // the wall clock of the server (local servers only)
	cluster bool     // a node of a cluster (local servers only)
}

// server is one running server. The end of the test ends the server.
type server struct {
	t    testing.TB
	addr string
	data string // its folder or volume
	run  *servers.Server
	*redis.Client
}

// launch returns the options as package server has them.
func (o options) launch() servers.Options {
	l := servers.Options{Program: env.server, Module: env.module, Bare: o.bare, ModuleArgs: o.modArgs, Config: o.config, Folder: o.data, Cluster: o.cluster}
	if o.module != "" {
		l.Module = o.module
	}
	// With the load argument module-name the configuration has another name.
	if !o.bare && !slices.Contains(o.modArgs, "redis-cell") {
		l.Args = []string{"--gothrottle.policies", corpus.SamplePolicies}
	}
	l.Args = append(l.Args, o.args...)
	if o.clock != nil {
		l.Clock = o.clock.Clock
	}
	if l.Docker = env.docker; l.Docker != nil {
		l.Network, l.Image = o.net, env.image
		if o.bare {
			l.Image = env.baseImage
		}
	}
	return l
}

// start starts a server and returns when the server answers.
func start(t testing.TB, o options) *server {
	t.Helper()
	if env.docker != nil && o.data == "" {
		o.data = newVolume(t)
	}
	return connect(t, servers.New(t, o.launch()))
}

// connect returns a server that runs, with a client.
func connect(t testing.TB, run *servers.Server) *server {
	s := &server{t: t, addr: run.Addr, data: run.Folder, run: run}
	s.Client = s.client(options3)
	return s
}

// refuse starts a server, waits until it ends by itself and returns its log.
func refuse(t testing.TB, o options) string {
	t.Helper()
	log, err := servers.Refused(o.launch())
	require.NoError(t, err)
	return log
}

func (s *server) log() string  { return s.run.Log() }
func (s *server) exited() bool { return s.run.Exited() }
func (s *server) terminate()   { s.run.Terminate() } // SIGTERM, and wait for the end
func (s *server) kill()        { s.run.Kill() }      // SIGKILL, and wait for the end

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
	c := s.run.Client(func(o *redis.Options) { o.Protocol, o.PoolSize = protocol, 100 })
	s.t.Cleanup(func() { c.Close() })
	return c
}

// follow makes s a replica of master and waits until s has received everything.
func (s *server) follow(master *server) {
	s.t.Helper()
	require.NoError(s.t, s.run.Follow(master.run))
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
	return servers.Field(text, field)
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
