package main

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"gothrottle/commands/memory"
	"gothrottle/commands/memory/resp"
	"gothrottle/gateway/internal/serve"
)

const ours = `
domain: d
descriptors:
- {key: fixed, rate_limit: {unit: day, requests_per_unit: 5}}
- {key: none, rate_limit: {unit: day, requests_per_unit: 0}}
- {key: never, rate_limit: {unit: day, requests_per_unit: 0, excess: refuse}}
- {key: sliding, rate_limit: {unit: day, requests_per_unit: 5, algorithm: sliding_window}}
- {key: tokens, rate_limit: {unit: day, requests_per_unit: 5, algorithm: sliding_window, excess: charge}}
- {key: debt, rate_limit: {unit: day, requests_per_unit: 5, algorithm: gcra, excess: charge}}
- {key: gcra, rate_limit: {unit: day, requests_per_unit: 5, algorithm: gcra, burst: 2}}
- {key: user, descriptors: [{key: request, rate_limit: {concurrency: 2, hold: 1h}}]}
`

const tagged = `
descriptors:
- {key: a, rate_limit: {unit: day, requests_per_unit: 5}, descriptors: [{key: c, rate_limit: {unit: day, requests_per_unit: 9}}]}
- {key: b, rate_limit: {unit: day, requests_per_unit: 2, algorithm: sliding_window}}
- {key: n, rate_limit: {unit: day, requests_per_unit: 0}}
- {key: one, rate_limit: {unit: day, requests_per_unit: 1}}
- {key: user, descriptors: [{key: request, rate_limit: {concurrency: 2, hold: 1h}}]}
- {key: s, shadow_mode: true, rate_limit: {unit: day, requests_per_unit: 1}}
- {key: q, quota_mode: true, rate_limit: {unit: day, requests_per_unit: 1}}
- {key: w, value: x*, share_threshold: true, rate_limit: {unit: day, requests_per_unit: 2}}
- key: model
  rate_limit: {unit: day, requests_per_unit: 100, algorithm: sliding_window}
  descriptors:
  - {key: tenant, share: 1, descriptors: [{key: app, share: 1, rate_limit: {unit: day, requests_per_unit: 30}}]}
  - {key: big, share: 4}
  - {key: batch, reserve: 20}
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

// The steps ask what neither TestSideBySide nor TestWorld does. In a cluster the keys of one tag are at one node.
// Two gateways take turns: what one counts, the other must know.
func TestDecisions(t *testing.T) { bubble(t, testDecisions) }

func testDecisions(t *testing.T) {
	s := inMemory(t)
	s.Network.NewCluster(s.Addr, "10.0.0.2:6379", "10.0.0.3:6379")
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
fixed=c*4294967295: OVER_LIMIT X0
none=a*0: OK o0
none=a: OVER_LIMIT X0
none=a*0: OVER_LIMIT X0
never=a*0: OVER_LIMIT X0
tokens=a*4: OK o1
tokens=a*4: OVER_LIMIT X0
tokens=a*-2: OK o0
debt=a*1000000000000: OVER_LIMIT X0 // more than the server counts
gcra=w,gothrottle.settle=*1000000000000 gcra=w: OK o0 o1 // what the server can't charge isn't an outage`,
		"domain: d\nhash_tag: domain" + tagged: `
a=1 a=1 s=1: OK o3 o3 o0 // one key twice
n=1 a=3: OVER_LIMIT X0 o5
user=a,request=1 user=a,request=2: OK o1 o0 // two holders of one key, one after the other
user=a,request=3 b=5: OVER_LIMIT X0 o2
own=1*5>3: OVER_LIMIT X3 // nor does a limit of the request's own charge what it refuses
one=1: OK o0
one=1*0 a=8*6: OVER_LIMIT X0 X5 // a look that refuses, and too many hits
q=1*2 a=4: OVER_LIMIT X1 o4 // a quota is charged apart
b=4,gothrottle.settle=*2 a=3*7: OVER_LIMIT o0 X5 // and so is a report
s=2*2 a=5*2: OK o1 o3 // a shadow refuses nobody
b=3*1000000000000 b=3*1000000000000: OVER_LIMIT X2 X2
model=a,tenant=y*25 model=a*25: OK o50 o75 // the limit around it is taken from once
model=b,tenant=x*20 model=b,tenant=y*20: OK o60 o40 // one after the other
model=b,tenant=x,app=1*11: OK o7 // 49 less 31 of the tenant, less 11
model=c*5 model=c,batch=1*75: OK o0 o0 // one key: the smaller limit
model=e,tenant=x,gothrottle.settle=*5 model=e,gothrottle.settle=*3: OK o90 o92 // each has its own hits
model=d,tenant=x*50: OK o0
model=d,tenant=x*0: OVER_LIMIT X0
` + strings.TrimSpace(many) + ": OVER_LIMIT" + strings.Repeat(" X5", 33) + " // more than a call may have",
		"domain: d\nhash_tag: descriptor" + tagged: `
a=1*5 a=1,c=1*5 b=1*2: OK o0 o4 o0
a=1 a=1,c=1 b=1: OVER_LIMIT X0 o4 X0
w=x1: OK o1
w=x2: OK o0`,
	} {
		var two [2]*gateway
		for i := range two {
			two[i] = inside(t, s, rules, "REDIS_TYPE=CLUSTER", fmt.Sprint("CACHE_KEY_PREFIX=", len(rules))) // other keys for each
		}
		for line := range strings.Lines(steps[1:]) {
			two[0], two[1] = two[1], two[0]
			step, _, _ := strings.Cut(strings.TrimSpace(line), " //")
			descriptors, want, _ := strings.Cut(step, ": ")
			assert.Equal(t, want, two[0].ask(t, "d", strings.Fields(descriptors)...), descriptors)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := two[0].ShouldRateLimit(gone, request("d", "a=1", "gcra=a"))
		assert.Equal(t, codes.Canceled, status.Code(err))
		assert.NotContains(t, two[0].log(), "context")
	}
}

