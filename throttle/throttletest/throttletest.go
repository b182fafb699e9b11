// Package throttletest runs the client of package throttle without a server: over the handlers of the module and a map.
// So a test sees the decisions that the module makes. The test sets the clock: see Server.Advance.
package throttletest

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"gothrottle/commands/memory"
	"gothrottle/funnel"
	"gothrottle/throttle"
)

// Server stands in for a client of go-redis. Its methods may be called concurrently. The zero Server is not usable.
type Server struct {
	memory *memory.Server
	calls  atomic.Int64
	ahead  atomic.Int64 // ns by which the clock is ahead of time.Now
	fail   atomic.Pointer[error]
}

// NewServer returns a server without keys. Its clock is time.Now, so inside testing/synctest it is the bubble's.
func NewServer() *Server { return &Server{memory: memory.NewServer()} }

// New returns a client of a new server, which share one clock, unless the options have another. The client is closed when
// the test ends.
func New(t testing.TB, options ...throttle.Option) (*throttle.Client, *Server) {
	t.Helper()
	s := NewServer()
	c, err := throttle.New(s, append([]throttle.Option{throttle.Clock(s.Now)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, s
}

// Now returns the time of the server.
func (s *Server) Now() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }

// Advance sets the clock forward, or back if d is negative. Timers do not notice: Wait and leases follow time.Now.
func (s *Server) Advance(d time.Duration) { s.ahead.Add(int64(d)) }

// Fail makes every call end with this error until Fail(nil). An error that isn't a redis.Error is an ErrUnavailable for the
// client, which pauses after 5 of them in a row: after Fail(nil), Advance ends the pause.
func (s *Server) Fail(err error) { s.fail.Store(&err) }

// SetPolicies sets the policies as gothrottle.policies would have them.
func (s *Server) SetPolicies(text string) error { return s.memory.SetPolicies(text) }

// Delete deletes a key. It reports whether there was one.
func (s *Server) Delete(key string) bool { return s.memory.Delete(key) }

// Keys returns how many keys there are. One with nothing in use may stay for a quarter of its period, or 1 s.
func (s *Server) Keys() int { return s.memory.Len(funnel.Micros(s.Now().UnixMicro())) }

// Calls returns how many commands the server got.
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
	return s.memory.Process(funnel.Micros(s.Now().UnixMicro()), cmd)
}
