package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/testdata"

	servers "gothrottle/tests/server"
	"gothrottle/throttle"
)

// While the server is stopped or killed each request is answered in time, as its rule says, and decided again afterwards.
func TestServerAway(t *testing.T) {
	s := server(t)
	g := start(t, s.Addr, `
domain: d
http: {rules: [{name: all, rate_limit: {unit: day, requests_per_unit: 5, on_failure: closed}}]}
descriptors:
- {key: open, rate_limit: {unit: day, requests_per_unit: 5}}
- {key: closed, rate_limit: {unit: day, requests_per_unit: 5, on_failure: closed}}
- {key: late, rate_limit: {unit: day, requests_per_unit: 5, on_failure: closed, late: true}}
- {key: local, rate_limit: {unit: day, requests_per_unit: 5, on_failure: local}}
- {key: slot, rate_limit: {concurrency: 5}}
`, "DECISION_TIMEOUT=50ms")
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var calls, late atomic.Int64 // of others meanwhile
	for i := range 32 {
		wg.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				_, err := g.ShouldRateLimit(t.Context(), request("d", fmt.Sprint("open=", i%4+2)))
				calls.Add(1)
				assert.NoError(t, err)
				if time.Since(began) > 500*time.Millisecond {
					late.Add(1)
				}
			}
		})
	}
	kill := func() error { s.Kill(); return nil }
	for i, step := range [][2]func() error{{s.Pause, s.Resume}, {kill, func() error { return s.Restart() }}} {
		require.NoError(t, step[0]())
		began := time.Now()
		g.ask(t, "d", slices.Repeat([]string{"slot=1*-1"}, 100)...)
		require.Less(t, time.Since(began), time.Second)
		for _, want := range append([]string{"OVER_LIMIT o5 X0 o1"}, slices.Repeat([]string{"OVER_LIMIT o5 X0 X0"}, 11)...) {
			began := time.Now()
			require.Equal(t, want, g.ask(t, "d", "open=1*4", "closed=1*4", fmt.Sprintf("local=%d*4", i)))
			require.Less(t, time.Since(began), time.Second) // 50 ms, and the machine may be busy
		}
		require.Equal(t, http.StatusTooManyRequests, get(t, g.web+"/check").StatusCode)
		require.Equal(t, "OVER_LIMIT X0 o0", g.ask(t, "d", "late=1*0", "late=2*7")) // a report refuses nobody
		require.NoError(t, step[1]())
		require.Eventually(t, func() bool { return g.ask(t, "d", "closed=2*0") == "OK o5" }, time.Minute, 10*time.Millisecond)
	}
	cancel()
	wg.Wait()
	t.Logf("of %d calls meanwhile %d took more than 500 ms", calls.Load(), late.Load())
	require.LessOrEqual(t, late.Load(), calls.Load()/100) // the machine may be busy
	require.Contains(t, body(t, g.debug+"/metrics"), `gothrottle_gateway_fallbacks_total{policy="local",rule="d.local"}`)
	require.Less(t, strings.Count(g.log(t), "\n"), 20) // on a busy machine the server seems away more often
}

// Whatever the rules ask, a gateway notices that its server is away, and that another one has no module.
func TestProbe(t *testing.T) {
	s := server(t)
	var all []*gateway
	for _, limit := range []string{"concurrency: 5", "unit: day, requests_per_unit: 5, algorithm: gcra, lockout: 1h", "unlimited: true"} {
		all = append(all, start(t, s.Addr, "domain: d\ndescriptors: [{key: a, rate_limit: {"+limit+"}}]"))
	}
	become := func(away string, status int) {
		for _, g := range all {
			require.EventuallyWithT(t, func(c *assert.CollectT) {
				assert.Contains(c, body(t, g.debug+"/metrics"), "\ngothrottle_gateway_server_away "+away+"\n")
				assert.Equal(c, status, get(t, g.web+"/healthcheck").StatusCode)
			}, servers.Patience, 50*time.Millisecond, readFile(t, g.folder+"/rules.yaml"))
		}
	}
	become("0", 200)
	require.Equal(t, "[] <nil>", fmt.Sprint(s.Do("KEYS", "*")))
	s.Kill()
	become("1", 200)
	s.Bare = true
	require.NoError(t, s.Restart())
	become("1", 503)
	s.Kill()
	s.Bare = false
	require.NoError(t, s.Restart())
	become("0", 200)
}

