package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"gothrottle/throttle/throttletest"
)

// post sends a request that changes something, as the page does.
func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	response, err := http.Post(url, "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}

func newSessionOf(t *testing.T, url string) string {
	t.Helper()
	code, text := post(t, url+"/api/sessions", "")
	require.Equal(t, http.StatusOK, code, text)
	var opened struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(text), &opened))
	return url + "/api/sessions/" + opened.ID
}

func keys(t *testing.T, rdb *redis.Client) []string {
	t.Helper()
	all, err := rdb.Keys(context.Background(), "*").Result()
	require.NoError(t, err)
	return all
}

const lanes = `[{"kind":"throttle","limit":5,"count":5,"period":60000},{"kind":"policy","policy":"playground-login"},
	{"kind":"all","clauses":[{"kind":"throttle","limit":5,"count":5,"period":60000},{"kind":"window","limit":9,"period":60000}]}]`

// A session writes keys that begin with its name, and deletes them when it ends, when the limiters change, and when the
// program ends. Keys of others stay.
func TestSession_deletesItsKeys(t *testing.T) {
	addr, rdb := startServer(t)
	url, a := startPage(t, addr, rdb, true)
	require.NoError(t, rdb.Set(t.Context(), "playground:other", 1, 0).Err())
	for name, end := range map[string]func(session string){
		"end":   func(session string) { post(t, session+"/end", "") },
		"reset": func(session string) { post(t, session+"/reset", "") },
		"lanes": func(session string) { post(t, session+"/lanes", lanes) },
		"close": func(string) { a.close() },
	} {
		a.closed = false
		session := newSessionOf(t, url)
		code, text := post(t, session+"/lanes", lanes)
		require.Equal(t, http.StatusOK, code, text)
		post(t, session+"/call", "")
		require.Len(t, keys(t, rdb), 5, name)
		id := session[strings.LastIndex(session, "/")+1:]
		for _, key := range keys(t, rdb) {
			require.True(t, key == "playground:other" || strings.HasPrefix(key, "playground") && strings.Contains(key, ":"+id+":"), key)
		}
		end(session)
		require.Equal(t, []string{"playground:other"}, keys(t, rdb), name)
		post(t, session+"/end", "")
	}
}

// The stream tells every call, and the session ends with it.
func TestSession_streams(t *testing.T) {
	addr, rdb := startServer(t)
	url, a := startPage(t, addr, rdb, true)
	session := newSessionOf(t, url)
	post(t, session+"/lanes", lanes)
	for range 7 {
		post(t, session+"/call", "")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, "GET", session, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	line, err := bufio.NewReader(response.Body).ReadString('\n')
	require.NoError(t, err)
	var state struct {
		Points []Point
		Lanes  []struct {
			Admitted, Denied int64
			CLI, Go          string
		}
		Infos [][]Info
	}
	require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &state))
	calls := map[string]int{}
	for _, p := range state.Points {
		if p.Lane == 0 && p.Call != "" {
			calls[p.Call]++
		}
	}
	require.Equal(t, map[string]int{"admitted": 5, "denied": 2}, calls)
	require.EqualValues(t, 5, state.Lanes[0].Admitted)
	require.EqualValues(t, 2, state.Lanes[0].Denied)
	require.Equal(t, "kind", state.Infos[0][0].Fields[0].Name)
	require.Contains(t, state.Lanes[1].CLI, "GO.POLICY playground-login:")
	c := counts(t, rdb, "GO.THROTTLE")
	require.EqualValues(t, 5, c.Admitted)
	require.EqualValues(t, 2, c.Limited)
	cancel()
	require.Eventually(t, func() bool { a.mu.Lock(); defer a.mu.Unlock(); return len(a.sessions) == 0 }, patience, 10*time.Millisecond)
	require.Eventually(t, func() bool { n, err := rdb.DBSize(context.Background()).Result(); return err == nil && n == 0 }, patience, 10*time.Millisecond)
}

// A session sends at most 200 calls per second, and at most 5 pages are open. One that closes makes room.
func TestSession_isBounded(t *testing.T) {
	s, server := openSession(t)
	require.NoError(t, s.SetLanes(t.Context(), []Spec{{Kind: "quota", Limit: 1000, Period: 60_000, Quantity: 1}, {Kind: "quota", Limit: 1000, Period: 60_000, Quantity: 1}}))
	looked := server.Calls()
	begin, calls := time.Now().Unix(), 350
	for range calls {
		s.Call(t.Context(), 0)
	}
	seconds := time.Now().Unix() - begin + 1
	sent := server.Calls() - looked
	require.LessOrEqual(t, sent, seconds*maxCallsPerSecond)
	require.EqualValues(t, 2*calls, sent+2*s.skipped)

	addr, rdb := startServer(t)
	url, _ := startPage(t, addr, rdb, true)
	var last string
	for range maxPages {
		last = newSessionOf(t, url)
	}
	code, text := post(t, url+"/api/sessions", "")
	require.Equal(t, http.StatusBadRequest, code)
	require.Contains(t, text, "5 tabs show the playground")
	require.Contains(t, firstEvent(t, url+"/api/watch"), "5 tabs show the playground")
	post(t, last+"/end", "")
	post(t, last+"/end", "")
	require.Contains(t, firstEvent(t, url+"/api/watch"), `"GO.THROTTLE"`)
	require.Eventually(t, func() bool { code, _ := post(t, url+"/api/sessions", ""); return code == http.StatusOK }, patience, 10*time.Millisecond)
	code, _ = post(t, url+"/api/sessions", "")
	require.Equal(t, http.StatusBadRequest, code)
}

