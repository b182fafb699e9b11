// Gothrottle-gateway is a rate limit service over Redis or Valkey with gothrottle: for Envoy over gRPC, and for nginx,
// Caddy, Traefik and HAProxy over HTTP. Its settings come from the environment, its rules from YAML files. It keeps no
// state that counts, so any number of them may run. docs/gateway.md is its page.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"gothrottle/throttle"
)

func main() {
	if os.Getenv("GOGC") == "" { // the heap is so small that it would be collected dozens of times per second
		debug.SetGCPercent(400)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv, os.Environ(), os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "gothrottle-gateway:", err)
		os.Exit(1)
	}
}

// run serves until the context ends.
func run(ctx context.Context, get func(string) string, environment []string, out io.Writer) error {
	set, err := readSettings(get)
	if err != nil {
		return err
	}
	log := newLogger(set, out)
	for _, name := range unused(environment) {
		log.Warn("a setting has no effect: see docs/gateway.md", "name", name)
	}
	logging.Disable() // it has a line for each connection that fails; package throttle logs once that the server is away
	rdb := redis.NewUniversalClient(set.redis)
	defer rdb.Close()
	e, err := newEngine(rdb, set, log)
	if err != nil {
		return err
	}
	defer e.remote.Close() // gives the units of budgets back
	s := &service{settings: set, engine: e, metrics: newMetrics(set.near), log: log, alive: health.NewServer()}
	if err := s.load(); err != nil {
		return err
	}
	switch err := e.remote.Check(ctx); { // of each node
	case errors.Is(err, throttle.ErrNoModule):
		return fmt.Errorf("%w: load the module into %s", err, set.redis.Addrs)
	case err != nil && !refuses(err):
		log.Warn("the server is away: each rule's on_failure decides until it is back", "error", err)
	}
	if s.probe(ctx); s.refusal.Load() != nil {
		return *s.refusal.Load()
	}
	var more []grpc.ServerOption
	if set.tracing {
		option, end, err := tracing(ctx)
		if err != nil {
			return err
		}
		defer end()
		more = append(more, option)
	}
	return s.serve(ctx, more)
}

func newLogger(s *settings, out io.Writer) *slog.Logger {
	var level slog.Level // info
	_ = level.UnmarshalText([]byte(strings.Replace(s.logLevel, "warning", "warn", 1)))
	o := &slog.HandlerOptions{Level: level}
	if s.logJSON {
		return slog.New(slog.NewJSONHandler(out, o))
	}
	return slog.New(slog.NewTextHandler(out, o))
}

// freeSocket removes a socket that no program listens at. A killed program leaves its socket, and no other can listen there.
func freeSocket(path string) {
	file, err := os.Stat(path)
	if err != nil || file.Mode().Type() != os.ModeSocket {
		return
	}
	conn, err := net.Dial("unix", path)
	if err == nil {
		_ = conn.Close()
	} else if errors.Is(err, syscall.ECONNREFUSED) {
		_ = os.Remove(path)
	}
}

// serve opens the three listeners and serves until the context ends. Then requests under way have 10 s to end.
func (s *service) serve(ctx context.Context, more []grpc.ServerOption) error {
	if s.grpcNet == "unix" {
		freeSocket(s.grpcAt)
	}
	server := s.grpcServer(more)
	forClients, forOperators := s.handlers()
	web := &http.Server{Handler: forClients, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
	debugWeb := &http.Server{Handler: forOperators, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 3)
	for _, at := range []struct {
		network, address string
		serve            func(net.Listener) error
	}{{s.grpcNet, s.grpcAt, server.Serve}, {"tcp", s.httpAt, web.Serve}, {"tcp", s.debugAt, debugWeb.Serve}} {
		l, err := net.Listen(at.network, at.address)
		if err != nil {
			return fmt.Errorf("%w: choose another PORT, GRPC_PORT or DEBUG_PORT", err)
		}
		defer l.Close()
		go func() { failed <- at.serve(l) }()
	}
	go s.watch(ctx, time.Second)
	s.log.Info("ready", "grpc", s.grpcAt, "http", s.httpAt, "debug", s.debugAt, "rules", s.config)
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	s.alive.Shutdown()
	s.log.Info("stopping: requests under way have 10 s to end")
	last, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	context.AfterFunc(last, server.Stop)
	var ended sync.WaitGroup
	ended.Go(func() { _ = web.Shutdown(last) }) // it waits for connections without a request, too
	server.GracefulStop()
	ended.Wait()
	_ = debugWeb.Close()
	return err
}

func (s *service) grpcServer(more []grpc.ServerOption) *grpc.Server {
	o := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.NumStreamWorkers(256), // their stacks have grown. Calls beyond that get goroutines; more workers cost more
		// Windows of a fixed size need no pings that measure the connection.
		grpc.StaticStreamWindowSize(256 << 10), grpc.StaticConnWindowSize(1 << 20),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: s.maxAge, MaxConnectionAgeGrace: s.grace}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
	}
	if s.grpcTLS != nil {
		o = append(o, grpc.Creds(credentials.NewTLS(s.grpcTLS)))
	}
	server := grpc.NewServer(append(o, more...)...)
	pb.RegisterRateLimitServiceServer(server, s)
	healthpb.RegisterHealthServer(server, s.alive)
	return server
}

// probe asks the server by each command of the rules, without taking anything, and notes whether it refuses this program: it
// lacks the module, the password or a permission is wrong, or it is a replica. Then the program isn't ready. While the
// server is away, on_failure decides.
func (s *service) probe(ctx context.Context) {
	err, before := s.engine.probe(ctx, s.rules.Load()), s.refusal.Load()
	status := healthpb.HealthCheckResponse_SERVING
	switch {
	case err != nil && refuses(err):
		status = healthpb.HealthCheckResponse_NOT_SERVING
		err = fmt.Errorf("the server %s refuses the gateway, which isn't ready: %w", s.settings.redis.Addrs, err)
		if s.refusal.Store(&err); before == nil {
			s.log.Error(err.Error())
		}
	case before != nil && err != nil:
		return
	case before != nil:
		s.refusal.Store(nil)
		s.log.Info("the server accepts the gateway again")
	}
	s.alive.SetServingStatus("", status)
	s.alive.SetServingStatus("ratelimit", status) // the name that envoyproxy/ratelimit has
}

// refuses says whether an error stays until somebody changes the server or the settings.
func refuses(err error) bool {
	var reply redis.Error
	return errors.Is(err, throttle.ErrNoModule) || errors.As(err, &reply) &&
		slices.Contains([]string{"NOAUTH", "WRONGPASS", "NOPERM", "READONLY"}, strings.Fields(reply.Error() + " -")[0])
}
