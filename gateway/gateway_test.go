package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"net/http/httptest"
	"runtime/pprof"
	"testing/synctest"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"gothrottle/commands/memory/resp"
	"gothrottle/gateway/internal/serve"

	servers "gothrottle/tests/server"
)

// gateway is a program that runs in this process.
type gateway struct {
	pb.RateLimitServiceClient
	web, debug, grpc string // addresses
	folder           string // of its rules
	out              *output
	conn             *grpc.ClientConn
	client           *http.Client
	stop             func() error
	*program         // of inside
}

// output is what a program prints.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(line []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(line)
}

// newGateway returns a gateway with a file of rules, and settings that name it.
func newGateway(t *testing.T, rules string, settings map[string]string, more ...string) *gateway {
	g := &gateway{folder: t.TempDir(), out: &output{}}
	settings["CONFIG"] = g.folder
	writeFile(t, g.folder+"/rules.yaml", rules)
	for _, pair := range more {
		name, v, _ := strings.Cut(pair, "=")
		settings[name] = v
	}
	return g
}

// bubble runs f in frozen time. If it hangs, all stacks are printed.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	defer time.AfterFunc(2*time.Minute, func() {
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 2)
		panic("the bubble hangs")
	}).Stop()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(2 * watched) }) // go-redis ends its attempts to connect, and the gateway its watch
		f(t)
	})
}

// watched is how often a gateway in a bubble looks at its files and its server.
const watched = 5 * time.Second

// inside starts a gateway in this bubble, before a server in memory. It is asked without sockets. Without rules it has not
// begun.
func inside(t *testing.T, s *resp.Server, rules string, more ...string) *gateway {
	t.Helper()
	env := map[string]string{"REDIS_URL": s.Addr, "REDIS_POOL_SIZE": "1000"} // go-redis keeps timers of pools that are full
	g := newGateway(t, rules, env, more...)
	set, err := readSettings(of(env))
	require.NoError(t, err)
	set.redis.Dialer, set.redis.MaintNotificationsConfig = s.Dial, &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	g.program, err = newProgram(set, g.out)
	require.NoError(t, err)
	web, debug, _ := g.answers.Handlers()
	g.RateLimitServiceClient, g.web, g.debug = direct{g.answers}, "http://web", "http://debug"
	g.client = &http.Client{Transport: handlers{"web": web, "debug": debug}}
	ctx, cancel := context.WithCancel(t.Context())
	g.stop = sync.OnceValue(func() error { cancel(); g.close(); return nil })
	t.Cleanup(func() { _ = g.stop() })
	if rules != "" {
		require.NoError(t, g.begin(ctx))
		go g.watch(ctx, watched)
		synctest.Wait() // until it has read the files once: else it may read one that the test writes now
	}
	return g
}

// direct calls the service in place of a client of gRPC.
type direct struct{ *serve.Service }

func (d direct) ShouldRateLimit(ctx context.Context, req *pb.RateLimitRequest, _ ...grpc.CallOption) (*pb.RateLimitResponse, error) {
	return d.Service.ShouldRateLimit(ctx, req)
}

// handlers answer requests by their host, as if 127.0.0.1 had sent them.
type handlers map[string]http.Handler

