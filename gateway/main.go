// Gothrottle-gateway is a rate limit service over Redis or Valkey with gothrottle: for Envoy over gRPC, and for nginx,
// Caddy, Traefik and HAProxy over HTTP. Its settings come from the environment, its rules from YAML files. It keeps no
// state that counts, so any number of them may run. docs/gateway.md is its page.
//
// Its layers, from the top: main has the settings, and puts changed rules into force; serve answers over gRPC and HTTP;
// engine decides; rules reads files, and finds the limits of a request.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"time"
	_ "time/tzdata" // for time_zone: the image has no files

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"gothrottle/gateway/internal/engine"
	"gothrottle/gateway/internal/rules"
	"gothrottle/gateway/internal/serve"
)

//go:generate sh -c "go run . schema >../deploy/gateway/rules.schema.json"

func main() {
	if status, asked := command(os.Args[1:], os.Getenv, os.Stdout); asked {
		os.Exit(status)
	}
	if os.Getenv("GOGC") == "" { // the heap is so small that it would be collected dozens of times per second
		debug.SetGCPercent(400)
	}
	signal.Ignore(syscall.SIGHUP) // sent to reload rules, which happens each second anyway
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "gothrottle-gateway:", err)
		os.Exit(1)
	}
}

// run serves until the context ends. env returns the text of a setting.
func run(ctx context.Context, env func(name string) string, out io.Writer) error {
	set, err := readSettings(env)
	if err != nil {
		return err
	}
	p, err := newProgram(set, out)
	if err != nil {
		return err
	}
	defer p.close()
	if err := p.begin(ctx); ctx.Err() != nil {
		return nil
	} else if err != nil {
		return err
	}
	if set.tracing {
		end, err := serve.Trace(ctx)
		if err != nil {
			return err
		}
		defer end()
	}
	return p.listen(ctx)
}

// newProgram makes a gateway without rules. The caller closes it.
func newProgram(set *settings, out io.Writer) (*program, error) {
	o := &slog.HandlerOptions{Level: set.logLevel}
	if set.log = slog.New(slog.NewTextHandler(out, o)); set.env["LOG_FORMAT"] == "json" {
		set.log = slog.New(slog.NewJSONHandler(out, o))
	}
	for _, name := range set.unused {
		set.log.Warn("a setting has no effect: see docs/gateway.md", "name", name)
	}
	logging.Disable() // it has a line for each connection that fails; package throttle logs once that the server is unavailable
	rdb := redis.NewUniversalClient(set.redis)
	e, err := engine.New(rdb, set.engine, set.log)
	if err != nil {
		_ = rdb.Close()
		return nil, err
	}
	p := &program{settings: set, rdb: rdb, decides: e, answers: serve.New(set.serve, e)}
	rdb.AddHook(engine.Clock(p.answers.ServerTook))
	return p, nil
}

// close gives the units of budgets back, and ends the connections to the server.
func (p *program) close() {
	_ = p.decides.Remote.Close()
	_ = p.rdb.Close()
}

// begin puts the first rules into force, and returns why the server refuses this program: it lacks the module, say, or the
// password is wrong. While the server is unavailable, on_failure decides.
func (p *program) begin(ctx context.Context) error {
	if err := p.firstRules(ctx); err != nil {
		return err
	}
	err := p.decides.Remote.Check(ctx)
	if err == nil {
		err = p.decides.Probe(ctx)
	}
	if engine.Refuses(err) {
		return fmt.Errorf("the server %s refuses the gateway: %w", p.redis.Addrs, err)
	}
	p.note(err)
	return nil
}

// webServer ends connections of clients that send or read slowly. Proxies keep idle ones for two minutes at most, and ask again
// over another one if this one ends while they use it.
func webServer(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 5 * time.Minute, MaxHeaderBytes: 64 << 10}
}

// listen opens the listeners and serves until the context ends. Then it waits up to 10 s for requests under way.
func (p *program) listen(ctx context.Context) error {
	server := p.grpcServer()
	forClients, forOperators, forPrometheus := p.answers.Handlers()
	web, debugWeb, metrics := webServer(forClients), webServer(forOperators), webServer(forPrometheus)
	if p.tracing {
		web.Handler = otelhttp.NewHandler(forClients, "", otelhttp.WithFilter(func(r *http.Request) bool { return r.URL.Path != "/healthcheck" }))
	}
	type listener struct {
		address string
		serve   func(net.Listener) error
	}
	all := []listener{{p.httpAt, web.Serve}, {p.debugAt, debugWeb.Serve}, {p.grpcAt, server.Serve}}
	if p.on("USE_PROMETHEUS") {
		all = append(all, listener{p.env["PROMETHEUS_ADDR"], metrics.Serve})
	}
	failed := make(chan error, len(all))
	for _, at := range all {
		network := "tcp"
		if at.address == p.env["GRPC_UDS"] {
			network = "unix"
			if conn, err := net.Dial(network, at.address); err == nil { // another program serves there
				_ = conn.Close()
			} else if file, wrong := os.Stat(at.address); wrong == nil && file.Mode().Type() == os.ModeSocket && errors.Is(err, syscall.ECONNREFUSED) {
				_ = os.Remove(at.address) // a killed program has left it
			}
		}
		l, err := net.Listen(network, at.address)
		if err != nil {
			return fmt.Errorf("%w: choose another PORT, GRPC_PORT, GRPC_UDS, DEBUG_PORT or PROMETHEUS_ADDR", err)
		}
		defer l.Close()
		go func() { failed <- at.serve(l) }()
	}
	go p.watch(ctx, time.Second)
	p.log.Info("ready", "grpc", p.grpcAt, "http", p.httpAt, "debug", p.debugAt, "rules", p.config)
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	p.answers.Health.Shutdown()
	p.log.Info("shutting down: waiting up to 10 s for in-flight requests")
	last, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	context.AfterFunc(last, server.Stop)
	var ended sync.WaitGroup
	ended.Go(func() { _ = web.Shutdown(last) }) // it waits for connections without a request, too
	server.GracefulStop()
	ended.Wait()
	return errors.Join(err, debugWeb.Close(), metrics.Close())
}

