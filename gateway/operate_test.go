package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"

	"gothrottle/commands/memory"
	"gothrottle/commands/memory/resp"
)

const operated = `
domain: d
hash_tag: descriptor
descriptors:
- {key: fixed, rate_limit: {unit: day, requests_per_unit: 2}}
- {key: sliding, rate_limit: {unit: day, requests_per_unit: 2, algorithm: sliding_window}}
- {key: user, descriptors: [{key: request, rate_limit: {concurrency: 2, hold: 1h}}]}
- {key: model, rate_limit: {unit: day, requests_per_unit: 9, algorithm: gcra}, descriptors: [{key: tenant, share: 1, rate_limit: {unit: day, requests_per_unit: 2}}]}
`

const operatedHTTP = `
domain: web
http: {trusted_proxies: [127.0.0.1], rules: [{name: login, match: {methods: [GET], path: /login}, rate_limit: {unit: day, requests_per_unit: 2, algorithm: gcra, lockout: 1h}}]}
`

// operates sends a request with a descriptor, or without one for http rules, to the port of operators.
func (g *gateway) operates(t *testing.T, method, path, descriptor string) (status int, text string) {
	t.Helper()
	var in io.Reader = http.NoBody
	if descriptor != "" {
		text, err := protojson.Marshal(request("d", descriptor))
		require.NoError(t, err)
		in = strings.NewReader(string(text))
	} else if method == http.MethodPost {
		method = http.MethodGet
	}
	r, err := http.NewRequestWithContext(t.Context(), method, g.debug+path, in)
	require.NoError(t, err)
	r.Header.Set("X-Forwarded-Uri", "/login")
	response, err := g.client.Do(r)
	require.NoError(t, err)
	return response.StatusCode, body(t, response)
}

// From a refused customer to the limit: /explain names the key that the server has and what is in use, and DELETE gives all of
// it back, of each kind and lockouts too, but not what others have used of the limit around a share. The log says who did it.
func TestReset(t *testing.T) { bubble(t, testReset) }

func testReset(t *testing.T) {
	for _, settings := range []string{"SCRIPT_MODE=false", "SCRIPT_MODE=true"} {
		s := inMemory(t)
		g := inside(t, s, operated, settings, "CACHE_KEY_PREFIX=gw:")
		g.writes(t, "web.yaml", operatedHTTP)
		for descriptor, rule := range map[string]string{"fixed=a": "d.fixed", "sliding=a": "d.sliding", "user=a,request=3": "d.user.request", "model=m,tenant=a": "d.model.tenant", "": "web.http.login"} {
			refused := func() bool {
				if descriptor == "" {
					return g.get(t, g.web+"/check", "X-Forwarded-Uri", "/login", "X-Forwarded-Method", "GET").StatusCode == 429
				}
				return strings.HasPrefix(g.ask(t, "d", descriptor), "OVER")
			}
			_, before := g.operates(t, "POST", "/explain", descriptor)
			require.Contains(t, before, ": 0 of 2 in use\n", descriptor)
			if strings.HasPrefix(descriptor, "user") {
				require.Equal(t, "OK o1 OK o0", g.ask(t, "d", "user=a,request=1")+" "+g.ask(t, "d", "user=a,request=2"))
			}
			for n := 1; !refused(); n++ {
				require.LessOrEqual(t, n, 2, descriptor)
			}
			_, shown := g.operates(t, "POST", "/explain", descriptor)
			found := regexp.MustCompile(`key (gw:\S+): (\d) of 2 in use(, closed for 1h0m0s)?, all free in`).FindStringSubmatch(shown)
			require.NotNil(t, found, "%s: %s", descriptor, shown)
			require.Contains(t, s.Memory().Keys(), found[1])
			require.Equal(t, descriptor == "" || strings.HasPrefix(descriptor, "user"), found[3] != "", shown)
			for _, wrong := range []string{"", "?rule=other", "?rule=" + rule + ".x"} {
				status, text := g.operates(t, "DELETE", "/explain"+wrong, descriptor)
				require.True(t, status == 400 && strings.Contains(text, rule) && refused(), "%s: %s", wrong, text)
			}
			status, text := g.operates(t, "DELETE", "/explain?rule="+rule[:3]+"*", descriptor)
			require.True(t, status == 200 && strings.HasPrefix(text, "reset: "+rule+" at "), text)
			require.NotContains(t, s.Memory().Keys(), found[1])
			require.False(t, refused(), descriptor)
			require.Contains(t, g.log(), `msg="a limit is reset" rule=`+rule+` before="`+rule+" at ")
		}
		_, shown := g.operates(t, "POST", "/explain", "model=m,tenant=a")
		require.Contains(t, shown, "the limit around it: d.model at "+g.folder+"/rules.yaml:8, key gw:gcra.24h0m0s:{d|model=m}: 3 of 9 in use")
		s.Change(func(f *resp.Faults) { f.Silent = true })
		status, text := g.operates(t, "DELETE", "/explain?rule=*", "fixed=a")
		require.True(t, status == 503 && strings.HasPrefix(text, "NOT reset: d.fixed at "), text)
		_, text = g.operates(t, "POST", "/explain", "fixed=a")
		require.Contains(t, text, "nobody knows what is in use")
	}
}