func (h handlers) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if r.RemoteAddr = "127.0.0.1:1"; r.Body == nil {
		r.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	h[r.URL.Host].ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

// inMemory returns a server in memory. In a bubble it has the bubble's clock.
func inMemory(t testing.TB) *resp.Server {
	n := resp.NewNetwork(resp.Options{})
	t.Cleanup(n.Close)
	return n.Add("10.0.0.1:6379")
}

// served returns a server in memory that listens on this machine.
func served(t testing.TB) *resp.Server {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	n := resp.NewNetwork(resp.Options{})
	s := n.Add(l.Addr().String())
	t.Cleanup(func() { n.Close(); _ = l.Close() })
	go func() { _ = s.Serve(l) }()
	return s
}

// environment sends a program to a server, and all its listeners to 127.0.0.1.
func environment(addr string) map[string]string {
	return map[string]string{
		"REDIS_URL": addr, "HOST": "127.0.0.1", "GRPC_HOST": "127.0.0.1", "DEBUG_HOST": "127.0.0.1",
		"PORT": servers.FreePort(), "GRPC_PORT": servers.FreePort(), "DEBUG_PORT": servers.FreePort(),
	}
}

// of looks settings up in a map, in place of the environment.
func of(env map[string]string) func(string) string {
	return func(name string) string { return env[name] }
}

// start runs a gateway with these rules, and with more settings, NAME=value. Decisions have much time, because the machine
// may be busy.
func start(t *testing.T, addr, rules string, more ...string) *gateway {
	t.Helper()
	env := environment(addr)
	env["DECISION_TIMEOUT"] = "20s"
	g := newGateway(t, rules, env, more...)
	g.web, g.debug, g.grpc, g.client = "http://127.0.0.1:"+env["PORT"], "http://127.0.0.1:"+env["DEBUG_PORT"], "127.0.0.1:"+env["GRPC_PORT"], http.DefaultClient
	if socket := env["GRPC_UDS"]; socket != "" {
		g.grpc = "unix:" + socket
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, of(env), g.out) }()
	g.stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() { _ = g.stop() })
	until(t, "a ready gateway", func() bool { return len(ended) > 0 || strings.Contains(g.log(), "msg=ready") })
	require.Empty(t, ended, "it has ended")
	g.conn = dial(t, g.grpc, insecure.NewCredentials())
	g.RateLimitServiceClient = pb.NewRateLimitServiceClient(g.conn)
	return g
}

func (g *gateway) log() string {
	g.out.mu.Lock()
	defer g.out.mu.Unlock()
	return g.out.text.String()
}

// writes writes a file of rules, which is read before it returns.
func (g *gateway) writes(t *testing.T, name, text string) {
	writeFile(t, g.folder+"/"+name, text)
	time.Sleep(watched + time.Second)
}

// until waits for the final state of another program.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	require.NoError(t, servers.Await(what, ok))
}

func readFile(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}

func writeFile(t testing.TB, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
}

func dial(t testing.TB, addr string, c credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(c), grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(1<<30)))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// get asks for a page, with headers that are pairs of a name and a value.
func (g *gateway) get(t *testing.T, url string, headers ...string) *http.Response {
	return g.send(t, http.MethodGet, url, headers...)
}

func (g *gateway) send(t *testing.T, method, url string, headers ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	response, err := g.client.Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

func (g *gateway) page(t *testing.T, url string, headers ...string) string {
	return body(t, g.get(t, url, headers...))
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return string(text)
}

// request is a request with descriptors such as "user=bob,path=/", where "user" is "user=user". They may end with hits:
// "user=bob*3", and "user=bob*-3" gives back. "user=bob>50" brings a limit of 50 per day.
func request(domain string, descriptors ...string) *pb.RateLimitRequest {
	req := &pb.RateLimitRequest{Domain: domain}
	for _, text := range descriptors {
		text, units, _ := strings.Cut(text, ">")
		text, hits, _ := strings.Cut(text, "*")
		d := &common.RateLimitDescriptor{}
		if n, err := strconv.Atoi(units); err == nil {
			d.Limit = &common.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: uint32(n), Unit: typev3.RateLimitUnit_DAY}
		}
		if n, err := strconv.Atoi(hits); err == nil {
			d.IsNegativeHits, d.HitsAddend = n < 0, wrapperspb.UInt64(uint64(max(n, -n)))
		}
		for pair := range strings.SplitSeq(text, ",") {
			k, v, found := strings.Cut(pair, "=")
			if !found {
				v = k
			}
			d.Entries = append(d.Entries, &common.RateLimitDescriptor_Entry{Key: k, Value: v})
		}
		req.Descriptors = append(req.Descriptors, d)
	}
	return req
}

// ask returns the overall code, and of each descriptor "o" or "X" and what is left: "OVER_LIMIT o4 X0".
func (g *gateway) ask(t *testing.T, domain string, descriptors ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), servers.Patience)
	defer cancel()
	response, err := g.ShouldRateLimit(ctx, request(domain, descriptors...))
	require.NoError(t, err)
	text := response.OverallCode.String()
	for _, st := range response.Statuses {
		text += fmt.Sprint(" ", map[bool]string{true: "o", false: "X"}[st.Code == pb.RateLimitResponse_OK], st.LimitRemaining)
	}
	return text
}
