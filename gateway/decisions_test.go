package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	servers "gothrottle/tests/server"
)

func dial(t testing.TB, addr string, c credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(c), grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(1<<30)))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func get(t *testing.T, url string, headers ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
	}
	response, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// patient is the time limit of decisions in tests in which the server is there: the machine may be busy.
const patient = "20s"

const ours = `
domain: d
descriptors:
- {key: fixed, rate_limit: {unit: day, requests_per_unit: 5}}
- {key: refuse, rate_limit: {unit: day, requests_per_unit: 5, excess: refuse}}
- {key: none, rate_limit: {unit: day, requests_per_unit: 0}}
- {key: sliding, rate_limit: {unit: day, requests_per_unit: 5, algorithm: sliding_window}}
- {key: tokens, rate_limit: {unit: day, requests_per_unit: 5, algorithm: sliding_window, excess: charge}}
- {key: gcra, rate_limit: {unit: day, requests_per_unit: 5, algorithm: gcra, burst: 2}}
- {key: lock, rate_limit: {unit: minute, requests_per_unit: 1, algorithm: gcra, lockout: 1h}}
- {key: user, descriptors: [{key: request, rate_limit: {concurrency: 2, hold: 1h}}]}
- {key: shadow, shadow_mode: true, rate_limit: {unit: day, requests_per_unit: 1}}
- {key: quota, quota_mode: true, rate_limit: {unit: day, requests_per_unit: 1}}
`

// What each algorithm and option decides, step by step.
func TestDecisions(t *testing.T) {
	g := start(t, server(t).Addr, ours, "DECISION_TIMEOUT", patient)
	for _, row := range []struct {
		descriptors string // several are separated by blanks
		hits        int64
		want        string
	}{
		{"unknown=x", 1, "OK o0"},
		{"fixed=a", 3, "OK o2"},
		{"fixed=a", 3, "OVER_LIMIT X0"}, // counts, as theirs does
		{"fixed=a", 0, "OVER_LIMIT X0"},
		{"fixed=b", 5, "OK o0"},
		{"fixed=b", 0, "OK o0"},
		{"fixed=b", 1, "OVER_LIMIT X0"},
		{"fixed=b", 0, "OVER_LIMIT X0"},
		{"fixed=b", -3, "OK o2"},
		{"fixed=c", 1<<32 - 1, "OVER_LIMIT X0"},
		{"refuse=a", 3, "OK o2"},
		{"refuse=a", 3, "OVER_LIMIT X2"},
		{"refuse=a", 2, "OK o0"},
		{"refuse=a", 0, "OVER_LIMIT X0"}, // nothing is left
		{"none=a", 0, "OK o0"},
		{"none=a", 1, "OVER_LIMIT X0"},
		{"none=a", 0, "OVER_LIMIT X0"},
		{"sliding=a", 5, "OK o0"},
		{"sliding=a", 1, "OVER_LIMIT X0"},
		{"sliding=a", -2, "OK o2"},
		{"tokens=a", 4, "OK o1"},
		{"tokens=a", 4, "OVER_LIMIT X0"},
		{"tokens=a", -2, "OK o0"}, // of 8 tokens 6 are still too many
		{"tokens=a", 0, "OVER_LIMIT X0"},
		{"sliding=b,gothrottle.settle=", 9, "OK o0"},
		{"sliding=b", 1, "OVER_LIMIT X0"},
		{"gcra=a", 2, "OK o0"},
		{"gcra=a", 1, "OVER_LIMIT X0"},
		{"lock=a", 1, "OK o0"},
		{"lock=a", 1, "OVER_LIMIT X0"},
		{"user=a,request=1", 1, "OK o1"},
		{"user=a,request=2", 1, "OK o0"},
		{"user=a,request=3", 1, "OVER_LIMIT X0"},
		{"user=b,request=3", 1, "OK o1"},
		{"user=a,request=1", -1, "OK o2"},
		{"user=a,request=3", 1, "OK o0"},
		{"shadow=a", 2, "OK o0"},
		{"quota=a", 2, "OK o0"},
		{"fixed=e fixed=f", 1, "OK o4 o4"},
		{"fixed=e fixed=e fixed=f", 2, "OK o2 o0 o2"},
		{"fixed=e fixed=f", 1, "OVER_LIMIT X0 o1"}, // takes from the other, as theirs does
	} {
		req := request("d", strings.Fields(row.descriptors)...)
		for i := range req.Descriptors {
			costs(&pb.RateLimitRequest{Descriptors: req.Descriptors[i : i+1]}, row.hits)
		}
		assert.Equal(t, row.want, g.ask(t, req), "%s %d", row.descriptors, row.hits)
	}
	require.Equal(t, "OK o4294967295", start(t, server(t).Addr, "domain: d\ndescriptors: [{key: a, rate_limit: {unlimited: true}}]").ask(t, request("d", "a=b")))
}

