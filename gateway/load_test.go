package main

import (
	"context"
	"flag"
	"fmt"
	"os"
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
var loadRate = flag.Float64("rate", 2000, "decisions per second of the open loop of TestLoad")
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

// load makes calls from many goroutines over 4 connections: one after another, or at a rate. Then each call is due at its
// instant, whatever became of those before, and takes from there on. It returns decisions per second, processor time of the
// server, beyond that of an idle one, and of the program per decision in µs, and the 99th percentile in ms.
func load(t *testing.T, s *servers.Server, idle, rate float64, at string, keys, programPID int) [4]float64 {
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
				due := time.Now()
				if rate > 0 {
					due = began.Add(time.Duration(float64(n) / rate * 1e9))
					time.Sleep(time.Until(due))
				}
				_, err := clients[i%4].ShouldRateLimit(context.Background(), request("d", fmt.Sprint("k=", n*7919%keys)))
				if own = append(own, time.Since(due)); err != nil {
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
	_, ours, pid := process(t, "../build/out/gothrottle-gateway", s.Addr, "k=x", "CONFIG="+config, "LOG_LEVEL=error")
	before := busy(t, s)
	time.Sleep(*loadFor)
	idle := (busy(t, s) - before) / loadFor.Seconds()
	compare := func(keys int, rate float64) {
		var seen [4][2][]float64 // by figure and program
		for range 5 {
			mine, their := load(t, s, idle, rate, ours, keys, pid), load(t, s, idle, rate, other, keys, otherPID)
			for i := range seen {
				seen[i][0], seen[i][1] = append(seen[i][0], mine[i]), append(seen[i][1], their[i])
			}
		}
		for i, name := range []string{"decisions/s", "server CPU, µs", "program CPU, µs", "p99, ms"} {
			slices.Sort(seen[i][0])
			slices.Sort(seen[i][1])
			a, b := seen[i][0][2], seen[i][1][2]
			t.Logf("%d keys, %g/s: %-16s %10.1f, theirs %10.1f, ratio %.2f", keys, rate, name, a, b, a/b)
		}
	}
	for _, keys := range []int{1, 10_000} {
		compare(keys, 0)
		compare(keys, *loadRate)
	}
}
