package main

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	servers "gothrottle/tests/server"
)

// gateway is a program that runs in this process.
type gateway struct {
	pb.RateLimitServiceClient
	web, debug, grpc, config string
	conn                     *grpc.ClientConn
	log                      *output
	stop                     func() error
}

// output is what the program prints.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// environment sends a program to a server, and all its listeners to 127.0.0.1.
func environment(addr string) map[string]string {
	return map[string]string{
		"REDIS_URL": addr, "HOST": "127.0.0.1", "GRPC_HOST": "127.0.0.1", "DEBUG_HOST": "127.0.0.1",
		"PORT": servers.FreePort(), "GRPC_PORT": servers.FreePort(), "DEBUG_PORT": servers.FreePort(),
	}
}

// start runs a gateway with these rules. More settings are pairs of a name and a value.
func start(t *testing.T, addr, rules string, more ...string) *gateway {
	t.Helper()
	env := environment(addr)
	for i := 0; i < len(more); i += 2 {
		env[more[i]] = more[i+1]
	}
	g := &gateway{web: "http://127.0.0.1:" + env["PORT"], debug: "http://127.0.0.1:" + env["DEBUG_PORT"], grpc: "127.0.0.1:" + env["GRPC_PORT"],
		config: filepath.Join(t.TempDir(), "rules.yaml"), log: &output{}}
	g.write(t, rules)
	env["CONFIG"] = g.config
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, func(name string) string { return env[name] }, nil, g.log) }()
	g.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { _ = g.stop() })
	require.Eventually(t, func() bool { return strings.Contains(g.log.String(), "msg=ready") }, time.Minute, time.Millisecond, g.log)
	g.conn = dial(t, g.grpc, insecure.NewCredentials())
	g.RateLimitServiceClient = pb.NewRateLimitServiceClient(g.conn)
	return g
}

func (g *gateway) write(t *testing.T, rules string) {
	t.Helper()
	require.NoError(t, os.WriteFile(g.config, []byte(rules), 0o600))
}

// request is a request of one hit with descriptors such as "user=bob,path=/".
func request(domain string, descriptors ...string) *pb.RateLimitRequest {
	req := &pb.RateLimitRequest{Domain: domain}
	for _, text := range descriptors {
		d := &common.RateLimitDescriptor{}
		for pair := range strings.SplitSeq(text, ",") {
			k, v, _ := strings.Cut(pair, "=")
			d.Entries = append(d.Entries, &common.RateLimitDescriptor_Entry{Key: k, Value: v})
		}
		req.Descriptors = append(req.Descriptors, d)
	}
	return req
}

// costs sets what the descriptors cost; a negative number gives back.
func costs(req *pb.RateLimitRequest, hits ...int64) *pb.RateLimitRequest {
	for i, n := range hits {
		req.Descriptors[i].IsNegativeHits = n < 0
		req.Descriptors[i].HitsAddend = wrapperspb.UInt64(uint64(max(n, -n)))
	}
	return req
}

// ask returns the code of each descriptor, "o" or "X", and what is left: "o4 X0". The overall code is the first word.
func (g *gateway) ask(t *testing.T, req *pb.RateLimitRequest) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), servers.Patience)
	defer cancel()
	response, err := g.ShouldRateLimit(ctx, req)
	require.NoError(t, err)
	return summary(response)
}

func summary(r *pb.RateLimitResponse) string {
	text := r.OverallCode.String()
	for _, st := range r.Statuses {
		mark := " o"
		if st.Code != pb.RateLimitResponse_OK {
			mark = " X"
		}
		text += mark + number(int64(st.LimitRemaining))
	}
	return text
}

// server starts a server with the module of GOTHROTTLE_MODULE.
func server(t *testing.T) *servers.Server {
	t.Helper()
	servers.Needed(t, "test-gateway")
	return servers.New(t, servers.Options{})
}

// visit asks /check about a request with these headers, which are pairs of a name and a value.
func (g *gateway) visit(t *testing.T, headers ...string) *http.Response {
	t.Helper()
	return get(t, g.web+"/check", headers...)
}