// A request takes from all limits of one tag, or from none.
func TestAllOrNothing(t *testing.T) {
	s := server(t)
	rules := "\ndescriptors:\n- {key: a, rate_limit: {unit: day, requests_per_unit: 5}, descriptors: [{key: c, rate_limit: {unit: day, requests_per_unit: 9}}]}\n" +
		"- {key: b, rate_limit: {unit: day, requests_per_unit: 2, algorithm: sliding_window}}\n- {key: s, shadow_mode: true, rate_limit: {unit: day, requests_per_unit: 1}}\n"
	g := start(t, s.Addr, "domain: d\nhash_tag: domain"+rules, "DECISION_TIMEOUT", patient)
	require.Equal(t, "OK o3 o0", g.ask(t, costs(request("d", "a=1", "b=1"), 2, 2)))
	require.Equal(t, "OVER_LIMIT o3 X0", g.ask(t, request("d", "a=1", "b=1")))
	require.Equal(t, "OK o1 o1 o0", g.ask(t, request("d", "a=1", "a=1", "s=1"))) // one key twice
	require.Equal(t, "OK o0 o0", g.ask(t, request("d", "a=1", "s=1")))           // a shadow refuses nobody
	g = start(t, s.Addr, "domain: e\nhash_tag: descriptor"+rules, "DECISION_TIMEOUT", patient)
	require.Equal(t, "OK o0 o4 o0", g.ask(t, costs(request("e", "a=1", "a=1,c=1", "b=1"), 5, 5, 2)))
	require.Equal(t, "OVER_LIMIT X0 o4 X0", g.ask(t, request("e", "a=1", "a=1,c=1", "b=1")))
	keys, err := s.Do("KEYS", "*")
	require.NoError(t, err)
	require.Contains(t, keys, "fixed_window.24h0m0s:{e|a=1}|a=1|c=1")
}

// In a cluster the keys of one tag are at one node, and others are anywhere.
func TestCluster(t *testing.T) {
	servers.Needed(t, "test-gateway")
	node := servers.NewCluster(t, 3, 0, servers.Options{}).Nodes[0]
	for _, tag := range []string{"none", "descriptor", "domain"} {
		g := start(t, node.Addr, "domain: "+tag+"\nhash_tag: "+tag+"\ndescriptors:\n- {key: a, rate_limit: {unit: day, requests_per_unit: 5}, "+
			"descriptors: [{key: b, rate_limit: {unit: day, requests_per_unit: 9}}]}", "REDIS_TYPE", "CLUSTER", "DECISION_TIMEOUT", patient)
		for i := range int64(20) {
			user := "a=" + number(i)
			require.Equal(t, "OK o4 o8", g.ask(t, request(tag, user, user+",b=1")))
		}
	}
}

// A limit that comes with the request counts with the rule's key. A limit that another replaces is not asked.
func TestOverrideAndReplaces(t *testing.T) {
	g := start(t, server(t).Addr, `
domain: d
descriptors:
- {key: a, rate_limit: {unit: day, requests_per_unit: 5, name: small}}
- {key: b, rate_limit: {unit: day, requests_per_unit: 9, replaces: [{name: small}]}}
`, "DECISION_TIMEOUT", patient, "LIMIT_RESPONSE_HEADERS_ENABLED", "true", "LIMIT_LIMIT_HEADER", "X-Limit")
	require.Equal(t, "OK o0 o8", g.ask(t, request("d", "a=1", "b=1")))
	require.Equal(t, "OK o2", g.ask(t, costs(request("d", "a=1"), 3)))
	req := request("d", "a=1")
	req.Descriptors[0].Limit = &common.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 50, Unit: typev3.RateLimitUnit_DAY}
	require.Equal(t, "OK o46", g.ask(t, req))
	response, err := g.ShouldRateLimit(t.Context(), request("d", "a=1", "b=1"))
	require.NoError(t, err)
	require.Equal(t, "X-Limit", response.ResponseHeadersToAdd[0].Key)
	require.Equal(t, []string{"9", "7"}, []string{response.ResponseHeadersToAdd[0].Value, response.ResponseHeadersToAdd[1].Value})
	req.Descriptors[0].Limit.Unit = typev3.RateLimitUnit_UNKNOWN
	_, err = g.ShouldRateLimit(t.Context(), req)
	require.Equal(t, codes.InvalidArgument, status.Code(err))
}

