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
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/testdata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	servers "gothrottle/tests/server"
	"gothrottle/throttle"
)

const ours = `
domain: d
descriptors:
- {key: fixed, rate_limit: {unit: day, requests_per_unit: 5}}
- {key: late, rate_limit: {unit: day, requests_per_unit: 5, late: true}}
- {key: refuse, rate_limit: {unit: day, requests_per_unit: 5, excess: refuse}}
- {key: none, rate_limit: {unit: day, requests_per_unit: 0}}
- {key: never, rate_limit: {unit: day, requests_per_unit: 0, excess: refuse}}
- {key: sliding, rate_limit: {unit: day, requests_per_unit: 5, algorithm: sliding_window}}
- {key: tokens, rate_limit: {unit: day, requests_per_unit: 5, algorithm: sliding_window, excess: charge}}
- {key: gcra, rate_limit: {unit: day, requests_per_unit: 5, algorithm: gcra, burst: 2}}
- {key: lock, rate_limit: {unit: minute, requests_per_unit: 1, algorithm: gcra, lockout: 1h}}
- {key: user, descriptors: [{key: request, rate_limit: {concurrency: 2, hold: 1h}}]}
`

const tagged = `
descriptors:
- {key: a, rate_limit: {unit: day, requests_per_unit: 5}, descriptors: [{key: c, rate_limit: {unit: day, requests_per_unit: 9}}]}
- {key: b, rate_limit: {unit: day, requests_per_unit: 2, algorithm: sliding_window}}
- {key: n, rate_limit: {unit: day, requests_per_unit: 0}}
- {key: s, shadow_mode: true, rate_limit: {unit: day, requests_per_unit: 1}}
- {key: w, value: x*, share_threshold: true, rate_limit: {unit: day, requests_per_unit: 2}}
- {key: request, rate_limit: {concurrency: 1}}
- {key: tokens, rate_limit: {unit: day, requests_per_unit: 5, late: true}}
`

// The algorithms and options that envoyproxy/ratelimit does not have decide as the steps say. TestSideBySide has the others.
// In a cluster the keys of one tag are at one node. Two gateways take turns: what one counts, the other must know.
func TestDecisions(t *testing.T) {
	servers.Needed(t, "test-gateway")
	node := servers.NewCluster(t, 3, 0, servers.Options{})[0]
	many := ""
	for i := range 33 {
		many += fmt.Sprintf("a=many%d*6 ", i)
	}
	for rules, steps := range map[string]string{
		ours: `
fixed=a*6: OVER_LIMIT X0
fixed=a*-2: OK o1 // of the 6 that were counted
fixed=b*5: OK o0
fixed=b: OVER_LIMIT X0
fixed=b: OVER_LIMIT X0
fixed=b*-2: OK o0 // of the 7
fixed=c*4294967295: OVER_LIMIT X0
late=b*5: OK o0
late=b*0: OVER_LIMIT X0
late=b*9: OK o0
late=b*-10: OK o1 // of 14
late=b,gothrottle.settle=: OK o0
refuse=a*3: OK o2
refuse=a*3: OVER_LIMIT X2
refuse=a*2: OK o0
refuse=a*0: OVER_LIMIT X0 // nothing is left
none=a*0: OK o0
none=a: OVER_LIMIT X0
none=a*0: OVER_LIMIT X0
never=a*0: OVER_LIMIT X0
tokens=a*4: OK o1
tokens=a*4: OVER_LIMIT X0
tokens=a*-2: OK o0 // of 8 tokens 6 are still too many
tokens=a*0: OVER_LIMIT X0
tokens=b*5: OK o0
tokens=b: OVER_LIMIT X0
tokens=b: OVER_LIMIT X0
tokens=b*-2: OK o0 // of 7
sliding=b,gothrottle.settle=*9: OK o0
sliding=b: OVER_LIMIT X0
gcra=a*2: OK o0
gcra=a: OVER_LIMIT X0
lock=a: OK o0
lock=a: OVER_LIMIT X0
user=a,request=1: OK o1
user=a,request=2: OK o0
user=a,request=3: OVER_LIMIT X0
user=b,request=3: OK o1
user=a,request=3*0: OVER_LIMIT X0
user=a,request=1*-1: OK o1
user=a,request=3*0: OK o1
user=a,request=3: OK o0`,
		"domain: d\nhash_tag: domain" + tagged: `
a=1*2 b=1*2: OK o3 o0
a=1 b=1: OVER_LIMIT o3 X0
a=1 a=1 s=1: OK o1 o1 o0 // one key twice
a=2*6: OVER_LIMIT X5 // does not count
n=1 a=3: OVER_LIMIT X0 o5
a=1 s=1: OK o0 o0 // a shadow refuses nobody
tokens=1*7 a=3*7: OVER_LIMIT o0 X5 // what is late is charged apart
tokens=1*0 a=3: OVER_LIMIT X0 o4
request=1 a=4: OK o0 o4
request=2 a=4: OVER_LIMIT X0 o4
b=3*1000000000000 b=3*1000000000000: OVER_LIMIT X2 X2
` + strings.TrimSpace(many) + ": OVER_LIMIT" + strings.Repeat(" X5", 33) + " // more than a call may have",
		"domain: d\nhash_tag: descriptor" + tagged: `
a=1*5 a=1,c=1*5 b=1*2: OK o0 o4 o0
a=1 a=1,c=1 b=1: OVER_LIMIT X0 o4 X0
w=x1: OK o1
w=x2: OK o0
request=1: OK o0
request=2: OVER_LIMIT X0`,
	} {
		var two [2]*gateway
		for i := range two {
			two[i] = start(t, node.Addr, rules, "REDIS_TYPE=CLUSTER", fmt.Sprint("CACHE_KEY_PREFIX=", len(rules))) // other keys for each
		}
		for line := range strings.Lines(steps[1:]) {
			two[0], two[1] = two[1], two[0]
			step, _, _ := strings.Cut(strings.TrimSpace(line), " //")
			descriptors, want, _ := strings.Cut(step, ": ")
			assert.Equal(t, want, two[0].ask(t, "d", strings.Fields(descriptors)...), descriptors)
		}
	}
}