// A cost that the server refuses is the report's mistake.
func TestSettle_refused(t *testing.T) {
	g := start(t, server(t).Addr, "domain: d\nhttp: {trusted_proxies: [127.0.0.1], rules: [{name: a, cost: {header: X-Tokens}, "+
		"rate_limit: {unit: day, algorithm: gcra, requests_per_unit: 10000}}]}")
	r := send(t, "POST", g.web+"/settle", "X-Tokens", "1000000000000")
	text, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.Equal(t, 400, r.StatusCode)
	require.Contains(t, string(text), "100 years")
	require.Equal(t, 204, send(t, "POST", g.web+"/settle", "X-Tokens", "1").StatusCode)
}

// A program that is asked to end answers a request under way, and sends its traces. Until then it is healthy. It takes the
// socket of a program that was killed, and keeps its own when another one starts. With a server that has no module none
// starts.
func TestStop(t *testing.T) {
	spans := make(chan string, 9)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		spans <- r.URL.Path + string(text)
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	s, socket := server(t), t.TempDir()+"/socket"
	require.NoError(t, syscall.Mknod(socket, syscall.S_IFSOCK|0o600, 0))
	g := start(t, s.Addr, ours, "DECISION_TIMEOUT=2s", "GRPC_UDS="+socket, "TRACING_ENABLED=true")
	r, err := healthpb.NewHealthClient(g.conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: "ratelimit"})
	require.NoError(t, err)
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, r.Status)
	require.Equal(t, "OK\n", body(t, g.web+"/healthcheck"))
	proxied, err := http.NewRequest(http.MethodGet, g.web+"/check", nil)
	require.NoError(t, err)
	proxied.Header.Set("traceparent", fmt.Sprintf("00-%x-%x-01", "abcdefghijklmnop", "qrstuvwx"))
	answer, err := http.DefaultClient.Do(proxied)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	env := environment(s.Addr)
	env["CONFIG"], env["GRPC_UDS"] = g.folder+"/rules.yaml", socket
	short, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	another := func() error { return run(short, env, io.Discard) }
	require.ErrorIs(t, another(), syscall.EADDRINUSE)
	env["REDIS_URL"] = servers.New(t, servers.Options{Bare: true}).Addr
	require.ErrorIs(t, another(), throttle.ErrNoModule)
	require.NoError(t, s.Pause())
	ended := make(chan error)
	go func() {
		_, err := g.ShouldRateLimit(context.Background(), request("d", "fixed=a"))
		ended <- err
	}()
	idle, err := net.Dial("tcp", strings.TrimPrefix(g.web, "http://")) // without a request
	require.NoError(t, err)
	time.Sleep(300 * time.Millisecond) // the request is under way
	go func() { _ = g.stop() }()
	require.Eventually(t, func() bool {
		_, err := net.Dial("unix", socket)
		return err != nil
	}, 3*time.Second, 10*time.Millisecond)
	_ = idle.Close()
	require.NoError(t, g.stop())
	require.NoError(t, <-ended)
	sent := ""
	for range len(spans) {
		sent += <-spans
	}
	for _, name := range []string{"/v1/traces", "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", "GET /check", "abcdefghijklmnop"} {
		require.Contains(t, sent, name)
	}
}

// With SCRIPT_MODE a server without the module gives the same decisions, and the health check says so.
func TestScriptMode(t *testing.T) {
	s := server(t)
	module := start(t, s.Addr, ours)
	script := start(t, servers.New(t, servers.Options{Bare: true}).Addr, ours, "SCRIPT_MODE=true")
	require.Equal(t, "OK, by the script\n", body(t, script.web+"/healthcheck"))
	require.Contains(t, script.log(t), `msg="throttle: the script decides"`)
	for range 4 {
		for _, asked := range []string{"fixed=a*2", "late=a*2", "refuse=a*2", "sliding=a*2", "tokens=a*2", "gcra=a", "lock=a", "none=a", "fixed=a*-1"} {
			require.Equal(t, module.ask(t, "d", asked), script.ask(t, "d", asked), asked)
		}
		both := []string{"fixed=b", "gcra=b"}
		require.Equal(t, module.ask(t, "d", both...), script.ask(t, "d", both...))
	}
}

