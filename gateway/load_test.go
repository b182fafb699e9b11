package main

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	servers "gothrottle/tests/server"
)

var loadFor = flag.Duration("load", 0, "how long each load lasts, such as 5s; 0: TestLoad is skipped")
var loadRate = flag.Float64("rate", 1000, "decisions per second of the open loop of TestLoad")
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

// h2load makes calls for one key over 4 connections, 64 at once on each, and takes little of the processors itself. It
// returns how long each took.
func h2load(t *testing.T, at string) (took []time.Duration) {
	t.Helper()
	folder := t.TempDir()
	message, err := proto.Marshal(request("d", "k=x"))
	require.NoError(t, err)
	frame := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
	writeFile(t, folder+"/body", string(frame))
	seconds := strconv.Itoa(int(loadFor.Seconds()))
	cmd := exec.Command("h2load", "-D", seconds, "-c", "4", "-m", "64", "-d", folder+"/body", "--log-file", folder+"/log",
		"-H", "content-type: application/grpc", "-H", "te: trailers", "http://"+at+pb.RateLimitService_ShouldRateLimit_FullMethodName)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	for line := range strings.Lines(readFile(t, folder+"/log")) { // start, status, µs
		us, err := strconv.Atoi(strings.Fields(line)[2])
		require.NoError(t, err)
		took = append(took, time.Duration(us)*time.Microsecond)
	}
	return took
}

// callers makes calls from many goroutines over 4 connections: one after another, or at a rate. Then each call is due at its
// instant, whatever became of those before, and takes from there on. It returns how long each took.
func callers(t *testing.T, at string, keys int, rate float64) []time.Duration {
	t.Helper()
	var clients []pb.RateLimitServiceClient
	for range 4 {
		clients = append(clients, pb.NewRateLimitServiceClient(dial(t, at, insecure.NewCredentials())))
	}
	var wg sync.WaitGroup
	took, began := make([][]time.Duration, *loadCallers), time.Now()
	for i := range took {
		wg.Go(func() {
			for n := i; time.Since(began) < *loadFor; n += len(took) {
				due := time.Now()
				if rate > 0 {
					due = began.Add(time.Duration(float64(n) / rate * 1e9))
					time.Sleep(time.Until(due))
				}
				_, err := clients[i%4].ShouldRateLimit(context.Background(), request("d", fmt.Sprint("k=", n*7919%keys)))
				if took[i] = append(took[i], time.Since(due)); err != nil {
					panic(err)
				}
			}
		})
	}
	wg.Wait()
	return slices.Concat(took...)
}

// Loads on this program and on envoyproxy/ratelimit in turn: the medians of five rounds, and their ratios.
func TestLoad(t *testing.T) {
	if *loadFor == 0 {
		t.Skip("only with -load 5s")
	}
	s := server(t)
	_, other, otherPID := theirs(t, s.Addr, loadRules, "k=x")
	config := t.TempDir() + "/rules.yaml"
	writeFile(t, config, loadRules)
	_, ours, pid := process(t, "../build/out/gothrottle-gateway", s.Addr, "k=x", "CONFIG="+config, "LOG_LEVEL=error")
	figures := []string{"decisions/s", "server CPU, µs", "program CPU, µs", "p99, ms"}
	before := busy(t, s)
	time.Sleep(*loadFor)
	idle := (busy(t, s) - before) / loadFor.Seconds()
	measure := func(play func(at string) []time.Duration, at string, pid int, all *[4][]float64) { // per decision, and beyond an idle server's
		server, program, began := busy(t, s), cpu(t, pid), time.Now()
		took := play(at)
		slices.Sort(took)
		n, seconds := float64(len(took)), time.Since(began).Seconds()
		for i, v := range []float64{n / seconds, (busy(t, s) - server - idle*seconds) / n * 1e6, (cpu(t, pid) - program) / n * 1e6,
			float64(took[len(took)*99/100].Microseconds()) / 1000} {
			all[i] = append(all[i], v)
			slices.Sort(all[i])
		}
	}
	for name, play := range map[string]func(at string) []time.Duration{
		"1 key, h2load":    func(at string) []time.Duration { return h2load(t, at) },
		"1 key, open loop": func(at string) []time.Duration { return callers(t, at, 1, *loadRate) },
		"10,000 keys":      func(at string) []time.Duration { return callers(t, at, 10_000, 0) },
	} {
		var mine, their [4][]float64
		for range 5 {
			measure(play, ours, pid, &mine)
			measure(play, other, otherPID, &their)
		}
		for i, figure := range figures {
			t.Logf("%-17s %-16s %10.1f, theirs %10.1f, ratio %.2f", name, figure, mine[i][2], their[i][2], mine[i][2]/their[i][2])
		}
	}
}
