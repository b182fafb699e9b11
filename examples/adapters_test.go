package examples

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"gothrottle/commands/memory/resp"
	"gothrottle/throttle"
)

// newer is where build/test-languages.sh unpacks the redis-py of Debian 13.
const newer = "../build/out/newer/usr/"

// The clients decide as the server does, also while it fails. The stores do what their frameworks ask of them, also what no
// request of TestExamples asks.
func TestAdapters(t *testing.T) {
	node := func(name string) []string {
		return []string{"../build/out/node/node_modules/.bin/node", "--test", "--test-force-exit", "../build/out/node/" + name + ".test.js"}
	}
	const python, newest = "../build/out/venv/bin/python", "PYTHONPATH=" + newer + "lib/python3/dist-packages"
	for name, suite := range map[string][]string{
		"node, client":       node("client"),
		"node, limits":       node("limits"),
		"node, stores":       node("stores"),
		"python, client":     {python, "-I", "../adapters/python/tests/client_test.py"},
		"python, redis-py 6": {"env", newest, python, "../adapters/python/tests/client_test.py"},
		"python, storage":    {python, "-I", "../adapters/python/tests/storage_test.py"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, suite[0], suite[1:]...)
			cmd.Env = append(os.Environ(), deployments(t)...)
			cmd.Env = append(cmd.Env, failing(t)...)
			said, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", said)
		})
	}
}

// deployments starts a server, one with TLS, one without the module, a cluster, and a master that a Sentinel knows. The
// environment says where they are.
func deployments(t *testing.T) []string {
	script, err := filepath.Abs("../script/gothrottle.lua")
	require.NoError(t, err)
	now := stopped()
	plain := startServer(t, resp.Options{Now: now, Debug: true})
	secure := startServer(t, resp.Options{Now: now, TLS: true, Debug: true})
	bare := startServer(t, resp.Options{Now: now, Bare: true, Debug: true})
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, secure.CA(), 0o600))
	n, sockets, addrs := resp.NewNetwork(resp.Options{Now: now, Debug: true}), make([]net.Listener, 5), make([]string, 5)
	t.Cleanup(n.Close)
	for i := range addrs {
		sockets[i] = listen(t)
		addrs[i] = sockets[i].Addr().String()
	}
	n.NewCluster(addrs[:3]...)
	n.NewSentinel("main", n.Add(addrs[3]), addrs[4])
	for i, addr := range addrs {
		go n.Server(addr).Serve(sockets[i])
	}
	return []string{"ADDR=" + plain.Addr, "BARE=" + bare.Addr, "TLS=" + secure.Addr, "CA=" + ca,
		"CLUSTER=" + addrs[0], "SENTINEL=" + addrs[4], "SCRIPT=" + script}
}

// failing starts a server for each row of adapters/faults.json. A row says which fault begins after the first call for a key,
// what the next call is answered, and the least and the most that it takes. When the fault has ended, the server decides again.
func failing(t *testing.T) []string {
	file, err := filepath.Abs("../adapters/faults.json")
	require.NoError(t, err)
	var rows []any
	require.NoError(t, json.Unmarshal([]byte(read(t, file)), &rows))
	addrs := make([]string, len(rows))
	for i := range rows {
		addrs[i] = startServer(t, resp.Options{Debug: true}).Addr
	}
	return []string{"FAULTS=" + file, "SERVERS=" + strings.Join(addrs, " "), "TICKETS=" + filepath.Join(filepath.Dir(file), "tickets.json")}
}

// The Go client does with the rows of adapters/faults.json what the others do.
func TestFaults(t *testing.T) {
	var rows []struct {
		Name, Debug, Answer string
		Taken               [2]int64
	}
	require.NoError(t, json.Unmarshal([]byte(read(t, "../adapters/faults.json")), &rows))
	for _, row := range rows {
		t.Run(row.Name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, resp.Options{Debug: true})
			control := redis.NewClient(&redis.Options{Addr: s.Addr, PoolSize: 1})
			defer control.Close()
			debug := func(words string) {
				args := []any{"DEBUG"}
				for _, word := range strings.Fields(words) {
					args = append(args, word)
				}
				require.NoError(t, control.Do(t.Context(), args...).Err())
			}
			debug("FAULT NONE")
			client, err := throttle.Open("redis://"+s.Addr, throttle.Timeout(time.Second), throttle.Logger(slog.New(slog.DiscardHandler)))
			require.NoError(t, err)
			defer client.Close()
			daily := client.Quota("faults", 100, 24*time.Hour)
			left := func() (remaining int64) {
				until(t, "the server decides", func(int) bool {
					r, err := daily.Peek(t.Context(), "k")
					remaining = r.Remaining
					return err == nil
				})
				return remaining
			}
			before := left()
			debug(row.Debug)
			_, err = daily.Allow(t.Context(), "k")
			answer := map[bool]string{true: "unavailable", false: "fault"}[errors.Is(err, throttle.ErrUnavailable)]
			if err == nil {
				answer = "decided"
			}
			if row.Answer != "either" {
				require.Equal(t, row.Answer, answer, err)
			}
			debug("FAULT NONE")
			taken := before - left()
			require.True(t, row.Taken[0] <= taken && taken <= row.Taken[1], "%d units were taken", taken)
		})
	}
}