// firstEvent returns the first event of a stream, and closes the stream.
func firstEvent(t *testing.T, url string) string {
	t.Helper()
	response, err := http.Get(url)
	require.NoError(t, err)
	defer response.Body.Close()
	line, err := bufio.NewReader(response.Body).ReadString('\n')
	require.NoError(t, err)
	return line
}

// Traffic that would be too much is refused, and so are limiters that make no sense.
func TestSession_refuses(t *testing.T) {
	addr, rdb := startServer(t)
	url, _ := startPage(t, addr, rdb, true)
	session := newSessionOf(t, url)
	for _, c := range []struct{ path, body, want string }{
		{"/start", `{"pattern":"steady","rate":4,"size":1,"every":1000}`, "no limiter"},
		{"/lanes", `[]`, "number of limiters"},
		{"/lanes", `[{"kind":"policy","policy":"other"}]`, "no policy"},
		{"/lanes", `{`, "cannot be read"},
		{"/lanes", `[{"kind":"quota","limit":1,"period":1000},{"kind":"quota","period":1000}]`, "limiter 2: limit must be"},
		{"/lanes", `[{"kind":"quota","limit":1.5,"period":1000}]`, "numbers must be whole"},
		{"/lanes", `[{"kind":"quota","limit":1e30,"period":1000}]`, "numbers must be whole, and not too large"},
		{"/lanes", lanes, ""},
		{"/start", `{"pattern":"steady","rate":99,"size":1,"every":1000}`, "at most 66 calls per second"},
		{"/start", `{"pattern":"steady","rate":66,"size":1,"every":1000}`, ""},
		{"/stop", ``, ""},
	} {
		code, text := post(t, session+c.path, c.body)
		require.Equal(t, c.want == "", code == http.StatusOK, "%+v: %s", c, text)
		require.Contains(t, text, c.want)
	}
	code, _ := post(t, url+"/api/sessions/none/call", "")
	require.Equal(t, http.StatusNotFound, code)
}

// After a call that took long, calls go on at the traffic's rate. Those that were due meanwhile do not come at once.
func TestSession_noBurstAfterAStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := throttletest.NewServer()
		var at []time.Time
		s, err := newSession("playground:x", "redis-cli", nil, processor(func(ctx context.Context, cmd redis.Cmder) error {
			if name := cmd.Name(); !strings.HasSuffix(name, "_ro") {
				if at = append(at, time.Now()); len(at) == 1 {
					time.Sleep(200 * time.Millisecond)
				}
			}
			return server.Process(ctx, cmd)
		}))
		require.NoError(t, err)
		require.NoError(t, s.SetLanes(t.Context(), []Spec{{Kind: "throttle", Limit: 9, Count: 9, Period: 60000, Quantity: 1}}))
		require.NoError(t, s.Start(Traffic{Pattern: "steady", Rate: 20}))
		time.Sleep(time.Second)
		s.Stop()
		require.Greater(t, len(at), 10)
		for i := 2; i < len(at); i++ {
			require.GreaterOrEqual(t, at[i].Sub(at[i-1]), 49*time.Millisecond)
		}
	})
}

// While no server answers, the client sends nothing. A limiter then shows its own last command, and no point of another's
// reply.
func TestSession_serverIsGone(t *testing.T) {
	server, gone := throttletest.NewServer(), false
	s, err := newSession("5e55", "redis-cli", nil, processor(func(ctx context.Context, cmd redis.Cmder) error {
		if gone && cmd.Name() != "go.throttle" {
			return net.ErrClosed
		}
		return server.Process(ctx, cmd)
	}))
	require.NoError(t, err)
	require.NoError(t, s.SetLanes(t.Context(), []Spec{{Kind: "throttle", Limit: 9, Count: 9, Period: 60000, Quantity: 1}, {Kind: "window", Limit: 9, Period: 60000, Quantity: 1}}))
	s.Call(t.Context(), 0)
	gone = true
	for range 20 {
		s.Call(t.Context(), 0)
		require.Contains(t, s.lanes[0].CLI, "GO.THROTTLE ")
		require.Contains(t, s.lanes[1].CLI, "GO.WINDOW ")
		last := s.points[len(s.points)-1]
		require.Equal(t, 1, last.Lane)
		require.Empty(t, last.Left, "a point of another limiter's reply")
	}
	require.EqualValues(t, 20, s.lanes[1].Errors)
}

// processor is a throttle.Processor that is one function.
type processor func(ctx context.Context, cmd redis.Cmder) error

func (p processor) Process(ctx context.Context, cmd redis.Cmder) error { return p(ctx, cmd) }