// The status says that a limit isn't reset, also after one that is.
func TestReset_partly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := inMemory(t)
		g := inside(t, s, "domain: web\nhttp: {rules: ["+
			"{name: one, rate_limit: {unit: day, requests_per_unit: 2}}, {name: two, rate_limit: {unit: hour, requests_per_unit: 2}}]}")
		s.Change(func(f *resp.Faults) {
			f.Reply = func(words []string) (any, bool) {
				return memory.Error("READONLY not here"), strings.EqualFold(words[0], "DEL") && strings.Contains(words[1], "two")
			}
		})
		status, text := g.operates(t, "DELETE", "/explain?rule=*", "")
		require.Equal(t, 503, status, text)
		require.Regexp(t, "^reset: web.http.one at .*\nNOT reset: web.http.two at ", text)
	})
}

// /top merges what the masters count, if it is on.
func TestTop(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := inMemory(t)
		nodes := s.Network.NewCluster(s.Addr, "10.0.0.2:6379", "10.0.0.3:6379")
		g := inside(t, s, operated, "REDIS_TYPE=CLUSTER", "TOP_ENABLED=true")
		require.Equal(t, 404, inside(t, s, operated, "REDIS_TYPE=CLUSTER").get(t, g.debug+"/top").StatusCode)
		_, text := g.operates(t, "GET", "/top", "")
		require.Contains(t, text, "no denials are counted")
		for _, node := range nodes.Masters() {
			node.Memory().CountDenials(9)
		}
		for user, refused := range map[string]int{"a": 3, "b": 1, "c": 2} {
			for range 2 + refused {
				g.ask(t, "d", "sliding="+user)
			}
		}
		_, text = g.operates(t, "GET", "/top", "")
		require.Equal(t, "denied\tkey\n3\t0:sliding_window.24h0m0s:{d|sliding=a}\n2\t0:sliding_window.24h0m0s:{d|sliding=c}\n1\t0:sliding_window.24h0m0s:{d|sliding=b}\n", text)
	})
}

// The log, /rules and the metrics name the same rules: a hash that only their text changes, and when they came. Calls to the
// server are timed.
func TestRulesInForce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := inMemory(t)
		s.Change(func(f *resp.Faults) { f.Far = 30 * time.Millisecond })
		one, two := inside(t, s, operated), inside(t, s, operated)
		now := func(g *gateway) (hash string, loaded time.Time) {
			var first struct {
				Hash   string
				Loaded time.Time
			}
			require.NoError(t, json.NewDecoder(g.get(t, g.debug+"/rules").Body).Decode(&first))
			assert.Contains(t, g.log(), "hash="+first.Hash)
			assert.Regexp(t, `\ngothrottle_gateway_rules_loaded_timestamp_seconds{hash="`+first.Hash+`",version=""} `+regexp.QuoteMeta(fmt.Sprint(float64(first.Loaded.Unix()))), g.page(t, g.debug+"/metrics"))
			return first.Hash, first.Loaded
		}
		hash, loaded := now(one)
		same, _ := now(two)
		require.Equal(t, hash, same)
		one.writes(t, "rules.yaml", operated+"# changed")
		changed, later := now(one)
		require.True(t, changed != hash && later.After(loaded))
		one.ask(t, "d", "fixed=a")
		require.Regexp(t, `gothrottle_gateway_server_seconds_bucket{le="0.0256"} 0\n(.*\n)*gothrottle_gateway_server_seconds_count [1-9]`, one.page(t, one.debug+"/metrics"))
	})
}