// A gateway of model traffic looks before a request, and reports its tokens afterwards, past the limit if need be. Then no
// further request passes, whatever the algorithm is, and whichever of two gateways is asked.
func TestLate(t *testing.T) {
	s := server(t)
	for i, kind := range []string{"algorithm: fixed_window", "algorithm: sliding_window", "algorithm: gcra", "algorithm: gcra, burst: 9999"} {
		for _, tag := range []string{"none", "domain", "descriptor"} {
			for _, late := range []string{"late: true", "excess: refuse"} {
				rules := "domain: d\nhash_tag: " + tag + "\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 10000, " + kind + ", " + late + "}}]"
				prefix := fmt.Sprint("CACHE_KEY_PREFIX=", i, tag, late)
				one, other := start(t, s.Addr, rules, prefix), start(t, s.Addr, rules, prefix, "BUDGET=100")
				admitted := 0
				for range 50 {
					if strings.HasPrefix(one.ask(t, "d", "user=bob*0"), "OK") {
						admitted++
						other.ask(t, "d", "user=bob*1200")
						one, other = other, one
					}
				}
				warned := strings.Count(one.log(t)+other.log(t), "add 'late: true' to the rule\" rule=d.user place=")
				if late == "late: true" {
					assert.Equal(t, []int{9, 0}, []int{admitted, warned}, rules)
				} else { // two gateways have seen it
					assert.Equal(t, []int{50, 2}, []int{admitted, warned}, rules)
				}
			}
		}
	}
}

// With a budget a hot limit costs few commands, and an unspent rest comes back at the end.
func TestBudget(t *testing.T) {
	s := server(t)
	const rules = "domain: d\ndescriptors: [{key: a, rate_limit: {unit: day, requests_per_unit: 4000000000}}]"
	g := start(t, s.Addr, rules, "BUDGET=500")
	for range 2000 {
		require.Equal(t, "OK", g.ask(t, "d", "a=1")[:2])
	}
	require.NoError(t, g.stop())
	var calls int
	_, err := fmt.Sscanf(servers.Field(strings.ToLower(fmt.Sprint(s.Do("INFO", "commandstats"))), "cmdstat_go.quota"), "calls=%d", &calls)
	require.NoError(t, err)
	require.Less(t, calls, 100)
	require.Regexp(t, "^OK o399999[78]", start(t, s.Addr, rules).ask(t, "d", "a=1*0"))
}

