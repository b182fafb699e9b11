package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/credentials/insecure"

	servers "gothrottle/tests/server"
)

var loadFor = flag.Duration("load", 0, "how long each load lasts, such as 5s; 0: TestLoad is skipped")
var loadCallers = flag.Int("callers", 64, "goroutines of TestLoad")

const loadRules = "domain: d\ndescriptors:\n- {key: k, rate_limit: {unit: hour, requests_per_unit: 1000000000}}\n"

// cpu returns the processor time of a process, in seconds.
func cpu(t *testing.T, pid int) float64 {
	t.Helper()
	text := readFile(t, fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+2:])
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / 100
}

// busy returns the processor time of a server, in seconds.
func busy(t *testing.T, s *servers.Server) float64 {
	t.Helper()
	info, err := s.Do("INFO", "cpu")
	require.NoError(t, err)
	user, _ := strconv.ParseFloat(servers.Field(fmt.Sprint(info), "used_cpu_user"), 64)
	system, _ := strconv.ParseFloat(servers.Field(fmt.Sprint(info), "used_cpu_sys"), 64)
	return user + system
}

// load makes calls from many goroutines over 4 connections, one after another. It returns decisions per second, processor
// time of the server, beyond that of an idle one, and of the program per decision in µs, and the 99th percentile in ms.
func load(t *testing.T, s *servers.Server, idle float64, at string, keys, programPID int) [4]float64 {
	t.Helper()
	var clients []pb.RateLimitServiceClient
	for range 4 {
		clients = append(clients, pb.NewRateLimitServiceClient(dial(t, at, insecure.NewCredentials())))
	}
	var mu sync.Mutex
	var took []time.Duration
	var wg sync.WaitGroup
	server, program, began := busy(t, s), cpu(t, programPID), time.Now()
	for i := range *loadCallers {
		wg.Go(func() {
			var own []time.Duration
			for n := i; time.Since(began) < *loadFor; n += *loadCallers {
				from := time.Now()
				_, err := clients[i%4].ShouldRateLimit(context.Background(), request("d", fmt.Sprint("k=", n*7919%keys)))
				if own = append(own, time.Since(from)); err != nil {
					panic(err)
				}
			}
			mu.Lock()
			took = append(took, own...)
			mu.Unlock()
		})
	}
	wg.Wait()
	slices.Sort(took)
	n, seconds := float64(len(took)), time.Since(began).Seconds()
	return [4]float64{n / seconds, (busy(t, s) - server - idle*seconds) / n * 1e6, (cpu(t, programPID) - program) / n * 1e6,
		float64(took[len(took)*99/100].Microseconds()) / 1000}
}

// Loads of one key and of 10,000, on this program and on envoyproxy/ratelimit in turn, and the ratios of their medians.
func TestLoad(t *testing.T) {
	if *loadFor == 0 {
		t.Skip("only with -load 5s")
	}
	s := server(t)
	_, other, otherPID := theirs(t, s.Addr, loadRules, "k=x")
	config := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(config, []byte(loadRules), 0o600))
	cmd := exec.Command("../build/out/gothrottle-gateway")
	env := environment(s.Addr)
	cmd.Env = append(os.Environ(), "CONFIG="+config, "LOG_LEVEL=error")
	for name, v := range env {
		cmd.Env = append(cmd.Env, name+"="+v)
	}
	require.NoError(t, servers.StartGuarded(cmd))
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	ours := "127.0.0.1:" + env["GRPC_PORT"]
	client := pb.NewRateLimitServiceClient(dial(t, ours, insecure.NewCredentials()))
	require.Eventually(t, func() bool {
		_, err := client.ShouldRateLimit(t.Context(), request("d", "k=x"))
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	before := busy(t, s)
	time.Sleep(*loadFor)
	idle := (busy(t, s) - before) / loadFor.Seconds()
	for _, keys := range []int{1, 10_000} {
		var seen [4][2][]float64 // by figure and program
		for range 5 {
			mine, their := load(t, s, idle, ours, keys, cmd.Process.Pid), load(t, s, idle, other, keys, otherPID)
			for i := range seen {
				seen[i][0], seen[i][1] = append(seen[i][0], mine[i]), append(seen[i][1], their[i])
			}
		}
		for i, name := range []string{"decisions/s", "server CPU, µs", "program CPU, µs", "p99, ms"} {
			slices.Sort(seen[i][0])
			slices.Sort(seen[i][1])
			a, b := seen[i][0][2], seen[i][1][2]
			t.Logf("%d keys: %-16s %10.1f, theirs %10.1f, ratio %.2f", keys, name, a, b, a/b)
		}
	}
}