func (p *program) grpcServer() *grpc.Server {
	o := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(serve.MaxMessage),
		grpc.NumStreamWorkers(256), // their stacks have grown. Calls beyond that get goroutines; more workers cost more
		// Windows of a fixed size need no pings that measure the connection.
		grpc.StaticStreamWindowSize(256 << 10), grpc.StaticConnWindowSize(1 << 20),
		grpc.ConnectionTimeout(10 * time.Second), // the end waits for connections without a greeting, too
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: p.maxAge, MaxConnectionAgeGrace: p.grace, Time: 5 * time.Minute}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
	}
	if p.tracing {
		o = append(o, grpc.StatsHandler(otelgrpc.NewServerHandler()))
	}
	if p.grpcTLS != nil {
		o = append(o, grpc.Creds(credentials.NewTLS(p.grpcTLS)))
	}
	server := grpc.NewServer(o...)
	pb.RegisterRateLimitServiceServer(server, p.answers)
	healthpb.RegisterHealthServer(server, p.answers.Health)
	return server
}

// program is the gateway.
type program struct {
	*settings
	rdb     redis.UniversalClient
	decides *engine.Engine
	answers *serve.Service
	files   []rules.File // that were read last
	version string       // theirs, over xDS
	came    string       // the error with which they came
	refused error        // why these rules aren't in force
	noted   string       // of the server
}

// firstRules puts rules into force. Without FORCE_START_WITHOUT_INITIAL_CONFIG it waits for those that come over xDS, and
// files must be right.
func (p *program) firstRules(ctx context.Context) error {
	if p.xds == nil {
		if err := p.use(rules.Read(p.config)); err != nil && !p.force {
			return err
		}
		return nil
	}
	first, came := context.WithCancel(ctx)
	go p.xds.Receive(ctx, func(version string, files []rules.File, err error) error {
		p.version = version
		if err = p.use(files, err); err == nil {
			came()
		}
		return err
	}, p.answers.Stale, p.log)
	if p.force {
		return nil
	}
	p.log.Info("waiting for the first rules", "server", p.xds.Server)
	<-first.Done()
	return ctx.Err()
}

// use puts the rules of files into force if all are right. It counts and logs a set once, though the set comes again.
func (p *program) use(files []rules.File, err error) error {
	defer func() { p.answers.Stale(p.refused) }()
	if came := fmt.Sprint(p.version, err); came == p.came && slices.Equal(files, p.files) {
		return p.refused
	}
	p.files, p.came = files, fmt.Sprint(p.version, err)
	var set *rules.Set
	if err == nil {
		set, err = rules.Parse(files, p.rules)
	}
	if err == nil {
		set.Version = p.version
		err = p.decides.Load(set)
	}
	p.refused = err
	if p.answers.Loaded(set, err); err != nil {
		rest := "the old ones stay in force"
		if p.answers.Rules.Load().Domains == nil {
			rest = "none are in force"
		}
		p.log.Error("the rules are refused, and "+rest, "error", err)
		return err
	}
	for _, line := range set.Warnings {
		p.log.Warn(line)
	}
	if len(set.HTTP) > 1 {
		p.log.Info("/check asks the http rules of several domains, /check/NAME those of one", "domains", slices.Sorted(maps.Keys(set.HTTP)))
	}
	p.log.Info("rules loaded", "files", len(files), "domains", len(set.Domains), "limits", len(set.Limits), "hash", set.Hash, "version", set.Version)
	return nil
}

// watch compares the files with those that were loaded, and asks the server whether it decides.
func (p *program) watch(ctx context.Context, every time.Duration) {
	for ; ctx.Err() == nil; time.Sleep(every) {
		p.note(p.decides.Probe(ctx))
		if p.xds == nil {
			_ = p.use(rules.Read(p.config))
		}
	}
}

// note notes why the server doesn't decide, nil if it does, and whether rules have come. A gateway that serves stays ready:
// a proxy that takes an unready one for unavailable would admit what on_failure refuses.
func (p *program) note(err error) {
	p.answers.Away(err)
	refuses, now := engine.Refuses(err), ""
	if refuses {
		now = err.Error()
	} else if err != nil {
		now = "unavailable"
	}
	switch {
	case now == p.noted:
	case refuses:
		p.log.Error("the server refuses the gateway: each rule's on_failure decides until that is fixed", "error", err)
	case err != nil:
		p.log.Warn("the server is unavailable: each rule's on_failure decides until it is back", "error", err)
	default:
		p.log.Info("the server decides again")
	}
	p.noted = now
	p.answers.Ready(!p.needsRules || len(p.answers.Rules.Load().Domains) > 0)
}
