package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/redis/go-redis/v9"

	"gothrottle/funnel"
	"gothrottle/tests/corpus"
	servers "gothrottle/tests/server"
)

var ctx = context.Background()

// server is a process.
type server struct {
	*servers.Server
	name   string
	client *redis.Client
	module funnel.Clock // of the process
}

// replTimeout is the time in seconds after which a silent replication link is closed. The clocks jump. In ms it must fit 31
// bits.
const replTimeout = "2000000"

// start starts a server in a folder that stays.
func (r *run) start(name string, o servers.Options) *server {
	o.Program, o.Folder, o.Clock = *serverFlag, filepath.Join(r.folder, name), r.clock
	must(os.MkdirAll(o.Folder, 0o755))
	o.Args = append([]string{"--repl-timeout", replTimeout, "--enable-debug-command", "yes", "--appendfsync", "always"}, o.Args...)
	run, err := servers.Start(o)
	if err != nil {
		must(fmt.Errorf("the %s: %w", name, err))
	}
	s := &server{Server: run, name: name}
	s.connect()
	return s
}

// restart starts a server that has ended again.
func (s *server) restart(args ...string) {
	must(s.Restart(args...))
	s.module = funnel.Clock{}
	s.connect()
}

// connect replaces the client, all of whose connections are lost.
func (s *server) connect() {
	if s.client != nil {
		s.client.Close()
	}
	s.client = s.Client(func(o *redis.Options) { o.Protocol = 2 })
}

// ask sends one command and returns its reply as text.
func (s *server) ask(words ...any) string { return text(s.client.Do(ctx, words...).Result()) }

// info returns a field of INFO.
func (s *server) info(section, field string) string {
	return servers.Field(s.client.Info(ctx, section).Val(), field)
}

// tail returns the end of the log.
func (s *server) tail() string { return servers.Tail(s.Log(), 15) }

// lost is the reply of a call whose reply did not arrive.
const lost = "(lost)"

// text writes a reply. Errors begin with a minus sign.
func text(v any, err error) string {
	var refused redis.Error
	switch {
	case err == nil, errors.Is(err, redis.Nil):
		return corpus.ReplyText(v)
	case errors.As(err, &refused):
		return "-" + refused.Error()
	}
	return lost
}
