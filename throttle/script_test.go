package throttle_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	servers "gothrottle/tests/server"
	"gothrottle/throttle"
)

// bare returns a client with Script of a server without the module, whose user has these rights, and its log.
func bare(t *testing.T, rights string, args ...string) (*servers.Server, *throttle.Client, *strings.Builder) {
	t.Helper()
	servers.Needed(t, "test-server")
	s, log := servers.New(t, servers.Options{Bare: true, Args: args}), new(strings.Builder)
	must(s.Do(append([]any{"ACL", "SETUSER", "u", "on", "nopass"}, words(rights)...)...))
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr, Username: "u", Password: "any", ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = rdb.Close() })
	return s, newReal(t, rdb, throttle.Script(), throttle.Timeout(patient), throttle.Logger(slog.New(slog.NewTextHandler(log, nil)))), log
}

func words(text string) (words []any) {
	for _, word := range strings.Fields(text) {
		words = append(words, word)
	}
	return words
}

// Errors of a script have the kinds that the module's have, also where servers add words about scripts.
func TestServer_errorsOfTheScript(t *testing.T) {
	s, c, _ := bare(t, "~* +@all")
	hour := c.Rate("t", throttle.PerHour(10))
	must(hour.Allow(background, "before"))
	must(s.Do("LPUSH", "t:list", 1))
	for _, step := range []struct {
		set, text string
		want      error
		ask       func() error
	}{
		{"", "WRONGTYPE ", throttle.ErrParams, func() error { return only(hour.Allow(background, "list")) }},
		{"", "use the module", throttle.ErrParams, func() error { return only(hour.With(throttle.Per(1, 2600*time.Hour)).Allow(background, "b")) }},
		{"", "named only once", throttle.ErrParams, func() error { return only(c.All(background, hour.Part("a", 1), hour.Part("a", 1))) }},
		{"CONFIG SET maxmemory 1", "OOM ", throttle.ErrUnavailable, func() error { return only(hour.Allow(background, "c")) }},
		{"CONFIG SET maxmemory 0", "", nil, func() error { return only(hour.Allow(background, "c")) }},
		{"REPLICAOF 127.0.0.1 1", "READONLY ", throttle.ErrUnavailable, func() error { return only(hour.Allow(background, "d")) }},
		{"REPLICAOF NO ONE", "", nil, func() error { return only(hour.Allow(background, "d")) }},
		{"ACL SETUSER u -time", "NOPERM ", throttle.ErrUnavailable, func() error { return only(hour.Allow(background, "e")) }},
		{"ACL SETUSER u +time -hset", "NOPERM ", throttle.ErrUnavailable, func() error { return only(hour.Allow(background, "e")) }},
		{"ACL SETUSER u -evalsha", "NOPERM ", throttle.ErrUnavailable, func() error { return only(hour.Allow(background, "e")) }},
	} {
		if step.set != "" {
			must(s.Do(words(step.set)...))
		}
		err := step.ask()
		require.ErrorIs(t, err, step.want, step.text)
		if step.text != "" {
			t.Log(err)
			require.ErrorContains(t, err, step.text)
		}
	}
}

// Check looks by EVAL and by EVALSHA, at a key of a limiter, and says in the log which way the server decides.
func TestServer_checkOfTheScript(t *testing.T) {
	const rights = "~t:* -@all +time +hlen +hmget"
	for _, row := range []struct {
		rights, arg string
		want        error
		text        string
	}{
		{rights + " +eval +evalsha", "", nil, `msg="throttle: the script decides" server=127.0.0.1:`},
		{rights + " +eval", "", throttle.ErrUnavailable, "'evalsha'"},
		{rights + " +evalsha", "", throttle.ErrUnavailable, "'eval'"},
		{rights + " +eval +evalsha -time", "", throttle.ErrUnavailable, "NOPERM"},
		{rights + " +@all", "EVAL", throttle.ErrNoModule, "cannot run gothrottle's script"},
	} {
		var args []string
		if row.arg != "" {
			args = []string{"--rename-command", row.arg, ""}
		}
		_, c, log := bare(t, row.rights, args...)
		rate := c.Rate("t", throttle.PerHour(10))
		err := c.Check(background)
		require.ErrorIs(t, err, row.want, row.text)
		if err == nil {
			require.Contains(t, log.String(), row.text)
		} else {
			require.ErrorContains(t, err, row.text)
		}
		if row.want == throttle.ErrNoModule { // nor do calls: the text can't be sent
			require.ErrorIs(t, only(rate.Allow(background, "")), throttle.ErrNoModule)
			require.Contains(t, log.String(), "this one runs no scripts")
		}
	}
}
