package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"gothrottle/gateway/internal/rules"
	servers "gothrottle/tests/server"
)

// upstream starts envoyproxy/ratelimit with these rules, and returns its client when it has read them.
func upstream(t *testing.T, addr, rules string) pb.RateLimitServiceClient {
	t.Helper()
	program := os.Getenv("GOTHROTTLE_RATELIMIT")
	if program == "" {
		t.Skip("only with GOTHROTTLE_RATELIMIT: see make test-gateway")
	}
	root, env := t.TempDir(), environment(addr)
	require.NoError(t, os.MkdirAll(root+"/sub/config", 0o700))
	writeFile(t, root+"/sub/config/rules.yaml", rules)
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "RUNTIME_ROOT="+root, "RUNTIME_SUBDIRECTORY=sub", "REDIS_SOCKET_TYPE=tcp", "DISABLE_STATS=true",
		"LOG_LEVEL=error", "LIMIT_RESPONSE_HEADERS_ENABLED=true")
	for name, v := range env {
		cmd.Env = append(cmd.Env, name+"="+v)
	}
	servers.Background(t, cmd)
	client := pb.NewRateLimitServiceClient(dial(t, "127.0.0.1:"+env["GRPC_PORT"], insecure.NewCredentials()))
	until(t, "rules", func() bool {
		r, err := client.ShouldRateLimit(t.Context(), request("d", "to=1*0"))
		return err == nil && r.Statuses[0].CurrentLimit != nil
	})
	return client
}

// examples are rules like those of the README of envoyproxy/ratelimit, in one domain. Their windows are days, so that no
// window ends while a test runs.
const examples = `
domain: d
descriptors:
- {key: database, value: users, rate_limit: {unit: day, requests_per_unit: 5}}
- {key: database, value: default, rate_limit: {unit: day, requests_per_unit: 7}}
- {key: kind, value: marketing, descriptors: [{key: to, rate_limit: {unit: day, requests_per_unit: 3}}]}
- {key: to, rate_limit: {unit: day, requests_per_unit: 6}}
- {key: address, rate_limit: {unit: day, requests_per_unit: 9}}
- {key: address, value: 50.0.0.5, rate_limit: {unit: day, requests_per_unit: 0}}
- {key: k, value: v, rate_limit: {unit: day, requests_per_unit: 4}, descriptors: [{key: sub, rate_limit: {unit: day, requests_per_unit: 8}}]}
- {key: ldap, rate_limit: {unlimited: true}}
- {key: service, descriptors: [{key: user, value: a, shadow_mode: true, rate_limit: {unit: day, requests_per_unit: 2}}, {key: user, value: b, rate_limit: {unit: day, requests_per_unit: 4}}]}
- {key: one, value: "1", descriptors: [{key: user, value: a, rate_limit: {name: small, unit: day, requests_per_unit: 3}}]}
- {key: two, value: "2", descriptors: [{key: user, value: a, rate_limit: {replaces: [{name: small}], unit: day, requests_per_unit: 6}}]}
- {key: detail, detailed_metric: true, rate_limit: {unit: day, requests_per_unit: 5}}
- {key: path, value: /api*, rate_limit: {unit: day, requests_per_unit: 5}}
- {key: path, value: /api/v2, rate_limit: {unit: day, requests_per_unit: 3}}
- {key: route, value_to_metric: true, descriptors: [{key: method, rate_limit: {unit: day, requests_per_unit: 4}}]}
- {key: files, value: f/*, share_threshold: true, rate_limit: {unit: day, requests_per_unit: 9}, descriptors: [{key: to, rate_limit: {unit: day, requests_per_unit: 5}}]}
- {key: free, value: x}
`

var vocabulary = []string{
	"database=users", "database=default", "database=other", "kind=marketing,to=1", "kind=marketing,to=2", "to=1", "to=2", "to=", "address=50.0.0.5",
	"address=50.0.0.6", "k=v", "k=v,sub=1", "k=v,sub=2", "k=w", "k=v,sub=1,more=1", "ldap=x", "service=s,user=a", "service=s,user=b", "one=1,user=a", "two=2,user=a",
	"detail=a", "detail=b", "path=/api/v1", "path=/api/v2", "path=/apix", "route=r,method=GET", "route=q,method=GET", "files=f/1", "files=f/2", "files=f/1,to=1",
	"files=f/2,to=1", "free=x", "free=y", "nothing=x",
}