// With a time zone windows end with the zone's day or month: in Tokyo at 15:00 UTC.
func TestTimeZone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2000, 2, 14, 12, 0, 0, 0, time.UTC))) // of a leap year
		g := inside(t, inMemory(t), "domain: d\ndescriptors:"+`
- {key: day, rate_limit: {unit: day, requests_per_unit: 5, time_zone: Asia/Tokyo}}
- {key: month, rate_limit: {unit: month, requests_per_unit: 5, time_zone: Asia/Tokyo}}
- {key: bill, rate_limit: {unit: month, requests_per_unit: 5, time_zone: Asia/Tokyo, starts_on: 31}}
http: {rules: [{name: all, match: {path: /*}, by: [host],
  cost: {header: C, estimate: 3, hold: 10s}, rate_limit: {unit: month, requests_per_unit: 5, time_zone: Asia/Tokyo}}]}`)
		for _, hits := range []string{"*1", "*0"} {
			response, err := g.ShouldRateLimit(t.Context(), request("d", "day=a"+hits[1:]+hits, "month=a"+hits[1:]+hits, "bill=a"+hits[1:]+hits))
			require.NoError(t, err)
			require.Equal(t, 3*time.Hour, response.Statuses[0].DurationUntilReset.AsDuration())
			require.Equal(t, 15*24*time.Hour+3*time.Hour, response.Statuses[1].DurationUntilReset.AsDuration())
			require.Equal(t, 14*24*time.Hour+3*time.Hour, response.Statuses[2].DurationUntilReset.AsDuration(), "on February 29")
		}
		for range 2 { // the first one's hold lapses
			r := g.get(t, g.web+"/check")
			require.Equal(t, 200, r.StatusCode)
			require.Equal(t, `"all";q=5`, r.Header.Get("RateLimit-Policy"), "no length of a window")
			time.Sleep(10 * time.Second)
		}
	})
}

