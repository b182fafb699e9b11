package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"gothrottle/gateway/internal/serve"
	servers "gothrottle/tests/server"
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
- &shared
  key: model
  rate_limit: &m {unit: day, requests_per_unit: 100, algorithm: sliding_window}
  descriptors:
  - {key: tenant, share: 1, descriptors: [{key: app, share: 1, rate_limit: {unit: day, requests_per_unit: 30}}]}
  - {key: big, share: 4}
  - {key: batch, reserve: 20}
- <<: *shared
  key: late
  rate_limit: {<<: *m, late: true}
`

// july is what envoyproxy/ratelimit decides otherwise since January 2026.
const july = `
domain: d
descriptors:
- {key: q, quota_mode: true, rate_limit: {unit: day, requests_per_unit: 1}}
- {key: r, quota_mode: true, rate_limit: {unit: day, requests_per_unit: 2}}
- {key: path, value: /a/*/users/*, metadata: {team: {name: web, rank: 1.5}}, rate_limit: {unit: day, requests_per_unit: 3}}
- {key: path, value: "*.png", share_threshold: true, rate_limit: {unit: day, requests_per_unit: 2}}
- {key: m, detailed_metric: true, rate_limit: {unit: day, requests_per_unit: 5}}
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
		july: `
q=a r=a: OK o0 o1
q=a r=a: OK X0 o0 // one of two quotas is left
q=a r=a: OVER_LIMIT X0 X0
q=b: OK o0
q=b: OVER_LIMIT X0
path=/a/1/users/2: OK o2
path=/a/users/: OK o0 // no rule
path=/x.png: OK o1
path=/y.png: OK o0
path=/y.pngx: OK o0`,
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
model=a,tenant=x*40: OK o20 // alone: as much as it leaves to others
model=a,tenant=x*40: OVER_LIMIT X20
model=a,tenant=y*25 model=a*25: OK o10 o35 // the limit around it is taken from once
model=a,tenant=y*0: OK o10
model=a,big=z*30: OK o0 // 4 x 5 are left to it, and it has them
model=a,big=z: OVER_LIMIT X0
model=a,tenant=x*-40 model=a*0: OK o45 o45
model=b,tenant=x*20 model=b,tenant=y*20: OK o60 o40 // one after the other
model=b,tenant=x,app=1*11: OK o7 // 49 less 31 of the tenant, less 11
model=b,batch=1*29: OK o0 // of 80
model=b,batch=1: OVER_LIMIT X0
model=b*20: OK o0
model=c*5 model=c,batch=1*75: OK o0 o0 // one key: the smaller limit
late=a,tenant=x*60: OK o0
late=a,tenant=x*0: OVER_LIMIT X0
late=a,tenant=y*0: OK o40
late=a,tenant=y*50: OK o0
late=a,batch=1*0: OVER_LIMIT X0
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

// With a time zone windows end with the zone's day or month: in Tokyo at 15:00 UTC.
func TestTimeZone(t *testing.T) {
	now := time.Date(2028, 2, 14, 12, 0, 0, 0, time.UTC) // of a leap year
	s := servers.New(t, servers.Options{Clock: servers.FrozenClock(t, now.UnixMicro())})
	g := start(t, s.Addr, "domain: d\ndescriptors:"+`
- {key: day, rate_limit: {unit: day, requests_per_unit: 5, time_zone: Asia/Tokyo}}
- {key: month, rate_limit: {unit: month, requests_per_unit: 5, time_zone: Asia/Tokyo}}
http: {rules: [{name: all, match: {path: /*}, by: [host], rate_limit: {unit: month, requests_per_unit: 5, time_zone: Asia/Tokyo}}]}`)
	response, err := g.ShouldRateLimit(t.Context(), request("d", "day=a", "month=a"))
	require.NoError(t, err)
	require.Equal(t, 3*time.Hour, response.Statuses[0].DurationUntilReset.AsDuration())
	require.Equal(t, 15*24*time.Hour+3*time.Hour, response.Statuses[1].DurationUntilReset.AsDuration())
	require.Equal(t, `"all";q=5`, get(t, g.web+"/check").Header.Get("RateLimit-Policy"), "no length of a window")
	response, err = g.ShouldRateLimit(t.Context(), request("d", "day=b*0", "month=b*0")) // nothing is in use
	require.NoError(t, err)
	tokyo := time.Now().Add(9 * time.Hour).UTC()
	month := time.Date(tokyo.Year(), tokyo.Month()+1, 1, 0, 0, 0, 0, time.UTC).Sub(tokyo)
	require.InDelta(t, month.Seconds()-month.Truncate(24*time.Hour).Seconds(), response.Statuses[0].DurationUntilReset.Seconds, 10)
	require.InDelta(t, month.Seconds(), response.Statuses[1].DurationUntilReset.Seconds, 10)
}

// While the server is down, a share is refused if a limit around it refuses.
func TestShare_serverDown(t *testing.T) {
	g := start(t, "127.0.0.1:"+servers.FreePort(), "domain: d\nhash_tag: domain\ndescriptors:"+`
- {key: closed, rate_limit: {unit: day, requests_per_unit: 5, on_failure: closed}, descriptors: [{key: tenant, share: 1, rate_limit: {unit: day, requests_per_unit: 9}}]}
- {key: local, rate_limit: {unit: day, requests_per_unit: 5, on_failure: local}, descriptors: [{key: tenant, share: 1}]}`)
	require.Equal(t, "OVER_LIMIT X0", g.ask(t, "d", "closed=a,tenant=b"))
	require.Equal(t, "OK o5", g.ask(t, "d", "local=a,tenant=b*5"))
	require.Equal(t, "OVER_LIMIT X0", g.ask(t, "d", "local=a,tenant=b"))
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
		require.ErrorContains(t, run(t.Context(), env, io.Discard), "refuses the gateway", what)
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
	stale := func(want string) func() bool {
		return func() bool {
			return strings.Contains(body(t, g.debug+"/metrics"), "\ngothrottle_gateway_rules_stale "+want+"\n")
		}
	}
	require.NoError(t, os.Rename(g.folder, g.folder+".away"))
	require.Eventually(t, stale("1"), time.Minute, time.Millisecond)
	require.NoError(t, os.Rename(g.folder+".away", g.folder))
	require.Eventually(t, stale("0"), time.Minute, time.Millisecond)
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
		if proto.Size(req) > serve.MaxMessage {
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
