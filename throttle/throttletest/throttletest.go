// Package throttletest gives tests a server with gothrottle in their own process. It decides as the module does, because the
// handlers are the module's. The test sets its clock and its faults.
//
// New is enough for what a limiter decides: set the clock with Advance, simulate an outage with Fail. To see what a network
// does to your program, use NewServer and Redis inside a testing/synctest bubble, where an hour takes milliseconds: docs/go.md
// shows a test.
//
// Serve answers programs in other languages on a socket.
package throttletest

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"gothrottle/commands/memory"
	"gothrottle/commands/memory/resp"
	"gothrottle/funnel"
	"gothrottle/throttle"
)

// Server is a server in memory. It is a throttle.Processor itself, which has no network; Redis and Serve have one. Its methods
// may be called concurrently. The zero Server is not usable. Make it inside the bubble, if there is one.
type Server struct {
	server *resp.Server
	calls  atomic.Int64
	ahead  atomic.Int64 // ns by which the clock is ahead of time.Now
	fail   atomic.Pointer[error]
}

// Faults says how a server fails: its fields are Refuse, Lost, Silent, Mute, Slow, Far, NoModule, NoScript, Error, Writes and
// Reply. The zero Faults is a server that works.
type Faults = resp.Faults

const addr = "127.0.0.1:6379"

// NewServer returns a server without keys. Its clock is time.Now, so inside testing/synctest it is the bubble's.
func NewServer() *Server {
	s := &Server{}
	s.server = resp.NewNetwork(resp.Options{Now: s.Now, Ran: func(resp.Run) { s.calls.Add(1) }}).Add(addr)
	return s
}

// New returns a client of a new server, which share one clock. The client is closed when the test ends.
func New(t testing.TB, options ...throttle.Option) (*throttle.Client, *Server) {
	t.Helper()
	s := NewServer()
	c, err := throttle.New(s, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, s
}

// Redis returns a go-redis client with connections in memory. The faults of Change apply to it. When the test ends, the
// client and the server are closed.
func (s *Server) Redis(t testing.TB) *redis.Client {
	rdb := redis.NewClient(&redis.Options{Addr: addr, Dialer: s.server.Dial, ContextTimeoutEnabled: true,
		// In a bubble, time stands still while go-redis holds a lock during I/O, or takes a timer of an earlier bubble.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}, PoolSize: 1000, DialerRetries: 1})
	t.Cleanup(func() {
		_ = rdb.Close()
		s.server.Network.Close()
	})
	return rdb
}

// Serve answers connections to a free port of 127.0.0.1 until the test ends, and returns its address.
func (s *Server) Serve(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.server.Serve(l) }()
	t.Cleanup(func() {
		_ = l.Close()
		s.server.Network.Close()
	})
	return l.Addr().String()
}

// Now returns the time of the server.
func (s *Server) Now() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }

// Advance sets the clock forward, or back if d is negative. Timers do not notice: Wait and leases follow time.Now.
func (s *Server) Advance(d time.Duration) { s.ahead.Add(int64(d)) }

// Fail makes every call end with this error until Fail(nil). An error that isn't a redis.Error is an ErrUnavailable for the
// client, which pauses after 5 of them in a row: after Fail(nil), Advance ends the pause. Clients with a network get a
// redis.Error as the reply; otherwise their connections are closed, and new ones refused.
func (s *Server) Fail(err error) {
	s.fail.Store(&err)
	var reply redis.Error
	isReply := errors.As(err, &reply)
	s.Change(func(f *Faults) {
		*f = Faults{Refuse: err != nil && !isReply}
		if isReply {
			f.Error = reply.Error()
		}
	})
	if err != nil && !isReply {
		s.server.Cut()
	}
}

// Change changes how the server fails for clients with a network.
func (s *Server) Change(f func(*Faults)) { s.server.Change(f) }

// Cut closes all connections, and returns how many.
func (s *Server) Cut() int { return s.server.Cut() }

// SetPolicies sets the policies as gothrottle.policies would have them.
func (s *Server) SetPolicies(text string) error { return s.server.Memory().SetPolicies(text) }

// Delete deletes a key. It reports whether there was one.
func (s *Server) Delete(key string) bool { return s.server.Memory().Delete(key) }

// Keys returns how many keys there are. One with nothing in use may stay for a quarter of its period, or 1 s.
func (s *Server) Keys() int { return s.server.Memory().Len(funnel.Micros(s.Now().UnixMicro())) }

// Calls returns how many commands the server got: over a network, how many limiters' commands it ran.
func (s *Server) Calls() int64 { return s.calls.Load() }

// Process runs a command of gothrottle, or a common one of the server's own, such as DEL: see throttle.Processor.
func (s *Server) Process(ctx context.Context, cmd redis.Cmder) error {
	err := s.process(ctx, cmd)
	cmd.SetErr(err)
	return err
}

func (s *Server) process(ctx context.Context, cmd redis.Cmder) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.calls.Add(1)
	if fail := s.fail.Load(); fail != nil && *fail != nil {
		return *fail
	}
	if args := cmd.Args(); args[0] == "COMMAND" { // throttle.Client.Check
		return memory.SetReply(cmd, []any{[]any{args[len(args)-1]}})
	}
	return s.server.Memory().Process(funnel.Micros(s.Now().UnixMicro()), cmd)
}
