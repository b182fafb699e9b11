package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	xdsserver "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	config "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	servers "gothrottle/tests/server"
)

// manager is a management server as Envoy Gateway has it: go-control-plane's snapshots, over mutual TLS.
type manager struct {
	cache.SnapshotCache
	at      string
	refused atomic.Value // the reason of the last refusal
	nacks   atomic.Int64
	server  *grpc.Server
}

func (m *manager) serve(t *testing.T) {
	t.Helper()
	m.SnapshotCache = cache.NewSnapshotCache(false, cache.IDHash{}, nil)
	pair, err := tls.LoadX509KeyPair(cert, key)
	require.NoError(t, err)
	roots := (&settings{env: map[string]string{"CA": ca}}).pool("CA")
	m.server = grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: roots,
		ClientAuth: tls.RequireAndVerifyClientCert})))
	discovery.RegisterAggregatedDiscoveryServiceServer(m.server, xdsserver.NewServer(t.Context(), m, xdsserver.CallbackFuncs{
		StreamOpenFunc: func(ctx context.Context, _ int64, _ string) error {
			if headers, _ := metadata.FromIncomingContext(ctx); len(headers.Get("tenant")) != 1 {
				return errors.New("who?")
			}
			return nil
		},
		StreamRequestFunc: func(_ int64, r *discovery.DiscoveryRequest) error {
			if r.GetErrorDetail() != nil {
				m.refused.Store(r.GetErrorDetail().GetMessage())
				m.nacks.Add(1)
			}
			return nil
		},
	}))
	l, err := net.Listen("tcp", m.at)
	require.NoError(t, err)
	go func() { _ = m.server.Serve(l) }()
	t.Cleanup(m.server.Stop)
}

// send gives rules a version.
func (m *manager) send(t *testing.T, version string, rules ...string) {
	t.Helper()
	var all []types.Resource
	for _, text := range rules {
		var c config.RateLimitConfig
		require.NoError(t, protojson.Unmarshal([]byte(text), &c))
		all = append(all, &c)
	}
	snapshot, err := cache.NewSnapshot(version, map[resource.Type][]types.Resource{resource.RateLimitConfigType: all})
	require.NoError(t, err)
	for _, node := range []string{"envoy-ratelimit", "envoy-ai-gateway-ratelimit"} {
		require.NoError(t, m.SetSnapshot(t.Context(), node, snapshot))
	}
}

// limited is a domain with one limit.
func limited(unit, limit string) string {
	return `{"name": "n", "domain": "d", "descriptors": [{"key": "k", "rate_limit": {"unit": "` + unit + `", "requests_per_unit": ` + limit + `}}]}`
}

func envoyGateway(m *manager) []string {
	return append(manages(m), "CONFIG_TYPE=GRPC_XDS_SOTW", "CONFIG_GRPC_XDS_NODE_ID=envoy-ratelimit")
}

// manages has the settings that lead to a management server.
func manages(m *manager) []string {
	return []string{"CONFIG_GRPC_XDS_SERVER_URL=" + m.at,
		"CONFIG_GRPC_XDS_SERVER_USE_TLS=true", "CONFIG_GRPC_XDS_CLIENT_TLS_CERT=" + cert, "CONFIG_GRPC_XDS_CLIENT_TLS_KEY=" + key,
		"CONFIG_GRPC_XDS_SERVER_TLS_CACERT=" + ca, "CONFIG_GRPC_XDS_SERVER_TLS_SAN=x.test.youtube.com", "XDS_CLIENT_BACKOFF_MAX_INTERVAL=1s",
		"CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS=tenant:a", "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL=50ms"}
}

