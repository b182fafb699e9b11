// Package hours watches the memory of a server, a Go client and a gateway for hours: build/test-memory.sh with CURVE.
package hours

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	servers "gothrottle/tests/server"
	"gothrottle/throttle"
)

// The limits' period, the names of each kind of limiter, and the calls a second. More than a million keys exist at a time.
const (
	period = 13 * time.Minute
	names  = 1_000_000
	rate   = 2000
)

// load makes a Go client and a gateway call until the test ends, on keys that come and go.
func load(t *testing.T, s *servers.Server, gateway string) {
	rdb := s.Client(func(o *redis.Options) { o.ContextTimeoutEnabled = true })
	t.Cleanup(func() { rdb.Close() })
	client, err := throttle.New(rdb, throttle.Timeout(time.Minute))
	require.NoError(t, err)
	kinds := []throttle.Allower{client.Rate("t", throttle.Per(1, period).Burst(9)),
		client.Window("w", 9, period), client.Quota("q", 9, period)}
	budget := client.Rate("b", throttle.PerSecond(100), throttle.Budget(10, time.Second))
	ended := make(chan struct{})
	every := func(rate, names int, call func(name string) error) func() {
		return func() {
			for tick := time.Tick(time.Second / time.Duration(rate)); ; {
				select {
				case <-ended:
					return
				case <-tick:
				}
				if err := call(strconv.Itoa(rand.IntN(names))); err != nil {
					t.Error(err)
				}
			}
		}
	}
	allow := func(a throttle.Allower) func(string) error {
		return func(name string) error {
			_, err := a.Allow(context.Background(), name)
			return err
		}
	}
	var running sync.WaitGroup
	for _, kind := range kinds {
		running.Go(every(rate/len(kinds), names, allow(kind)))
	}
	running.Go(every(200, 10_000, allow(budget)))
	running.Go(every(50, 50_000, func(name string) error {
		request := `{"domain":"d","descriptors":[{"entries":[{"key":"k","value":"` + name + `"}]}]}`
		r, err := http.Post(gateway, "application/json", strings.NewReader(request))
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, r.Body) // so that the connection is used again
		return errors.Join(err, r.Body.Close())
	}))
	t.Cleanup(func() {
		close(ended)
		running.Wait()
	})
}

// resident returns the resident memory of a process in bytes.
func resident(t testing.TB, pid string) (n int64) {
	t.Helper()
	status, err := os.ReadFile("/proc/" + pid + "/status")
	require.NoError(t, err)
	_, after, _ := strings.Cut(string(status), "\nVmRSS:")
	_, err = fmt.Sscan(after, &n)
	require.NoError(t, err)
	return 1024 * n
}

// gatewayProgram starts GOTHROTTLE_GATEWAY. It returns where it decides about JSON, and its pid.
func gatewayProgram(t *testing.T, s *servers.Server) (url, pid string) {
	folder, port, web := t.TempDir(), servers.FreePort(), servers.FreePort()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "rules.yaml"),
		[]byte("domain: d\ndescriptors: [{key: k, rate_limit: {unit: minute, requests_per_unit: 5}}]\n"), 0o600))
	cmd := exec.Command(os.Getenv("GOTHROTTLE_GATEWAY"))
	cmd.Env = []string{"REDIS_URL=" + s.Addr, "CONFIG=" + folder + "/rules.yaml", "HOST=127.0.0.1", "GRPC_HOST=127.0.0.1",
		"DEBUG_HOST=127.0.0.1", "PORT=" + web, "GRPC_PORT=" + servers.FreePort(), "DEBUG_PORT=" + port, "LOG_LEVEL=error"}
	servers.Background(t, cmd)
	require.NoError(t, servers.Await("the gateway is ready", func() bool {
		r, err := http.Get("http://127.0.0.1:" + web + "/healthcheck")
		return err == nil && r.Body.Close() == nil && r.StatusCode == http.StatusOK
	}))
	return "http://127.0.0.1:" + port + "/json", strconv.Itoa(cmd.Process.Pid)
}

// info returns a number of the server's INFO.
func info(t *testing.T, s *servers.Server, section, field string) (n int64) {
	t.Helper()
	text, err := s.Do("INFO", section)
	require.NoError(t, err)
	_, err = fmt.Sscan(servers.Field(text.(string), field), &n)
	require.NoError(t, err, field)
	return n
}

// The memory of a server with a million keys that come and go, of a Go client and of a gateway is the same after hours.
// MINUTES is the time, 240 if it isn't set, and the curve goes into the file GOTHROTTLE_CURVE.
func TestHours(t *testing.T) {
	if os.Getenv("GOTHROTTLE_CURVE") == "" {
		t.Skip("build/test-memory.sh runs this test, with CURVE")
	}
	minutes, err := strconv.Atoi(cmp.Or(os.Getenv("MINUTES"), "240"))
	require.NoError(t, err)
	s := servers.New(t, servers.Options{})
	gateway, pid := gatewayProgram(t, s)
	curve, err := os.Create(os.Getenv("GOTHROTTLE_CURVE"))
	require.NoError(t, err)
	defer curve.Close()
	fmt.Fprintln(curve, "minute,keys,used,resident,client,gateway")
	samples := make([][]int64, 4)
	load(t, s, gateway)
	server := strconv.FormatInt(info(t, s, "server", "process_id"), 10)
	for n := range minutes + 1 {
		keys, err := s.Do("DBSIZE")
		require.NoError(t, err)
		used := info(t, s, "memory", "used_memory")
		now := []int64{1000 * used / max(keys.(int64), 1), resident(t, server), resident(t, "self"), resident(t, pid)}
		fmt.Fprintf(curve, "%d,%d,%d,%d,%d,%d\n", n, keys, used, now[1], now[2], now[3])
		for i := range now {
			samples[i] = append(samples[i], now[i])
		}
		time.Sleep(time.Minute)
	}
	t.Logf("%d commands, %d keys that expired", info(t, s, "stats", "total_commands_processed"), info(t, s, "stats", "expired_keys"))
	percent := []int64{2, 2, 10, 10} // the heap of a Go program grows in steps of 4 MB
	for i, what := range []string{"used_memory per 1000 keys", "the server", "the client", "the gateway"} {
		values := samples[i][minutes/3:] // until keys expire and the Go programs have what they need
		third := max(len(values)/3, 1)
		first, last := median(values[:third]), median(values[len(values)-third:])
		t.Logf("%s: %d, then %d bytes", what, first, last)
		require.LessOrEqual(t, last, first+first*percent[i]/100, what)
	}
}

func median(values []int64) int64 { return slices.Sorted(slices.Values(values))[len(values)/2] }