// With a budget a hot limit costs few commands, and an unspent rest comes back at the end.
func TestBudget(t *testing.T) {
	s := server(t)
	const limit = 4_000_000_000
	rules := fmt.Sprintf("domain: d\ndescriptors: [{key: a, rate_limit: {unit: day, requests_per_unit: %d}}]", limit)
	g := start(t, s.Addr, rules, "DECISION_TIMEOUT", patient, "BUDGET", "500")
	for range 2000 {
		require.Equal(t, "OK", g.ask(t, request("d", "a=1"))[:2])
	}
	require.NoError(t, g.stop())
	stats, err := s.Do("INFO", "commandstats")
	require.NoError(t, err)
	_, quota, _ := strings.Cut(strings.ToLower(fmt.Sprint(stats)), "cmdstat_go.quota:calls=")
	calls, err := strconv.Atoi(strings.Split(quota, ",")[0])
	require.NoError(t, err)
	require.Less(t, calls, 100)
	t.Logf("%d commands", calls)
	left := start(t, s.Addr, rules, "DECISION_TIMEOUT", patient).ask(t, costs(request("d", "a=1"), 0))
	require.Regexp(t, "^OK o399999[78]", left)
}

// A changed file is in force within seconds, without losing what was used. A file with a mistake changes nothing.
func TestReload(t *testing.T) {
	g := start(t, server(t).Addr, "domain: d\ndescriptors: [{key: a, rate_limit: {unit: day, requests_per_unit: 5}}]", "DECISION_TIMEOUT", patient)
	require.Equal(t, "OK o4", g.ask(t, request("d", "a=1")))
	g.write(t, "domain: d\ndescriptors: [{key: a, ratelimit: {}}]")
	require.Eventually(t, func() bool { return strings.Contains(g.log.String(), "rule d.a: unknown key 'ratelimit'") }, time.Minute, time.Millisecond)
	require.Equal(t, "OK o3", g.ask(t, request("d", "a=1")))
	g.write(t, "domain: d\ndescriptors: [{key: a, rate_limit: {unit: day, requests_per_unit: 50}}]")
	require.Eventually(t, func() bool { return strings.Contains(body(t, g.debug+"/rules"), `"units":50`) }, time.Minute, time.Millisecond)
	require.Equal(t, "OK o47", g.ask(t, request("d", "a=1")))
	require.Equal(t, 1, strings.Count(g.log.String(), "the rules are refused"))
}

func body(t *testing.T, url string) string {
	t.Helper()
	text, err := io.ReadAll(get(t, url).Body)
	require.NoError(t, err)
	return string(text)
}

// Bad requests are errors of the protocol, and leave no line in the log.
func TestBadRequests(t *testing.T) {
	g := start(t, server(t).Addr, ours, "DECISION_TIMEOUT", patient)
	before := g.log.String()
	many := make([]string, 1000)
	long := request("d", "fixed=a")
	long.Descriptors[0].Entries[0].Value = strings.Repeat("x", 1<<20)
	deep := request("d", strings.TrimSuffix(strings.Repeat("fixed=a,", 33), ","))
	for want, reqs := range map[codes.Code][]*pb.RateLimitRequest{
		codes.InvalidArgument:   {{}, {Domain: "d"}, request("", "fixed=a"), request("d", many...), deep, request("d", "user=a,request=")},
		codes.ResourceExhausted: {long},
	} {
		for _, req := range reqs {
			_, err := g.ShouldRateLimit(t.Context(), req)
			assert.Equal(t, want, status.Code(err), "%.99v", err)
		}
	}
	var nothing pb.RateLimitResponse
	err := g.conn.Invoke(t.Context(), pb.RateLimitService_ShouldRateLimit_FullMethodName, "\x0a\x02\xff\xfe", &nothing, grpc.ForceCodec(bytesCodec{}))
	require.Equal(t, codes.Internal, status.Code(err), err) // a domain that isn't UTF-8
	for _, text := range []string{"", "{", `{"domain": "d"}`, `{"domain": "` + strings.Repeat("x", 1<<20) + `"}`} {
		response, err := http.Post(g.web+"/json", "application/json", strings.NewReader(text))
		require.NoError(t, err)
		_ = response.Body.Close()
		assert.Equal(t, http.StatusBadRequest, response.StatusCode)
	}
	require.Equal(t, "OK o1", g.ask(t, costs(request("d", "fixed=z"), 4)))
	require.Equal(t, before, g.log.String())
	require.Contains(t, body(t, g.debug+"/metrics"), `gothrottle_gateway_refused_requests_total{reason="invalid"} `)
}