// A gateway gets its rules from a management server that comes later, refuses wrong ones with the reason, and takes others
// from a server that has restarted and uses an old version's name again.
func TestXDS(t *testing.T) {
	s, m := served(t), &manager{at: "127.0.0.1:" + servers.FreePort()}
	metricsAt := "127.0.0.1:" + servers.FreePort()
	g := start(t, s.Addr, "", append(envoyGateway(m), "FORCE_START_WITHOUT_INITIAL_CONFIG=true",
		"HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED=true", "USE_PROMETHEUS=true", "PROMETHEUS_ADDR="+metricsAt)...)
	_, err := g.ShouldRateLimit(t.Context(), request("d", "k=a"))
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.Equal(t, 503, g.get(t, g.web+"/healthcheck").StatusCode)
	health, err := healthpb.NewHealthClient(g.conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: "ratelimit"})
	require.NoError(t, err)
	require.Equal(t, healthpb.HealthCheckResponse_NOT_SERVING, health.Status)
	becomes := func(version string, left uint32, rules ...string) {
		t.Helper()
		m.send(t, version, rules...)
		until(t, "rules "+version, func() bool {
			r, err := g.ShouldRateLimit(t.Context(), request("d", "k=a*0"))
			return err == nil && r.Statuses[0].LimitRemaining == left
		})
	}
	m.serve(t)
	becomes("1", 5, limited("DAY", "5"))
	answers(t, g.web+"/healthcheck", 200)
	began := time.Now()
	m.send(t, "2", limited("UNKNOWN", "6"))
	until(t, "refusals", func() bool { return m.nacks.Load() > 3 })
	require.LessOrEqual(t, m.nacks.Load(), 3+int64(time.Since(began)/(50*time.Millisecond)), "go-control-plane sends what is refused at once")
	require.Contains(t, m.refused.Load(), "xds:n:1: rule d.k: invalid unit ''")
	require.Contains(t, g.page(t, "http://"+metricsAt+"/metrics"), "gothrottle_gateway_rules_stale 1\n")
	require.Equal(t, "OK o5", g.ask(t, "d", "k=a*0"))
	require.Equal(t, 1, strings.Count(g.log(), "the rules are refused")) // though they come again and again
	m.send(t, "1", limited("DAY", "5"))                                  // which was accepted, so the management server says nothing
	until(t, "the end of the refusal", func() bool {
		return strings.Contains(g.page(t, "http://"+metricsAt+"/metrics"), "gothrottle_gateway_rules_stale 0\n")
	})
	becomes("3", 7, limited("DAY", "7"))
	m.server.Stop()
	m.serve(t)
	becomes("3", 8, limited("DAY", "8"))
	require.Contains(t, g.log(), "the xDS server is unavailable")
	becomes("4", 0)
}

// The rules that Envoy Gateway makes of its policies limit the descriptors that its routes send. testdata/envoy-gateway.json
// has both in the form of its translator's tests.
func TestXDS_envoyGateway(t *testing.T) {
	var data struct {
		Resources []json.RawMessage
		Verdicts  [][3]string
	}
	require.NoError(t, json.Unmarshal([]byte(readFile(t, "testdata/envoy-gateway.json")), &data))
	m := &manager{at: "127.0.0.1:" + servers.FreePort()}
	m.serve(t)
	var rules []string
	for _, one := range data.Resources {
		rules = append(rules, string(one))
	}
	m.send(t, "1", rules...)
	g := start(t, served(t).Addr, "", envoyGateway(m)...) // it waits for rules
	for _, v := range data.Verdicts {
		assert.Equal(t, v[2], g.ask(t, v[0], v[1]), v[1])
	}
	require.Nil(t, m.refused.Load())
	m.send(t, "2", limited("DAY", "5"))
	g = start(t, served(t).Addr, "", append(envoyGateway(m), "DEFAULT_ALGORITHM=sliding_window", "DEFAULT_LATE=other, *.k")...)
	require.Equal(t, []string{"OK o0", "OVER_LIMIT X0"}, []string{g.ask(t, "d", "k=a*9"), g.ask(t, "d", "k=a*0")})
	require.Contains(t, g.page(t, g.debug+"/rules"), `"algorithm":"sliding_window"`)
}

// With the chart's settings for Envoy AI Gateway, its QuotaPolicies limit what its routes send: by default as envoyproxy/ratelimit
// does, and with groups each tenant's own limit, too. testdata/envoy-ai-gateway.json has rules and requests in the form of
// its own tests, and for each request both codes.
func TestXDS_envoyAIGateway(t *testing.T) {
	var data struct {
		Resources   []json.RawMessage
		Descriptors map[string]string
		Verdicts    [][4]string
	}
	require.NoError(t, json.Unmarshal([]byte(readFile(t, "testdata/envoy-ai-gateway.json")), &data))
	var preset struct {
		Gateway struct{ Settings map[string]string }
	}
	require.NoError(t, yaml.Unmarshal([]byte(readFile(t, "../deploy/chart/envoy-ai-gateway.yaml")), &preset))
	m := &manager{at: "127.0.0.1:" + servers.FreePort()}
	m.serve(t)
	m.send(t, "7", string(data.Resources[0]))
	for i, groups := range []string{"", "QUOTA_GROUP_BY=backend_name, model_name_override"} {
		var settings []string
		for name, value := range preset.Gateway.Settings {
			settings = append(settings, name+"="+value)
		}
		g := start(t, served(t).Addr, "", append(append(settings, groups), manages(m)...)...)
		until(t, "rules", func() bool { return strings.Contains(g.log(), "rules loaded") })
		require.Contains(t, g.page(t, g.debug+"/rules"), `"version":"7"`)
		for n, v := range data.Verdicts {
			var descriptors []string
			for name := range strings.FieldsSeq(v[0]) {
				name, hits, charged := strings.Cut(name, "*")
				descriptors = append(descriptors, data.Descriptors[name]+map[bool]string{true: "*" + hits}[charged])
			}
			assert.Equal(t, v[1+i]+" "+v[3], g.ask(t, "ai-gateway-quota", descriptors...), "%d: %s %s", n, v[0], groups)
		}
	}
}