// The certificate of both sides, which is that of gRPC's own tests and not of the name 127.0.0.1.
var cert, key, ca = testdata.Path("server1.pem"), testdata.Path("server1.key"), testdata.Path("ca.pem")

// The server is found, and decides, if the settings say how to reach it.
func TestRedisSettings(t *testing.T) {
	servers.Needed(t, "test-gateway")
	port := servers.FreePort()
	s := servers.New(t, servers.Options{Args: []string{"--requirepass", "pw", "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", ca}})
	sentinel := servers.New(t, servers.Options{Sentinel: []string{"requirepass spw", "sentinel monitor name 127.0.0.1 " + s.Port + " 1", "sentinel auth-pass name pw"}})
	places := strings.NewReplacer("$PLAIN", s.Addr, "$SENTINEL", sentinel.Addr, "$TLS", "REDIS_URL=127.0.0.1:"+port+" REDIS_AUTH=pw REDIS_TLS=true", "$CA",
		"REDIS_TLS_CACERT="+ca, "$CERT", "REDIS_TLS_CLIENT_CERT="+cert+" REDIS_TLS_CLIENT_KEY="+key, "$ANY", "REDIS_TLS_SKIP_HOSTNAME_VERIFICATION=true")
	for settings, right := range map[string]bool{
		"REDIS_URL=$PLAIN REDIS_AUTH=pw":                                                             true,
		"REDIS_URL=$PLAIN REDIS_AUTH=default:pw":                                                     true,
		"REDIS_URL=redis://default:pw@$PLAIN":                                                        true,
		"REDIS_URL=name,$SENTINEL REDIS_TYPE=sentinel REDIS_AUTH=pw REDIS_SENTINEL_AUTH=spw":         true,
		"REDIS_URL=name,$SENTINEL REDIS_TYPE=sentinel REDIS_AUTH=pw REDIS_SENTINEL_AUTH=default:spw": true,
		"REDIS_URL=name,redis://:spw@$SENTINEL REDIS_TYPE=sentinel REDIS_AUTH=pw":                    true,
		"$TLS $CA $CERT $ANY": true,
		"$TLS $CA $CERT":      false,
		"$TLS $CA $ANY":       false,
		"$TLS $CERT $ANY":     false,
	} {
		g := start(t, "", ours, strings.Fields(places.Replace(settings))...)
		assert.Equal(t, right, g.ask(t, "d", "fixed=a") != "OK o5", settings)
		require.NoError(t, g.stop())
	}
}

// The gRPC server takes clients that have a certificate of the CA with the right name, and no others.
func TestMutualTLS(t *testing.T) {
	pair, err := tls.LoadX509KeyPair(cert, key)
	require.NoError(t, err)
	roots := (&settings{env: map[string]string{"CA": ca}}).pool("CA")
	ask := func(g *gateway, pairs ...tls.Certificate) error {
		c := credentials.NewTLS(&tls.Config{RootCAs: roots, ServerName: "x.test.youtube.com", Certificates: pairs})
		_, err := pb.NewRateLimitServiceClient(dial(t, g.grpc, c)).ShouldRateLimit(t.Context(), request("d", "fixed=a"))
		return err
	}
	s := server(t)
	for name, right := range map[string]bool{"waterzooi.test.google.be": true, "other.example": false} {
		g := start(t, s.Addr, ours, "GRPC_SERVER_USE_TLS=true", "GRPC_SERVER_TLS_CERT="+cert,
			"GRPC_SERVER_TLS_KEY="+key, "GRPC_CLIENT_TLS_CACERT="+ca, "GRPC_CLIENT_TLS_SAN="+name)
		require.Equal(t, right, ask(g, pair) == nil)
		require.Error(t, ask(g))
	}
}
