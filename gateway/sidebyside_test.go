package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"gothrottle/gateway/internal/rules"
	servers "gothrottle/tests/server"
)

// theirs is envoyproxy/ratelimit.
var theirs = os.Getenv("GOTHROTTLE_RATELIMIT")

// process starts a program with these rules, which is ours or theirs, and waits until it limits the probe.
func process(t testing.TB, program, addr, rules, probe string) (at string, pid int) {
	t.Helper()
	if theirs == "" {
		t.Skip("only with GOTHROTTLE_RATELIMIT: see make test-gateway")
	}
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(root+"/sub/config", 0o700))
	writeFile(t, root+"/sub/config/rules.yaml", rules)
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "RUNTIME_ROOT="+root, "RUNTIME_SUBDIRECTORY=sub", "REDIS_SOCKET_TYPE=tcp", "DISABLE_STATS=true",
		"LOG_LEVEL=error", "LIMIT_RESPONSE_HEADERS_ENABLED=true")
	env := environment(addr)
	for name, v := range env {
		cmd.Env = append(cmd.Env, name+"="+v)
	}
	servers.Background(t, cmd)
	at = "127.0.0.1:" + env["GRPC_PORT"]
	client := pb.NewRateLimitServiceClient(dial(t, at, insecure.NewCredentials()))
	until(t, "rules", func() bool {
		r, err := client.ShouldRateLimit(t.Context(), request("d", probe+"*0"))
		return err == nil && r.Statuses[0].CurrentLimit != nil
	})
	return at, cmd.Process.Pid
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
	s, text := server(t), examples
	for unit := range rules.Periods {
		text += fmt.Sprintf("- {key: %s, rate_limit: {unit: %s, requests_per_unit: 5}}\n", unit, unit)
	}
	at, _ := process(t, theirs, s.Addr, text, "to=1")
	other := pb.NewRateLimitServiceClient(dial(t, at, insecure.NewCredentials()))
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

// cpu returns the processor time of a process, in seconds.
func cpu(b *testing.B, pid int) (seconds float64) {
	b.Helper()
	_, text, _ := strings.Cut(readFile(b, fmt.Sprintf("/proc/%d/stat", pid)), ") ")
	for _, field := range strings.Fields(text)[11:13] { // user and system
		ticks, _ := strconv.ParseFloat(field, 64)
		seconds += ticks / 100
	}
	return seconds
}

// h2load makes calls for one key over 4 connections, 64 at once on each unless a rate is given, and takes little of the
// processors itself. It returns how long each took.
func h2load(b *testing.B, at string, more ...string) (took []time.Duration) {
	b.Helper()
	folder := b.TempDir()
	message, err := proto.Marshal(request("d", "k=x"))
	require.NoError(b, err)
	frame := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
	writeFile(b, folder+"/body", string(frame))
	cmd := exec.Command("h2load", append(more, "-n", strconv.Itoa(max(b.N, 4)), "-c", "4", "-m", "64", "-d", folder+"/body", "--log-file", folder+"/log",
		"-H", "content-type: application/grpc", "-H", "te: trailers", "http://"+at+pb.RateLimitService_ShouldRateLimit_FullMethodName)...)
	out, err := cmd.CombinedOutput()
	require.NoError(b, err, string(out))
	for line := range strings.Lines(readFile(b, folder+"/log")) { // start, status, µs
		us, err := strconv.Atoi(strings.Fields(line)[2])
		require.NoError(b, err)
		took = append(took, time.Duration(us)*time.Microsecond)
	}
	return took
}

// callers makes calls for many keys from 64 goroutines over 4 connections.
func callers(b *testing.B, at string) []time.Duration {
	var clients []pb.RateLimitServiceClient
	for range 4 {
		clients = append(clients, pb.NewRateLimitServiceClient(dial(b, at, insecure.NewCredentials())))
	}
	var next atomic.Int64
	took := make([]time.Duration, b.N)
	b.SetParallelism(64 / runtime.GOMAXPROCS(0))
	b.RunParallel(func(more *testing.PB) {
		for more.Next() {
			n, began := int(next.Add(1))-1, time.Now()
			_, err := clients[n%4].ShouldRateLimit(context.Background(), request("d", fmt.Sprint("k=", n*7919%10_000)))
			if took[n] = time.Since(began); err != nil {
				panic(err)
			}
		}
	})
	return took
}

// The same load on this program and on envoyproxy/ratelimit, on one server: see docs/gateway.md.
func BenchmarkLoad(b *testing.B) {
	const rules = "domain: d\ndescriptors:\n- {key: k, rate_limit: {unit: hour, requests_per_unit: 1000000000}}\n"
	s := server(b)
	other, otherPID := process(b, theirs, s.Addr, rules, "k=x")
	ours, pid := process(b, "../build/out/gothrottle-gateway", s.Addr, rules, "k=x")
	for name, play := range map[string]func(b *testing.B, at string) []time.Duration{
		"1_key":      func(b *testing.B, at string) []time.Duration { return h2load(b, at) },
		"1000_per_s": func(b *testing.B, at string) []time.Duration { return h2load(b, at, "--rps", "250") },
		"10000_keys": callers,
	} {
		for at, pid := range map[string]int{ours: pid, other: otherPID} {
			program := map[string]string{ours: "ours", other: "theirs"}[at]
			b.Run(name+"/"+program, func(b *testing.B) {
				server, own := cpu(b, s.Process.Process.Pid), cpu(b, pid)
				took := play(b, at)
				slices.Sort(took)
				n := float64(len(took))
				b.ReportMetric(n/b.Elapsed().Seconds(), "decisions/s")
				b.ReportMetric((cpu(b, s.Process.Process.Pid)-server)/n*1e6, "server-µs/op")
				b.ReportMetric((cpu(b, pid)-own)/n*1e6, "program-µs/op")
				b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
			})
		}
	}
}
