package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/testdata"

	"gothrottle/commands/memory/resp"
	servers "gothrottle/tests/server"
	"gothrottle/throttle"
)

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
	s, socket := served(t), t.TempDir()+"/socket"
	require.NoError(t, syscall.Mknod(socket, syscall.S_IFSOCK|0o600, 0))
	g := start(t, s.Addr, ours, "DECISION_TIMEOUT=2s", "GRPC_UDS="+socket, "TRACING_ENABLED=true")
	r, err := healthpb.NewHealthClient(g.conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: "ratelimit"})
	require.NoError(t, err)
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, r.Status)
	require.NoError(t, g.get(t, g.web+"/check", "Traceparent", fmt.Sprintf("00-%x-%x-01", "abcdefghijklmnop", "qrstuvwx")).Body.Close())
	env := environment(s.Addr)
	env["CONFIG"], env["GRPC_UDS"] = g.folder+"/rules.yaml", socket
	short, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	another := func() error { return run(short, of(env), io.Discard) }
	require.ErrorIs(t, another(), syscall.EADDRINUSE)
	bare := served(t)
	bare.Change(func(f *resp.Faults) { f.NoModule = true })
	env["REDIS_URL"] = bare.Addr
	require.ErrorIs(t, another(), throttle.ErrNoModule)
	underWay, ended := make(chan struct{}), make(chan error)
	s.Change(func(f *resp.Faults) {
		f.Far, f.Reply = 500*time.Millisecond, func(words []string) (any, bool) {
			if strings.Contains(words[1], "fixed=a") {
				close(underWay)
			}
			return nil, false
		}
	})
	go func() {
		_, err := g.ShouldRateLimit(context.Background(), request("d", "fixed=a"))
		ended <- err
	}()
	idle, err := net.Dial("tcp", strings.TrimPrefix(g.web, "http://")) // without a request
	require.NoError(t, err)
	<-underWay
	go func() { _ = g.stop() }()
	until(t, "nobody listens", func() bool {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
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
		"$TLS $CA $CERT $ANY":               true,
		"$TLS $CA $CERT":                    false, // the certificate has another name
		"$TLS $CA $ANY":                     false,
		"$TLS $CERT $ANY":                   false,
		"REDIS_URL=$PLAIN REDIS_AUTH=other": false,
		"REDIS_URL=$PLAIN":                  false,
		"REDIS_URL=$PLAIN REDIS_AUTH=pw REDIS_TYPE=cluster":                                   false,
		"REDIS_URL=other,$SENTINEL REDIS_TYPE=sentinel REDIS_AUTH=pw REDIS_SENTINEL_AUTH=spw": false,
		"REDIS_URL=name,$SENTINEL REDIS_TYPE=sentinel REDIS_AUTH=pw REDIS_SENTINEL_AUTH=no":   false,
	} {
		more := strings.Fields(places.Replace(settings))
		if right {
			g := start(t, "", ours, more...)
			assert.NotEqual(t, "OK o5", g.ask(t, "d", "fixed=a"), settings)
			require.NoError(t, g.stop())
			continue
		}
		env := environment("")
		env["DECISION_TIMEOUT"] = "20s"
		newGateway(t, ours, env, more...)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		assert.ErrorContains(t, run(ctx, of(env), io.Discard), "refuses the gateway", settings)
		cancel()
	}
}

// The users of the page have the permissions that the gateway needs.
func TestACL(t *testing.T) {
	servers.Needed(t, "test-gateway")
	users := regexp.MustCompile("(?m)^    (user (gateway|finder) .*)").FindAllStringSubmatch(readFile(t, "../docs/gateway.md"), -1)
	o := servers.Options{Args: strings.Fields("--" + users[0][1])}
	master, nodes := servers.New(t, o), servers.NewCluster(t, 2, 0, o)
	sentinel := servers.New(t, servers.Options{Sentinel: []string{users[1][1], "sentinel monitor name 127.0.0.1 " + master.Port + " 1"}})
	for _, settings := range []string{"REDIS_URL=" + master.Addr, "REDIS_TYPE=CLUSTER REDIS_URL=" + nodes[0].Addr,
		"REDIS_TYPE=SENTINEL REDIS_SENTINEL_AUTH=finder:change-me REDIS_URL=name," + sentinel.Addr} {
		g := start(t, "", "domain: d\nhash_tag: domain\ndescriptors:"+`
- {key: gcra, rate_limit: {unit: day, requests_per_unit: 9, algorithm: gcra}, descriptors: [{key: tenant, share: 1}]}
- {key: sliding, rate_limit: {unit: day, requests_per_unit: 9, algorithm: sliding_window}}
- {key: fixed, rate_limit: {unit: day, requests_per_unit: 9}}
- {key: user, descriptors: [{key: request, rate_limit: {concurrency: 9}}]}`, append(strings.Fields(settings), "REDIS_AUTH=gateway:change-me")...)
		for _, hits := range []string{"*1", "*0", "*-1"} {
			all := strings.Fields(strings.ReplaceAll("gcra=a* sliding=a* fixed=a* user=a,request=b* gcra=a,tenant=b*", "*", hits))
			for _, one := range all {
				g.ask(t, "d", one)
			}
			g.ask(t, "d", all...)
		}
		status, text := g.operates(t, "DELETE", "/explain?rule=*", "fixed=a")
		require.Equal(t, 200, status, text)
	}
	for _, s := range append(nodes, master, sentinel) {
		denied, err := s.Do("ACL", "LOG")
		require.NoError(t, err)
		require.Empty(t, denied)
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
	s := served(t)
	for name, right := range map[string]bool{"waterzooi.test.google.be": true, "other.example": false} {
		g := start(t, s.Addr, ours, "GRPC_SERVER_USE_TLS=true", "GRPC_SERVER_TLS_CERT="+cert,
			"GRPC_SERVER_TLS_KEY="+key, "GRPC_CLIENT_TLS_CACERT="+ca, "GRPC_CLIENT_TLS_SAN="+name)
		require.Equal(t, right, ask(g, pair) == nil)
		require.Error(t, ask(g))
	}
}