// randomRequest is one to four descriptors, some with hits or a limit of their own.
func randomRequest(r *rand.Rand) *pb.RateLimitRequest {
	var names []string
	for range 1 + r.IntN(4)*r.IntN(2) {
		name := vocabulary[r.IntN(len(vocabulary))]
		if r.IntN(4) == 0 {
			name += fmt.Sprint("*", r.IntN(4))
		}
		if r.IntN(8) == 0 {
			name += fmt.Sprint(">", r.IntN(30))
		}
		names = append(names, name)
	}
	req := request("d", names...)
	if r.IntN(3) == 0 {
		req.HitsAddend = uint32(r.IntN(4))
	}
	return req
}

// answer is what both programs must agree on.
func answer(r *pb.RateLimitResponse) string {
	text := r.OverallCode.String()
	for _, st := range r.Statuses {
		text += fmt.Sprintf(" [%s %v %d]", st.Code, st.CurrentLimit, st.LimitRemaining)
	}
	for _, h := range r.ResponseHeadersToAdd[:min(2, len(r.ResponseHeadersToAdd))] {
		text += " " + h.Key + "=" + h.Value
	}
	return text
}

// Random requests get the same codes, limits and remaining as from envoyproxy/ratelimit on the same server. Windows of each
// unit end when theirs end. GOTHROTTLE_CALLS is the number of requests, GOTHROTTLE_SEED the first seed.
func TestSideBySide(t *testing.T) {
	servers.Needed(t, "test-gateway")
	s, text := servers.New(t, servers.Options{}), examples
	for unit := range rules.Periods {
		text += fmt.Sprintf("- {key: %s, rate_limit: {unit: %s, requests_per_unit: 5}}\n", unit, unit)
	}
	other := upstream(t, s.Addr, text)
	text = strings.ReplaceAll(text, "unit: day", "unit: 24h") // which theirs doesn't read
	g := start(t, s.Addr, text, "LIMIT_RESPONSE_HEADERS_ENABLED=true")
	both := func(req *pb.RateLimitRequest) (want, got *pb.RateLimitResponse) {
		want, err := other.ShouldRateLimit(t.Context(), proto.Clone(req).(*pb.RateLimitRequest))
		require.NoError(t, err)
		got, err = g.ShouldRateLimit(t.Context(), req)
		require.NoError(t, err)
		return want, got
	}
	for unit := range rules.Periods {
		until(t, unit, func() bool { // a window may end between the two
			want, got := both(request("d", unit+"=x"))
			return answer(want) == answer(got) && want.Statuses[0].DurationUntilReset.Seconds == got.Statuses[0].DurationUntilReset.Seconds
		})
	}
	first, calls, made := setting("GOTHROTTLE_SEED", 0), setting("GOTHROTTLE_CALLS", 2400), 0
	for seed := first; made < calls; seed++ {
		_, err := s.Do("FLUSHALL")
		require.NoError(t, err)
		require.NoError(t, g.stop())
		g = start(t, s.Addr, text, "LIMIT_RESPONSE_HEADERS_ENABLED=true")
		r, story, day := rand.New(rand.NewPCG(uint64(seed), 0)), "", time.Now().Unix()/86400
		for range 200 {
			req := randomRequest(r)
			story += fmt.Sprintln(req)
			began := time.Now()
			want, got := both(req)
			apart := 2 + time.Since(began).Seconds() // the machine may be busy
			if time.Now().Unix()/86400 != day {
				break // windows have ended
			}
			require.Equal(t, answer(want), answer(got), "seed %d:\n%s", seed, story)
			for i, st := range want.Statuses {
				if st.DurationUntilReset != nil { // theirs has none with quota_mode
					require.InDelta(t, st.DurationUntilReset.Seconds, got.Statuses[i].DurationUntilReset.GetSeconds(), apart)
				}
			}
			made++
		}
	}
}

// setting returns a number of the environment.
func setting(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}