// A gateway that its server refuses isn't ready: it does not start, and it is unhealthy until the server accepts it again.
// Meanwhile on_failure decides.
func TestRefused(t *testing.T) {
	s := server(t)
	health := func(g *gateway) string {
		r, err := healthpb.NewHealthClient(g.conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: "ratelimit"})
		require.NoError(t, err)
		return fmt.Sprint(get(t, g.web+"/healthcheck").StatusCode, " ", r.Status)
	}
	s.Do("ACL", "SETUSER", "admin", "on", ">admin", "+@all", "~*", "&*")
	admin := redis.NewClient(&redis.Options{Addr: s.Addr, Username: "admin", Password: "admin"})
	defer admin.Close()
	g := start(t, s.Addr, ours)
	require.Equal(t, "200 SERVING", health(g))
	for what, change := range map[string][2]string{
		"NOPERM":    {"ACL SETUSER default -go.window", "ACL SETUSER default +go.window"},
		"READONLY":  {"REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE"},
		"NOAUTH":    {"ACL SETUSER default >pw", "ACL SETUSER default nopass"},
		"WRONGPASS": {"ACL SETUSER default resetpass >pw", "ACL SETUSER default nopass"},
	} {
		env := environment(s.Addr)
		if env["CONFIG"] = g.folder + "/rules.yaml"; what == "WRONGPASS" {
			env["REDIS_AUTH"] = "wrong"
		}
		require.NoError(t, admin.Do(t.Context(), fields(change[0])...).Err())
		require.NoError(t, admin.Do(t.Context(), "CLIENT", "KILL", "USER", "default").Err())
		require.ErrorContains(t, run(t.Context(), func(name string) string { return env[name] }, nil, io.Discard), "refuses the gateway", what)
		require.Eventually(t, func() bool { return health(g) == "503 NOT_SERVING" }, servers.Patience, 50*time.Millisecond, what)
		require.Contains(t, g.log(t), "refuses the gateway, which isn't ready")
		require.NoError(t, admin.Do(t.Context(), fields(change[1])...).Err())
		require.Eventually(t, func() bool { return health(g) == "200 SERVING" }, servers.Patience, 50*time.Millisecond, what)
	}
}

// Another file with http rules, and the end of one, take no site down: /check asks the rules of all domains.
func TestReload_http(t *testing.T) {
	rules := func(domain string) string {
		return "domain: " + domain + "\nhttp: {trusted_proxies: [127.0.0.1], rules: [{name: all, rate_limit: {unit: day, requests_per_unit: 2}}]}"
	}
	folder := t.TempDir()
	writeFile(t, folder+"/one.yaml", rules("one"))
	g := start(t, server(t).Addr, "", "CONFIG="+folder)
	check := func(path, address string) int { return get(t, g.web+path, "X-Forwarded-For", address).StatusCode }
	require.Equal(t, []int{200, 200, 404}, []int{check("/check", "1.1.1.1"), check("/check/one", "1.1.1.1"), check("/check/two", "1.1.1.1")})
	writeFile(t, folder+"/two.yaml", rules("two"))
	require.Eventually(t, func() bool { return strings.Contains(g.log(t), "/check asks the http rules of several domains") }, time.Minute, time.Millisecond)
	require.Equal(t, []int{429, 200, 429}, []int{check("/check", "1.1.1.1"), check("/check/two", "1.1.1.1"), check("/check/two", "1.1.1.1")})
	writeFile(t, folder+"/two.yaml", "domain: two")
	require.Eventually(t, func() bool { return strings.Contains(g.log(t), "no http rules any more") }, time.Minute, time.Millisecond)
	require.Equal(t, []int{200, 429, 200}, []int{check("/check/two", "1.1.1.1"), check("/check", "1.1.1.1"), check("/check", "2.2.2.2")})
}

// fields are the words of a command.
func fields(text string) (words []any) {
	for word := range strings.FieldsSeq(text) {
		words = append(words, word)
	}
	return words
}

