package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"gothrottle/funnel"
	servers "gothrottle/tests/server"
)

var ctx = context.Background()

//go:embed testdata/hostile.c
var hostileSource []byte

// lab is what all servers of a program share.
type lab struct {
	server  string
	version string
	hostile string // a module that changes keys in keyspace events
	folder  string
}

// newLab makes the folder, which the caller removes.
func newLab() (l *lab, err error) {
	l = &lab{}
	if l.server, err = servers.Program(*serverFlag); err != nil {
		return nil, err
	}
	if l.version, err = servers.Version(l.server); err != nil {
		return nil, err
	}
	if l.folder, err = os.MkdirTemp("", "gothrottle-chaos-"); err == nil {
		os.Setenv("TMPDIR", l.folder) // of what package server makes
		l.hostile, err = servers.Library(l.folder, "hostile", hostileSource)
	}
	return l, err
}

func (l *lab) valkey() bool { return strings.HasPrefix(l.version, "Valkey") }

// movesWrongly reports whether the server is Valkey 8.1. If any module listens to events, an event in another database leaves
// the client there: the replicas and the append-only file then hold MOVE for the wrong database.
func (l *lab) movesWrongly() bool { return strings.HasPrefix(l.version, "Valkey server v=8.1.") }

// server is a process.
type server struct {
	*servers.Server
	name   string
	client *redis.Client           // for questions beside the calls
	conns  [numConns]*redis.Client // for calls: see conn
	module funnel.Clock            // of the process
}

// replTimeout is the time in seconds after which a silent replication link is closed. The clocks jump. In ms it must fit 31 bits.
const replTimeout = 2_000_000

// start starts a server in a folder that stays.
func (l *lab) start(name string, o servers.Options) *server {
	must(os.MkdirAll(o.Folder, 0o755))
	o.Program = l.server
	o.Args = append([]string{"--repl-timeout", fmt.Sprint(replTimeout)}, o.Args...)
	run, err := servers.Start(o)
	if err != nil {
		must(fmt.Errorf("the %s: %w", name, err))
	}
	s := &server{Server: run, name: name}
	s.client = s.connect(2)
	return s
}

// end ends a server.
func (s *server) end() {
	s.hangUp()
	s.client.Close()
	s.Close()
	s.Clock.Close()
}

// restart starts a server that has ended again.
func (s *server) restart(args ...string) error {
	s.client.Close()
	s.client, s.module = s.connect(2), funnel.Clock{}
	return s.Restart(args...)
}

// connect returns a client that has one connection.
func (s *server) connect(protocol int) *redis.Client {
	return s.Client(func(o *redis.Options) { o.Protocol, o.PoolSize = protocol, 1 })
}

// numConns is how many clients make calls. Half of them speak RESP3. One of those tracks keys.
const numConns = 4

// conn returns a client, and connects it if need be.
func (s *server) conn(i int) *redis.Client {
	if s.conns[i] == nil {
		s.conns[i] = s.connect(2 + i%2)
		if i == 3 {
			s.conns[i].Do(ctx, "CLIENT", "TRACKING", "ON", "BCAST")
		}
	}
	return s.conns[i]
}

// hangUp closes the clients. They connect again with the next call.
func (s *server) hangUp() {
	for i, c := range s.conns {
		if c != nil {
			c.Close()
		}
		s.conns[i] = nil
	}
}

// ask sends one command and returns its reply as text.
func (s *server) ask(words ...any) string { return replyText(s.client.Do(ctx, words...)) }

// info returns a field of INFO.
func (s *server) info(section, field string) string {
	return servers.Field(s.client.Info(ctx, section).Val(), field)
}

func (s *server) number(section, field string) int64 {
	return number(s.info(section, field))
}

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// tail returns the end of the log.
func (s *server) tail() string { return servers.Tail(s.Log(), 15) }