// Both limits of a rule are named in answers, the tighter one first. The log says once that a proxy names no path, and /metrics that a
// header has no limit in it.
func TestHeaders(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := inside(t, inMemory(t), `{domain: d, http: {trusted_proxies: [127.0.0.1], rules: [{name: n, match: {path: "/*"}, rate_limit: [
			{name: short, unit: 1500ms, requests_per_unit: 9, header: Plan, max: 10}, {name: long, unit: 15m, requests_per_unit: 5}]}]}}`)
		for range 2 {
			h := g.get(t, g.web+"/check", "Plan", "11").Header
			time.Sleep(time.Minute)
			require.Equal(t, `"long";q=5;w=900, "short";q=9;w=2`, h.Get("RateLimit-Policy"))
			require.Regexp(t, `^"long";r=\d;t=\d+, "short";r=8;t=\d$`, h.Get("RateLimit"))
		}
		require.Equal(t, 1, strings.Count(g.log(), "neither X-Forwarded-Uri nor X-Original-URL"))
		require.Contains(t, g.page(t, g.debug+"/metrics"), "wrong_limits_total 2")
	})
}

// While the server is silent, a request is answered in time, whatever it asks. A share is refused if a limit around it refuses.
func TestAway(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := inMemory(t)
		g := inside(t, s, "domain: d\nhash_tag: domain\ndescriptors: [{key: a, rate_limit: {unit: day, requests_per_unit: 5, on_failure: local}, "+
			"descriptors: [{key: tenant, share: 1}]}, {key: slot, rate_limit: {concurrency: 5}}, {key: c, rate_limit: {unit: day, requests_per_unit: 5, on_failure: closed}, "+
			"descriptors: [{key: tenant, share: 1, rate_limit: {unit: day, requests_per_unit: 5}}]}]")
		s.Change(func(f *resp.Faults) { f.Silent = true })
		began := time.Now()
		g.ask(t, "d", slices.Repeat([]string{"slot=1*-1"}, 32)...)
		require.LessOrEqual(t, time.Since(began), 50*time.Millisecond)
		require.Equal(t, "OK o0", g.ask(t, "d", "a=a,tenant=b*5"))
		require.Equal(t, "OVER_LIMIT X0", g.ask(t, "d", "c=a,tenant=b"))
		for range 100 {
			require.Equal(t, "OVER_LIMIT X0", g.ask(t, "d", "a=a,tenant=b"))
		}
		require.Less(t, strings.Count(g.log(), "\n"), 6)
	})
}

// With a budget a hot limit costs few commands, and an unspent rest comes back at the end. The log names a rule whose limit
// would refuse reports that then don't count.
func TestBudget(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, calls := inMemory(t), atomic.Int64{}
		s.Change(func(f *resp.Faults) { f.Reply = func([]string) (any, bool) { calls.Add(1); return nil, false } })
		const rules = "domain: d\ndescriptors: [{key: a, rate_limit: {unit: day, requests_per_unit: 4000000000, %s}}]"
		g := inside(t, s, fmt.Sprintf(rules, "excess: refuse"), "BUDGET=500")
		for range 2000 {
			time.Sleep(time.Millisecond)
			require.Equal(t, "OK", g.ask(t, "d", "a=1")[:2])
		}
		require.Less(t, calls.Load(), int64(100))
		g.ask(t, "d", "a=1*0")
		require.Equal(t, "OVER_LIMIT", g.ask(t, "d", "a=1*4000000000")[:10])
		require.Equal(t, 1, strings.Count(g.log(), "add 'late: true' to the rule\" rule=d.a place="))
		require.NoError(t, g.stop())
		g = inside(t, s, fmt.Sprintf(rules, "late: true"))
		require.Equal(t, "OK o3999998000", g.ask(t, "d", "a=1*0"))
	})
}