// A changed file is in force within seconds, without losing what was used. A file with a mistake changes nothing.
func TestReload(t *testing.T) {
	rules := func(limit string) string { return "domain: d\ndescriptors: [{key: a, " + limit + "}]" }
	g := start(t, server(t).Addr, rules("rate_limit: {unit: day, requests_per_unit: 5}"))
	require.Equal(t, "OK o4", g.ask(t, "d", "a=1"))
	writeFile(t, g.folder+"/rules.yaml", rules("ratelimit: {}"))
	require.Eventually(t, func() bool { return strings.Contains(g.log(t), "rule d.a: unknown key 'ratelimit'") }, time.Minute, time.Millisecond)
	require.Equal(t, "OK o3", g.ask(t, "d", "a=1"))
	writeFile(t, g.folder+"/rules.yaml", rules("rate_limit: {unit: day, requests_per_unit: 50}"))
	require.Eventually(t, func() bool { return strings.Contains(body(t, g.debug+"/rules"), `"units":50`) }, time.Minute, time.Millisecond)
	require.Equal(t, "OK o47", g.ask(t, "d", "a=1"))
	require.Equal(t, 1, strings.Count(g.log(t), "the rules are refused"))
}

// Bad requests are errors of the protocol, and leave no line in the log.
func TestBadRequests(t *testing.T) {
	g := start(t, server(t).Addr, ours)
	before := g.log(t)
	unknown := request("d", "fixed=a>5")
	unknown.Descriptors[0].Limit.Unit = 0
	deep, long := strings.TrimSuffix(strings.Repeat("fixed=a,", 33), ","), strings.Repeat("x", 5<<20)
	for _, req := range []*pb.RateLimitRequest{
		{}, {Domain: "d"}, request("", "fixed=a"), request("d", make([]string, 1000)...), request("d", deep), request("d", "user=a,request="), unknown, request("d", long),
	} {
		want := codes.InvalidArgument
		if proto.Size(req) > maxMessage {
			want = codes.ResourceExhausted
		}
		_, err := g.ShouldRateLimit(t.Context(), req)
		assert.Equal(t, want, status.Code(err), "%.99v", err)
	}
	var nothing pb.RateLimitResponse
	notUTF8 := wrapperspb.Bytes([]byte("\xff")) // in the place of the domain
	err := g.conn.Invoke(t.Context(), pb.RateLimitService_ShouldRateLimit_FullMethodName, notUTF8, &nothing)
	require.Equal(t, codes.Internal, status.Code(err), err)
	const right = `{"domain": "d", "descriptors": [{"entries": [{"key": "gcra", "value": "a"}], "hitsAddend": "%d"}]}`
	for text, want := range map[string]int{
		"": 400, "{": 400, `{"domain": "d"}`: 400, `{"domain": "` + long + `"}`: 400, fmt.Sprintf(right, 1): 200, fmt.Sprintf(right, 3): 429,
	} {
		response, err := http.Post(g.debug+"/json", "application/json", strings.NewReader(text))
		require.NoError(t, err)
		_ = response.Body.Close()
		assert.Equal(t, want, response.StatusCode, "%.99s", text)
	}
	require.Equal(t, http.StatusNotFound, get(t, g.web+"/json").StatusCode) // who reaches it can give hits back
	require.Equal(t, "OK o4", g.ask(t, "d", "fixed=a"))
	require.Equal(t, "OK o0", g.ask(t, "other", "fixed=a"))
	require.Equal(t, before, g.log(t))
	require.Contains(t, body(t, g.debug+"/metrics"), `gothrottle_gateway_refused_requests_total{reason="invalid"} `)
}

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

// A program that is asked to end answers a request under way, and sends its traces. Until then it is healthy. It takes the
// socket of a program that was killed, and keeps its own when another one starts. With a server that has no module none
// starts.
func TestStop(t *testing.T) {
	var traces atomic.Bool
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { traces.Store(r.URL.Path == "/v1/traces") }))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	s, socket := server(t), t.TempDir()+"/socket"
	require.NoError(t, syscall.Mknod(socket, syscall.S_IFSOCK|0o600, 0))
	g := start(t, s.Addr, ours, "DECISION_TIMEOUT=2s", "GRPC_UDS="+socket, "TRACING_ENABLED=true")
	r, err := healthpb.NewHealthClient(g.conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: "ratelimit"})
	require.NoError(t, err)
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, r.Status)
	require.Equal(t, "OK\n", body(t, g.web+"/healthcheck"))
	env := environment(s.Addr)
	env["CONFIG"], env["GRPC_UDS"] = g.folder+"/rules.yaml", socket
	short, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	another := func() error { return run(short, func(name string) string { return env[name] }, nil, io.Discard) }
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
	require.True(t, traces.Load())
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
	roots := (&settings{get: func(string) string { return ca }}).pool("CA")
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
