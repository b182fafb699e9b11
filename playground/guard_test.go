package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A page of another site can neither use a name of its own for this address, nor send what changes something, nor make
// the server ask for anything. It may link to the page.
func TestGuard(t *testing.T) {
	teapot := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusTeapot) })
	h, unnamed := guard("box.lan, other.lan", teapot), guard("", teapot)
	for _, c := range []struct {
		method, host, origin, site string
		want                       int
		path                       string
	}{
		{method: "GET", host: "127.0.0.1:8080", site: "cross-site", path: "/", want: http.StatusTeapot},
		{method: "GET", host: "127.0.0.1:8080", site: "cross-site", path: "/api/watch", want: http.StatusForbidden},
		{method: "GET", host: "127.0.0.1:8080", site: "same-site", path: "/api/key", want: http.StatusForbidden},
		{method: "GET", host: "127.0.0.1:8080", site: "same-origin", path: "/api/watch", want: http.StatusTeapot},
		{method: "GET", host: "127.0.0.1:8080", site: "none", path: "/api/about", want: http.StatusTeapot},
		{method: "GET", host: "127.0.0.1:8080", want: http.StatusTeapot},
		{method: "GET", host: "localhost:8080", want: http.StatusTeapot},
		{method: "GET", host: "[::1]:8080", want: http.StatusTeapot},
		{method: "GET", host: "box.lan", want: http.StatusTeapot},
		{method: "GET", host: "other.lan:8080", want: http.StatusTeapot},
		{method: "GET", host: ":8080", want: http.StatusForbidden},
		{method: "GET", host: "evil.example:8080", want: http.StatusForbidden},
		{method: "GET", host: "127.0.0.1.evil.example", want: http.StatusForbidden},
		{method: "GET", host: "", want: http.StatusForbidden},
		{method: "POST", host: "127.0.0.1:8080", origin: "http://127.0.0.1:8080", site: "same-origin", want: http.StatusTeapot},
		{method: "POST", host: "127.0.0.1:8080", origin: "http://127.0.0.1:8080", want: http.StatusTeapot},
		{method: "POST", host: "127.0.0.1:8080", origin: "http://evil.example", site: "cross-site", want: http.StatusForbidden},
		{method: "POST", host: "127.0.0.1:8080", origin: "http://evil.example", want: http.StatusForbidden},
		{method: "POST", host: "127.0.0.1:8080", origin: "http://127.0.0.1:9999", site: "same-site", want: http.StatusForbidden},
		{method: "POST", host: "127.0.0.1:8080", origin: "null", want: http.StatusForbidden},
	} {
		r := httptest.NewRequest(c.method, pick(c.path == "", "/api/sessions", c.path), strings.NewReader("{}"))
		r.Host = c.host
		for name, value := range map[string]string{"Origin": c.origin, "Sec-Fetch-Site": c.site} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, c.want, w.Code, "%+v", c)
		if c.want == http.StatusTeapot {
			require.Contains(t, w.Header().Get("Content-Security-Policy"), "frame-ancestors 'none'")
			require.Equal(t, "same-origin", w.Header().Get("Cross-Origin-Resource-Policy"))
			continue
		}
		w = httptest.NewRecorder()
		unnamed.ServeHTTP(w, r)
		require.Equal(t, http.StatusForbidden, w.Code, "without --name: %+v", c)
	}
}

// Only loopback is listened on, unless the flag says otherwise.
func TestCheckListen(t *testing.T) {
	for listen, want := range map[string]bool{
		"127.0.0.1:8080": true, "localhost:0": true, "[::1]:8080": true, "127.9.9.9:1": true,
		"0.0.0.0:8080": false, ":8080": false, "[::]:8080": false, "192.0.2.1:8080": false, "box.lan:8080": false, "8080": false,
	} {
		require.Equal(t, want, checkListen(listen, false), listen)
	}
	require.True(t, checkListen("0.0.0.0:8080", true))
	require.False(t, checkListen("8080", true))
}

// The flags of the connection reach it. A password comes from the environment, and never stands in a shown line.
func TestFlags(t *testing.T) {
	env := func(name string) string { return map[string]string{"REDISCLI_AUTH": "secret"}[name] }
	s, err := readFlags([]string{"--addr", "db.example:6380", "--user", "watcher", "-n", "3", "--tls", "--insecure"}, env)
	require.NoError(t, err)
	o, err := s.options()
	require.NoError(t, err)
	require.Equal(t, "watcher", o.Username)
	require.Equal(t, "secret", o.Password)
	require.Equal(t, 3, o.DB)
	require.Equal(t, "db.example", o.TLSConfig.ServerName)
	require.True(t, o.TLSConfig.InsecureSkipVerify)
	require.Equal(t, "redis-cli -h db.example -p 6380 -n 3 --user watcher --tls --insecure", s.cli())
	s, err = readFlags([]string{"--addr", "[::1]:6379", "--user", "a b;c", "--tls", "--cacert", "/etc/my ca.crt", "--cert", "/c.crt", "--key", "/c.key", "--sni", "db"}, env)
	require.NoError(t, err)
	require.Equal(t, "redis-cli -h ::1 --user 'a b;c' --tls --cacert '/etc/my ca.crt' --cert /c.crt --key /c.key --sni db", s.cli())
	s, err = readFlags([]string{"--pass", "other"}, env)
	require.NoError(t, err)
	require.Equal(t, "other", s.pass)
	require.False(t, s.play)
	require.Equal(t, "redis-cli", s.cli())
	for _, wrong := range [][]string{{"--listen", "0.0.0.0:80"}, {"word"}, {"--what"}, {"--cacert", "ca.crt"}, {"--insecure"}, {"--tls", "--cert", "c.crt"}, {"--tls", "--key", "c.key"}} {
		_, err := readFlags(wrong, env)
		require.Error(t, err)
	}
}
