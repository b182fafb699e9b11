package main

import (
	"context"
	"flag"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// Watching reads the counters and the table of GO.TOP. It changes nothing that it counts but the looks themselves.
func TestWatch_reads(t *testing.T) {
	_, rdb := startServer(t)
	for range 7 {
		require.NoError(t, rdb.Do(t.Context(), "GO.THROTTLE", "api:bob", 4, 1, 3600).Err())
	}
	require.Error(t, rdb.Do(t.Context(), "GO.THROTTLE", "api:bob", "x", 1, 3600).Err())
	w := newWatcher(rdb)
	seen := w.read(t.Context())
	require.Empty(t, seen.Error)
	require.NotEmpty(t, seen.Version)
	require.Equal(t, []TopKey{{"0:api:bob", 2, 0}}, seen.Top)
	require.Equal(t, Counter{Name: "GO.THROTTLE", Admitted: 5, Limited: 2, Errors: 1}, counts(t, rdb, "GO.THROTTLE"))
	w.asked = time.Now().Add(time.Minute) // a slow machine must not make a second out of the next lines
	require.Equal(t, seen, w.read(t.Context()), "a second page asks the server again")
	require.Equal(t, "quota", askInfoKind(t, rdb, "GO.QUOTA", "q", 5, 60))
	require.Nil(t, askInfo(t.Context(), rdb, "none").Fields)
}

func askInfoKind(t *testing.T, rdb *redis.Client, call ...any) string {
	t.Helper()
	require.NoError(t, rdb.Do(t.Context(), call...).Err())
	i := askInfo(t.Context(), rdb, call[1].(string))
	require.Empty(t, i.Error)
	require.Equal(t, "kind", i.Fields[0].Name)
	return i.Fields[0].Value
}

// Without a table GO.TOP is an error, which the server counts and alerts tell. So it is not asked.
func TestWatch_makesNoErrors(t *testing.T) {
	_, rdb := startServer(t, "--gothrottle.top-keys", "0")
	seen := newWatcher(rdb).ask(t.Context())
	require.Empty(t, seen.Error)
	require.Zero(t, seen.TopKeys)
	require.Zero(t, counts(t, rdb, "GO.TOP").Errors)
}

// A user with the rights that docs/playground.md names can watch. The user of another name for the module can, too.
func TestWatch_rights(t *testing.T) {
	addr, rdb := startServer(t)
	require.NoError(t, rdb.Do(t.Context(), "GO.QUOTA", "q", 5, 60).Err())
	require.NoError(t, rdb.Do(t.Context(), "ACL", "SETUSER", "watcher", "on", ">secret", "+info", "+go.top", "+go.info", "%R~*").Err())
	require.NoError(t, rdb.ConfigResetStat(t.Context()).Err())
	o, err := settings{addr: addr, user: "watcher", pass: "secret"}.options()
	require.NoError(t, err)
	watcher := redis.NewClient(o)
	defer watcher.Close()
	require.Empty(t, newWatcher(watcher).ask(t.Context()).Error)
	require.Empty(t, askInfo(t.Context(), watcher, "q").Error)
	errors, err := rdb.Info(t.Context(), "errorstats").Result()
	require.NoError(t, err)
	require.NotContains(t, errors, "errorstat_", "a command that the user may not send, or that the server does not know")
	refused, err := rdb.Do(t.Context(), "ACL", "LOG").Slice()
	require.NoError(t, err)
	require.Empty(t, refused)
	require.Contains(t, newWatcher(redis.NewClient(&redis.Options{Addr: addr, Username: "watcher", Password: "wrong"})).ask(t.Context()).Error, "WRONGPASS")
}

// A page that only watches can send no traffic, and the program ends at once if there is no module.
func TestWatch_onlyReads(t *testing.T) {
	addr, rdb := startServer(t)
	url, _ := startPage(t, addr, rdb, false)
	for _, path := range []string{"/api/sessions", "/api/sessions/x/lanes", "/api/sessions/x/call"} {
		code, _ := post(t, url+path, "")
		require.Contains(t, []int{http.StatusNotFound, http.StatusMethodNotAllowed}, code, path)
	}
	require.Empty(t, keys(t, rdb))
	require.Equal(t, "CL.THROTTLE GO.THROTTLE_RO", strings.Join([]string{commandName("cl_throttle"), commandName("throttle_ro")}, " "))
}

var cost = flag.Int("cost", 0, "how many looks at a server: measure what one costs it")

// What watching costs: the processor time of the server for one look, with a full table of GO.TOP. A look is due once a
// second, so 100 microseconds are 0.01 % of a processor.
func TestWatch_cost(t *testing.T) {
	if *cost == 0 {
		t.Skip("go -C playground test -run Watch_cost -cost 2000 measures it")
	}
	_, rdb := startServer(t, "--gothrottle.top-keys", "1000")
	for i := range 3000 {
		require.NoError(t, rdb.Do(t.Context(), "GO.QUOTA", i%1000, 1, 3600).Err())
	}
	before := processorTime(t, rdb)
	time.Sleep(5 * time.Second)
	idle := processorTime(t, rdb) - before
	w := newWatcher(rdb)
	before, began := processorTime(t, rdb), time.Now()
	for range *cost {
		require.Empty(t, w.ask(t.Context()).Error)
	}
	used := processorTime(t, rdb) - before - idle*time.Since(began)/(5*time.Second)
	t.Logf("one look costs the server %s of processor time", used/time.Duration(*cost))
}

func processorTime(t *testing.T, rdb *redis.Client) (sum time.Duration) {
	t.Helper()
	text, err := rdb.Info(context.Background(), "cpu").Result()
	require.NoError(t, err)
	for line := range strings.SplitSeq(text, "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		if name == "used_cpu_sys" || name == "used_cpu_user" {
			d, err := time.ParseDuration(value + "s")
			require.NoError(t, err)
			sum += d
		}
	}
	return sum
}