// shared takes 3 units of each limiter of a name, and a slot.
var shared = map[string][]string{
	"node": {"node_modules/.bin/node", "--input-type=module", "-e", `
		import { connect } from 'gothrottle';
		const limits = await connect(process.env.URL, { timeout: 20_000, prefix: 'app:' });
		await limits.rate('rate', { perMinute: 5, burst: 9 }).allow('bob', 3);
		await limits.window('window', { limit: 9, per: '1h' }).allow('bob', 3);
		await limits.quota('quota', { perMonth: 9, zone: 'Asia/Kolkata' }).allow('bob', 3);
		await limits.all(limits.slots('slots', { limit: 9, ttl: '1h' }).part('bob', 'a'));
		const parts = [limits.quota('own', { perDay: 9 }).part('{a}bob', 3), limits.rate('all', { perMinute: 5, burst: 9 }).part('{a}', 3)];
		await limits.resume(process.env.TICKET, parts).settle(4);
		console.log((await limits.hold(parts)).ticket);
		process.exit();`},
	"python": {"../venv/bin/python", "-I", "-c", `
import gothrottle, os
limits = gothrottle.connect(os.environ["URL"], timeout=20, prefix="app:")
limits.rate("rate", per_minute=5, burst=9).allow("bob", 3)
limits.window("window", 9, "1h").allow("bob", 3)
limits.quota("quota", 9, "1mo", zone="Asia/Kolkata").allow("bob", 3)
limits.all(limits.slots("slots", 9, ttl="1h").part("bob", "a"))
parts = limits.quota("own", 9, "1d").part("{a}bob", 3), limits.rate("all", per_minute=5, burst=9).part("{a}", 3)
limits.resume(os.environ["TICKET"], *parts).settle(4)
print(limits.hold(*parts).ticket)`},
}

// A service in another language and one in Go share the limits of a name.
func TestAdapters_shareWithGo(t *testing.T) {
	for language := range shared {
		t.Run(language, func(t *testing.T) { sharesWithGo(t, shared[language]) })
	}
}

func sharesWithGo(t *testing.T, words []string) {
	clock := stopped()
	s := startServer(t, resp.Options{Now: clock})
	client, err := throttle.Open("redis://"+s.Addr, throttle.Timeout(time.Minute), throttle.KeyPrefix("app:"))
	require.NoError(t, err)
	defer client.Close()
	own, all := client.Quota("own", 9, 24*time.Hour), client.Rate("all", throttle.PerMinute(5).Burst(9))
	held, err := own.Hold(t.Context(), "{a}bob", 3, all.Part("{a}", 3))
	require.NoError(t, err)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir, cmd.Env = "../build/out/node", append(os.Environ(), "URL=redis://"+s.Addr, "TICKET="+held.Ticket())
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", said)
	held, err = client.Resume(strings.TrimSpace(string(said)), own.Part("{a}bob", 0), all.Part("{a}", 0))
	require.NoError(t, err)
	require.NoError(t, held.Settle(t.Context(), 5)) // it has settled Go's hold by 4, and Go settles its own by 5
	for key, peek := range map[string]func(context.Context, string) (throttle.Result, error){"{a}bob": own.Peek, "{a}": all.Peek} {
		r, err := peek(t.Context(), key)
		require.NoError(t, err)
		require.Zero(t, r.Remaining, key)
	}
	kolkata, err := time.LoadLocation("Asia/Kolkata")
	require.NoError(t, err)
	for name, peek := range map[string]func(context.Context, string) (throttle.Result, error){
		"rate":   client.Rate("rate", throttle.PerMinute(5).Burst(9)).Peek,
		"window": client.Window("window", 9, time.Hour).Peek,
		"quota":  client.Quota("quota", 9, throttle.Month, throttle.In(kolkata)).Peek,
		"slots": func(ctx context.Context, key string) (throttle.Result, error) {
			return client.Slots("slots", 9, time.Hour).Peek(ctx, key, "b")
		},
	} {
		r, err := peek(t.Context(), "bob")
		require.NoError(t, err, name)
		require.EqualValues(t, map[bool]int{true: 8, false: 6}[name == "slots"], r.Remaining, name)
		if now := clock().In(kolkata); name == "quota" {
			month := time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, kolkata)
			require.InDelta(t, month.Sub(now), r.ResetAfter, float64(time.Millisecond))
		}
	}
}
