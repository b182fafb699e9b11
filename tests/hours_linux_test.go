package tests

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
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

// hourly is how long the limits of a long run last: with hourlyNames for each kind of limiter and hourlyRate calls a second,
// about a million keys exist at any time.
const (
	hourly      = 20 * time.Minute
	hourlyNames = 1_000_000
	hourlyRate  = 1300
)

// calls makes calls of a Go client and of a gateway until ended is closed, on keys that come and go.
func (s *server) calls(gateway string, ended <-chan struct{}) (wait func()) {
	rdb := s.run.Client(func(o *redis.Options) { o.ContextTimeoutEnabled = true })
	s.t.Cleanup(func() { rdb.Close() })
	client, err := throttle.New(rdb, throttle.Timeout(time.Minute))
	require.NoError(s.t, err)
	kinds := []throttle.Allower{client.Rate("t", throttle.Per(1, hourly).Burst(9)),
		client.Window("w", 9, hourly), client.Quota("q", 9, hourly)}
	budget := client.Rate("b", throttle.PerSecond(100), throttle.Budget(10, time.Second))
	every := func(rate, names int, call func(name string) error) func() {
		return func() {
			for tick := time.Tick(time.Second / time.Duration(rate)); ; {
				select {
				case <-ended:
					return
				case <-tick:
				}
				if err := call(strconv.Itoa(rand.IntN(names))); err != nil {
					s.t.Error(err)
				}
			}
		}
	}
	allow := func(a throttle.Allower) func(string) error {
		return func(name string) error {
			_, err := a.Allow(ctx, name)
			return err
		}
	}
	var running sync.WaitGroup
	for _, kind := range kinds {
		running.Go(every(hourlyRate/len(kinds), hourlyNames, allow(kind)))
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
	return running.Wait
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
func (s *server) gatewayProgram() (url, pid string) {
	folder, port, web := s.t.TempDir(), servers.FreePort(), servers.FreePort()
	require.NoError(s.t, os.WriteFile(filepath.Join(folder, "rules.yaml"),
		[]byte("domain: d\ndescriptors: [{key: k, rate_limit: {unit: minute, requests_per_unit: 5}}]\n"), 0o600))
	cmd := exec.Command(os.Getenv("GOTHROTTLE_GATEWAY"))
	cmd.Env = []string{"REDIS_URL=" + s.run.Addr, "CONFIG=" + folder + "/rules.yaml", "HOST=127.0.0.1", "GRPC_HOST=127.0.0.1",
		"DEBUG_HOST=127.0.0.1", "PORT=" + web, "GRPC_PORT=" + servers.FreePort(), "DEBUG_PORT=" + port, "LOG_LEVEL=error"}
	servers.Background(s.t, cmd)
	eventually(s.t, "the gateway is ready", func() bool {
		r, err := http.Get("http://127.0.0.1:" + web + "/healthcheck")
		return err == nil && r.Body.Close() == nil && r.StatusCode == http.StatusOK
	})
	return "http://127.0.0.1:" + port + "/json", strconv.Itoa(cmd.Process.Pid)
}

// The memory of a server with a million keys that come and go, of a Go client and of a gateway is the same after hours.
// MINUTES is the time, and the curve goes into the file GOTHROTTLE_CURVE.
func TestHours(t *testing.T) {
	if os.Getenv("GOTHROTTLE_CURVE") == "" {
		t.Skip("build/test-memory.sh runs this test, with CURVE")
	}
	s := start(t, options{})
	gateway, pid := s.gatewayProgram()
	curve, err := os.Create(os.Getenv("GOTHROTTLE_CURVE"))
	require.NoError(t, err)
	defer curve.Close()
	fmt.Fprintln(curve, "minute,keys,used,resident,client,gateway")
	ended := make(chan struct{})
	wait := s.calls(gateway, ended)
	samples := make([][]int64, 4)
	for n := range setting(t, "MINUTES", 240) + 1 {
		u := s.usage()
		now := []int64{u.used, u.resident, resident(t, "self"), resident(t, pid)}
		fmt.Fprintf(curve, "%d,%d,%d,%d,%d,%d\n", n, s.DBSize(ctx).Val(), now[0], now[1], now[2], now[3])
		for i := range now {
			samples[i] = append(samples[i], now[i])
		}
		time.Sleep(time.Minute)
	}
	close(ended)
	wait()
	for i, what := range []string{"used memory", "the server", "the client", "the gateway"} {
		values := samples[i][len(samples[i])/4:] // until keys expire and the Go programs have what they need
		t.Logf("%s: grew by %d of %d bytes", what, growth(values), median(values))
		require.LessOrEqual(t, growth(values), median(values)/50, what)
	}
}
