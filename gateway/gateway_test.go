package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	servers "gothrottle/tests/server"
)

// gateway is a program that runs in this process.
type gateway struct {
	pb.RateLimitServiceClient
	web, debug, grpc string // addresses
	folder           string // of the files "rules.yaml" and "log"
	conn             *grpc.ClientConn
	stop             func() error
}

// environment sends a program to a server, and all its listeners to 127.0.0.1.
func environment(addr string) map[string]string {
	return map[string]string{
		"REDIS_URL": addr, "HOST": "127.0.0.1", "GRPC_HOST": "127.0.0.1", "DEBUG_HOST": "127.0.0.1",
		"PORT": servers.FreePort(), "GRPC_PORT": servers.FreePort(), "DEBUG_PORT": servers.FreePort(),
	}
}

// start runs a gateway with these rules, and with more settings, NAME=value. Decisions have much time, because the machine
// may be busy.
func start(t *testing.T, addr, rules string, more ...string) *gateway {
	t.Helper()
	env := environment(addr)
	g := &gateway{web: "http://127.0.0.1:" + env["PORT"], debug: "http://127.0.0.1:" + env["DEBUG_PORT"], folder: t.TempDir()}
	writeFile(t, g.folder+"/rules.yaml", rules)
	env["CONFIG"], env["DECISION_TIMEOUT"] = g.folder+"/rules.yaml", "20s"
	for _, pair := range more {
		name, v, _ := strings.Cut(pair, "=")
		env[name] = v
	}
	g.grpc = "127.0.0.1:" + env["GRPC_PORT"]
	if socket := env["GRPC_UDS"]; socket != "" {
		g.grpc = "unix:" + socket
	}
	log, err := os.Create(g.folder + "/log")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, env, log) }()
	g.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { _ = g.stop() })
	require.Eventually(t, func() bool { return strings.Contains(g.log(t), "msg=ready") }, time.Minute, time.Millisecond)
	g.conn = dial(t, g.grpc, insecure.NewCredentials())
	g.RateLimitServiceClient = pb.NewRateLimitServiceClient(g.conn)
	return g
}

func (g *gateway) log(t *testing.T) string { return readFile(t, g.folder+"/log") }

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
func get(t *testing.T, url string, headers ...string) *http.Response {
	t.Helper()
	return send(t, http.MethodGet, url, headers...)
}

func send(t *testing.T, method, url string, headers ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

func body(t *testing.T, url string) string {
	t.Helper()
	text, err := io.ReadAll(get(t, url).Body)
	require.NoError(t, err)
	return string(text)
}

// request is a request with descriptors such as "user=bob,path=/". They may end with hits: "user=bob*3", and "user=bob*-3"
// gives back. "user=bob>50" brings a limit of 50 per day.
func request(domain string, descriptors ...string) *pb.RateLimitRequest {
	req := &pb.RateLimitRequest{Domain: domain}
	for _, text := range descriptors {
		text, units, own := strings.Cut(text, ">")
		text, hits, costs := strings.Cut(text, "*")
		d := &common.RateLimitDescriptor{}
		if own {
			n, _ := strconv.Atoi(units)
			d.Limit = &common.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: uint32(n), Unit: typev3.RateLimitUnit_DAY}
		}
		if costs {
			n, _ := strconv.Atoi(hits)
			d.IsNegativeHits, d.HitsAddend = n < 0, wrapperspb.UInt64(uint64(max(n, -n)))
		}
		for pair := range strings.SplitSeq(text, ",") {
			k, v, _ := strings.Cut(pair, "=")
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
		mark := " o"
		if st.Code != pb.RateLimitResponse_OK {
			mark = " X"
		}
		text += mark + strconv.Itoa(int(st.LimitRemaining))
	}
	return text
}

// server starts a server with the module of GOTHROTTLE_MODULE.
func server(t testing.TB) *servers.Server {
	t.Helper()
	servers.Needed(t, "test-gateway")
	return servers.New(t, servers.Options{})
}
