package monitoring

import (
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	servers "gothrottle/tests/server"
)

// exporterUser makes the user of the page and returns a client of that user. top also grants GO.TOP, as the page does.
func exporterUser(t *testing.T, port string, top bool) *redis.Client {
	t.Helper()
	for _, line := range code(t, "Set it up") {
		if strings.HasPrefix(line, "redis-cli ACL SETUSER exporter on ") || top && strings.HasPrefix(line, "redis-cli ACL SETUSER exporter +") {
			prints(t, line, port, "OK")
		}
	}
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, Username: "exporter", Password: "change-me", Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { client.Close() })
	return client
}

// scrape runs the script as redis_exporter does: a flat list of strings.
func scrape(t *testing.T, client *redis.Client, eval string) map[string]string {
	t.Helper()
	list, err := client.Do(ctx, eval, read(t, "exporter.lua"), 0, 0).Slice()
	require.NoError(t, err, eval)
	values := map[string]string{}
	for i := 0; i < len(list); i += 2 {
		name, value := list[i].(string), list[i+1].(string)
		_, err := strconv.ParseInt(value, 10, 64)
		assert.NoError(t, err, name)
		assert.NotContains(t, values, name, "it comes twice")
		values[name] = value
	}
	return values
}

// words splits a call at blanks.
func words(call string) (w []any) {
	for _, word := range strings.Fields(call) {
		w = append(w, word)
	}
	return w
}

// The script returns every number of INFO gothrottle, and that the module is loaded. The user of the page may run it, as
// EVAL or as EVAL_RO, on a master and on a replica without its master. Without the module it says so, and there is no error.
func TestScript_returnsINFO(t *testing.T) {
	servers.Needed(t, "test-monitoring")
	port, admin := startServer(t, servers.Options{})
	user := exporterUser(t, port, false)
	admin.ConfigSet(ctx, "gothrottle.policies", "a.b-c_d QUOTA 1 1s")
	for _, call := range []string{"GO.THROTTLE k 0 1 60", "GO.THROTTLE k 0 1 60", "CL.THROTTLE k 0 1 x"} {
		admin.Do(ctx, words(call)...)
	}
	want := map[string]string{"gothrottle_loaded": "1"}
	for line := range strings.Lines(admin.Info(ctx, "gothrottle").Val()) {
		field, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if _, err := strconv.Atoi(value); err == nil {
			want[field] = value
		}
	}
	assert.Subset(t, want, map[string]string{"gothrottle_throttle_limited": "1", "gothrottle_cl_throttle_errors": "1", "gothrottle_policies_a.b-c_d_near": "0"})
	assert.GreaterOrEqual(t, len(want), 60)
	admin.Do(ctx, "ACL", "SETUSER", "exporter", "+eval_ro")
	for range []string{"master", "replica"} {
		for _, eval := range []string{"EVAL", "EVAL_RO"} {
			assert.Equal(t, want, scrape(t, user, eval), eval)
		}
		admin.ConfigSet(ctx, "replica-serve-stale-data", "no")
		admin.SlaveOf(ctx, "127.0.0.1", servers.FreePort())
	}
	assert.Empty(t, admin.Do(ctx, "ACL", "LOG").Val(), "what the user was denied")
	port, admin = startServer(t, servers.Options{Bare: true})
	assert.Equal(t, map[string]string{"gothrottle_loaded": "0"}, scrape(t, exporterUser(t, port, false), "EVAL"))
	assert.NotContains(t, admin.Info(ctx, "errorstats").Val(), "errorstat", "without the module")
}

// The script returns the ten keys with the most denials if the user may call GO.TOP. Their names are printable and differ.
func TestScript_top(t *testing.T) {
	servers.Needed(t, "test-monitoring")
	port, admin := startServer(t, servers.Options{Args: []string{"--gothrottle.top-keys", "100"}})
	long := strings.Repeat("x", 200)
	for i, key := range []string{"once", "twice", "a", "b", "c", "d", "e", "f", "a b:[c]~", "é\\\n\x00\x7f\xff", long + "1", long + "2"} {
		for range i + 1 {
			admin.Do(ctx, "GO.THROTTLE", key, 0, 1, 60, 2)
		}
	}
	tops := func(client *redis.Client) map[string]string {
		got := scrape(t, client, "EVAL")
		maps.DeleteFunc(got, func(name, _ string) bool { return !strings.HasPrefix(name, "gothrottle_top_denied:") })
		return got
	}
	assert.Empty(t, tops(exporterUser(t, port, false)), "without the permission")
	assert.Empty(t, admin.Do(ctx, "ACL", "LOG").Val(), "what the user was denied")
	user, want := exporterUser(t, port, true), map[string]string{"gothrottle_top_denied:0:" + long[:126]: "12"}
	for i, name := range []string{"a", "b", "c", "d", "e", "f", "a b:[c]~", `\xc3\xa9\x5c\x0a\x00\x7f\xff`} {
		want["gothrottle_top_denied:0:"+name] = strconv.Itoa(i + 3)
	}
	assert.Equal(t, want, tops(user))
	admin.ConfigSet(ctx, "gothrottle.top-keys", "0")
	assert.Empty(t, tops(user), "with top-keys 0")
}