// A gateway that its server refuses does not start: in time it finds out. One that runs stays healthy, says what is wrong, and
// does as on_failure says, as it does for errors that pass, with which it also starts.
func TestRefused(t *testing.T) {
	for text, refuses := range map[string]bool{"NOAUTH no": true, "WRONGPASS no": true, "NOPERM no": true, "READONLY no": true, "DENIED no": true,
		"ERR This instance has cluster support disabled": true, "ERR unknown command": true, "LOADING soon": false, "MASTERDOWN no": false,
		"CLUSTERDOWN no": false, "BUSY no": false, "OOM no": false, "MISCONF no": false, "NOREPLICAS no": false, "ERR max number of clients reached": false} {
		bubble(t, func(t *testing.T) {
			s := inMemory(t)
			g := inside(t, s, "domain: d\ndescriptors: [{key: open, rate_limit: {unit: day, requests_per_unit: 5}},"+
				"{key: closed, rate_limit: {unit: day, requests_per_unit: 5, on_failure: closed}}]", "LIMIT_RESPONSE_HEADERS_ENABLED=true")
			s.Change(func(f *resp.Faults) { f.Reply = func([]string) (any, bool) { return memory.Error(text), true } })
			err := inside(t, s, "", "CONFIG="+g.folder).begin(t.Context())
			require.Equal(t, refuses, err != nil, "%s: %v", text, err)
			time.Sleep(4 * watched)
			require.Equal(t, 1, strings.Count(g.log(), "each rule's on_failure decides"), g.log())
			require.NotContains(t, g.log(), "settlement", "the gateway's own question costs nothing")
			require.Equal(t, 200, g.get(t, g.web+"/healthcheck").StatusCode, text)
			require.Contains(t, g.page(t, g.debug+"/metrics"), "gothrottle_gateway_server_away 1")
			require.Equal(t, refuses, strings.Contains(g.log(), "refuses the gateway"), "%s: %s", text, g.log())
			for rule, want := range map[string]pb.RateLimitResponse_Code{"open": pb.RateLimitResponse_OK, "closed": pb.RateLimitResponse_OVER_LIMIT} {
				r, err := g.ShouldRateLimit(t.Context(), request("d", rule+"=a"))
				require.NoError(t, err)
				require.Equal(t, want, r.OverallCode, text)
				require.Nil(t, r.Statuses[0].CurrentLimit, "numbers that nobody has counted")
				require.Len(t, r.ResponseHeadersToAdd, 1)
				require.Equal(t, "Gothrottle-Fallback "+rule, r.ResponseHeadersToAdd[0].Key+" "+r.ResponseHeadersToAdd[0].Value)
			}
			s.Change(func(f *resp.Faults) { f.Reply = nil })
			time.Sleep(2 * watched)
			require.Contains(t, g.log(), "the server decides again")
		})
	}
}