// bytesCodec sends a string as it is.
type bytesCodec struct{}

func (bytesCodec) Marshal(v any) ([]byte, error) { return []byte(v.(string)), nil }
func (bytesCodec) Unmarshal([]byte, any) error   { return nil }
func (bytesCodec) Name() string                  { return "proto" }

// While the server is stopped or killed each request is answered in time, as its rule says, and decided again afterwards.
func TestServerAway(t *testing.T) {
	s := server(t)
	g := start(t, s.Addr, `
domain: d
http: {rules: [{name: all, rate_limit: {unit: day, requests_per_unit: 5, on_failure: closed}}]}
descriptors:
- {key: open, rate_limit: {unit: day, requests_per_unit: 5}}
- {key: closed, rate_limit: {unit: day, requests_per_unit: 5, on_failure: closed}}
- {key: local, rate_limit: {unit: day, requests_per_unit: 5, on_failure: local}}
`)
	alone := func(key string) string { return g.ask(t, costs(request("d", key+"=1"), 4)) }
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var calls, late atomic.Int64 // of others meanwhile
	for i := range 32 {
		wg.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				_, err := g.ShouldRateLimit(t.Context(), request("d", "open="+number(int64(i%4+2))))
				calls.Add(1)
				assert.NoError(t, err)
				if time.Since(began) > 500*time.Millisecond {
					late.Add(1)
				}
			}
		})
	}
	for _, away := range []func(){func() { require.NoError(t, s.Pause()) }, s.Kill} {
		away()
		slowest := time.Duration(0)
		var seen []string
		for range 4 {
			for _, key := range []string{"open", "closed", "local"} {
				began := time.Now()
				seen = append(seen, alone(key))
				slowest = max(slowest, time.Since(began))
			}
		}
		require.Equal(t, []string{"OK o5", "OVER_LIMIT X0"}, seen[:2])
		require.Equal(t, "OVER_LIMIT X0", seen[11], seen)
		t.Logf("the slowest answer took %s", slowest)
		require.Less(t, slowest, time.Second) // 50 ms, and the machine may be busy
		require.Equal(t, http.StatusTooManyRequests, g.visit(t).StatusCode)
		if s.Exited() {
			require.NoError(t, s.Restart())
		} else {
			require.NoError(t, s.Resume())
		}
		require.Eventually(t, func() bool { return g.ask(t, costs(request("d", "closed=2"), 0)) == "OK o5" }, time.Minute, 10*time.Millisecond)
	}
	cancel()
	wg.Wait()
	t.Logf("of %d calls meanwhile %d took more than 500 ms", calls.Load(), late.Load())
	require.LessOrEqual(t, late.Load(), calls.Load()/100) // the machine may be busy
	require.Contains(t, body(t, g.debug+"/metrics"), `gothrottle_gateway_fallbacks_total{policy="local",rule="d.local"}`)
	require.Less(t, strings.Count(g.log.String(), "\n"), 20, g.log) // on a busy machine the server seems away more often
}

// A program that is asked to end answers the requests under way. Until then it is healthy.
func TestStop(t *testing.T) {
	s := server(t)
	g := start(t, s.Addr, ours, "DECISION_TIMEOUT", "2s")
	r, err := healthpb.NewHealthClient(g.conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: "ratelimit"})
	require.NoError(t, err)
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, r.Status)
	require.Equal(t, "OK\n", body(t, g.web+"/healthcheck"))
	require.NoError(t, s.Pause())
	ended := make(chan error)
	for range 20 {
		go func() {
			_, err := g.ShouldRateLimit(context.Background(), request("d", "fixed=a"))
			ended <- err
		}()
	}
	time.Sleep(300 * time.Millisecond) // the requests are under way
	require.NoError(t, g.stop())
	for range 20 {
		require.NoError(t, <-ended)
	}
}

// With TRACING_ENABLED spans go to a collector.
func TestTracing(t *testing.T) {
	var paths sync.Map
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { paths.Store(r.URL.Path, true) }))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	g := start(t, server(t).Addr, ours, "DECISION_TIMEOUT", patient, "TRACING_ENABLED", "true")
	require.Equal(t, "OK o4", g.ask(t, request("d", "fixed=a")))
	require.NoError(t, g.stop())
	_, found := paths.Load("/v1/traces")
	require.True(t, found)
}