// A changed file is in force within seconds. A file with a mistake changes nothing. A domain that has lost its http rules admits
// all, and /check asks those of all domains.
func TestReload(t *testing.T) {
	bubble(t, func(t *testing.T) {
		rules := func(domain, more string) string {
			return "domain: " + domain + "\nhttp: {trusted_proxies: [127.0.0.1], rules: [{name: all, rate_limit: {unit: day, requests_per_unit: 2" + more + "}}]}"
		}
		g := inside(t, inMemory(t), rules("one", ""))
		check := func(path, address string) int {
			return g.get(t, g.web+path, "X-Forwarded-For", address).StatusCode
		}
		require.Equal(t, []int{200, 200, 404}, []int{check("/check", "1.1.1.1"), check("/check/one", "1.1.1.1"), check("/check/two", "1.1.1.1")})
		g.writes(t, "two.yaml", rules("two", ", odd: 1"))
		require.Contains(t, g.log(), "rule two.http.all: unknown key 'odd'")
		g.writes(t, "two.yaml", rules("two", ", algorithm: gcra, burst: 4000000000"))
		require.Contains(t, g.log(), "rule two.http.all: throttle: bad parameters: a burst must drain within 100 years")
		g.writes(t, "two.yaml", rules("two", ""))
		require.Contains(t, g.log(), "/check asks the http rules of several domains")
		require.Contains(t, g.page(t, g.debug+"/rules"), `"two.http.all"`)
		require.Equal(t, []int{429, 200, 429}, []int{check("/check", "1.1.1.1"), check("/check/two", "1.1.1.1"), check("/check/two", "1.1.1.1")})
		g.writes(t, "two.yaml", "domain: two")
		require.Equal(t, []int{200, 429, 200}, []int{check("/check/two", "1.1.1.1"), check("/check", "1.1.1.1"), check("/check", "2.2.2.2")})
		require.Equal(t, 2, strings.Count(g.log(), "without http rules\" reason=no_domain path=/check/two"), "once in 10 s")
		require.Equal(t, []int{2, 3, 0}, []int{strings.Count(g.log(), "the rules are refused"), strings.Count(g.log(), "rules loaded"), strings.Count(g.log(), "X-Forwarded-Uri")})
		for stale, names := range [][2]string{{".away", ""}, {"", ".away"}} {
			require.NoError(t, os.Rename(g.folder+names[1], g.folder+names[0]))
			time.Sleep(3*watched + time.Millisecond)
			require.Contains(t, g.page(t, g.debug+"/metrics"), fmt.Sprintf("\ngothrottle_gateway_rules_stale %d\n", 1-stale))
		}
		none := inside(t, inMemory(t), "domain: [", "FORCE_START_WITHOUT_INITIAL_CONFIG=true")
		time.Sleep(5 * watched) // what is refused again doesn't count again
		require.Contains(t, g.page(t, g.debug+"/metrics"), `loads_total{outcome="refused"} 3`)
		require.Contains(t, none.page(t, none.debug+"/metrics"), `loads_total{outcome="refused"} 1`)
		require.Equal(t, 1, strings.Count(none.log(), "refused, and none are in force"))
		require.Equal(t, 503, none.get(t, none.web+"/check").StatusCode)
		require.Contains(t, none.page(t, none.debug+"/metrics"), `refused_requests_total{reason="no_rules"} 1`)
	})
}

// Bad requests are errors of the protocol, and leave no line in the log.
func TestBadRequests(t *testing.T) {
	g := start(t, served(t).Addr, ours)
	before := g.log()
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
	require.Equal(t, http.StatusNotFound, g.get(t, g.web+"/json").StatusCode) // who reaches it can give hits back
	require.Equal(t, "OK o4", g.ask(t, "d", "fixed=a"))
	require.Equal(t, "OK o0", g.ask(t, "other", "fixed=a"))
	require.Equal(t, before, g.log())
	require.Contains(t, g.page(t, g.debug+"/metrics"), `gothrottle_gateway_refused_requests_total{reason="invalid"} `)
}

// A request's own limit has its multiplier: 3 per 30 seconds.
func TestOverride_multiplier(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := inMemory(t)
		g, req := inside(t, s, ours), request("d", "own=a>3")
		req.Descriptors[0].Limit.Unit, req.Descriptors[0].Limit.UnitMultiplier = typev3.RateLimitUnit_SECOND, wrapperspb.UInt32(30)
		for n := range 7 {
			r, err := g.ShouldRateLimit(t.Context(), req)
			require.NoError(t, err)
			require.Equal(t, n > 2, r.OverallCode == pb.RateLimitResponse_OVER_LIMIT)
			require.EqualValues(t, 30, r.Statuses[0].CurrentLimit.UnitMultiplier.GetValue())
			time.Sleep(2 * time.Second)
		}
		for times := range uint32(100) { // a process keeps what begins keys
			req.Descriptors[0].Limit.UnitMultiplier.Value = times + 1
			_, err := g.ShouldRateLimit(t.Context(), req)
			require.NoError(t, err)
		}
		begins := map[string]int{}
		for _, key := range s.Memory().Keys() {
			begins[strings.Split(key, ":")[0]]++
		}
		require.Equal(t, map[string]int{"fixed_window.own": 100}, begins)
		for _, wrong := range []uint32{0, math.MaxUint32} {
			req.Descriptors[0].Limit.Unit, req.Descriptors[0].Limit.UnitMultiplier = typev3.RateLimitUnit_YEAR, wrapperspb.UInt32(wrong)
			_, err := g.ShouldRateLimit(t.Context(), req)
			require.ErrorContains(t, err, "a limit of the request has the unit")
		}
	})
}
