package throttlehttp_test

import (
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gothrottle/throttle/throttlehttp"
)

// The client's address is the connection's, or what trusted proxies say of it. IPv6 addresses count by network.
func TestByIP(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("::ffff:10.0.0.0/104"), netip.MustParsePrefix("fd00::1/128")}
	for _, row := range []struct{ remote, forwarded, untrusting, trusting string }{
		{"192.0.2.1:80", "", "{ip:192.0.2.1}", "{ip:192.0.2.1}"},
		{"192.0.2.1:80", "198.51.100.7", "{ip:192.0.2.1}", "{ip:192.0.2.1}"},
		{"10.0.0.1:80", "198.51.100.7", "{ip:10.0.0.1}", "{ip:198.51.100.7}"},
		{"10.0.0.1:80", "1.2.3.4, 198.51.100.7", "{ip:10.0.0.1}", "{ip:198.51.100.7}"},
		{"10.0.0.1:80", "1.2.3.4, 198.51.100.7, 10.9.9.9", "{ip:10.0.0.1}", "{ip:198.51.100.7}"},
		{"10.0.0.1:80", "1.2.3.4, nonsense, 10.9.9.9", "{ip:10.0.0.1}", "{ip:10.9.9.9}"},
		{"10.0.0.1:80", "", "{ip:10.0.0.1}", "{ip:10.0.0.1}"},
		{"10.0.0.1:80", ", 198.51.100.7", "{ip:10.0.0.1}", "{ip:198.51.100.7}"},
		{"10.0.0.1:80", "1.2.3.4, ", "{ip:10.0.0.1}", "{ip:10.0.0.1}"}, // the proxy did not know the address: the client wrote this
		{"10.0.0.1:80", "198.51.100.7:4711", "{ip:10.0.0.1}", "{ip:198.51.100.7}"},
		{"10.0.0.1:80", "[2001:db8:1:2:3::4]:4711", "{ip:10.0.0.1}", "{ip:2001:db8:1:2::/64}"},
		{"[2001:db8:1:2:3::4]:80", "", "{ip:2001:db8:1:2::/64}", "{ip:2001:db8:1:2::/64}"},
		{"[2001:db8:1:2:ffff::9]:80", "", "{ip:2001:db8:1:2::/64}", "{ip:2001:db8:1:2::/64}"},
		{"[::ffff:192.0.2.1]:80", "", "{ip:192.0.2.1}", "{ip:192.0.2.1}"},
		{"[::ffff:10.0.0.1]:80", "::ffff:198.51.100.7", "{ip:10.0.0.1}", "{ip:198.51.100.7}"},
		{"[fd00::1]:80", "fe80::1%eth0", "{ip:fd00::/64}", "{ip:fe80::/64}"},
		{"[fd00::1%eth0]:80", "198.51.100.7", "{ip:fd00::/64}", "{ip:198.51.100.7}"},
		{"[fd00::2]:80", "198.51.100.7", "{ip:fd00::/64}", "{ip:fd00::/64}"},
		{"@", "", "{ip:@}", "{ip:@}"}, // a Unix socket
		{"@", "1.2.3.4, 198.51.100.7", "{ip:@}", "{ip:198.51.100.7}"},
		{"", "nonsense", "{ip:}", "{ip:}"},
	} {
		r := &http.Request{RemoteAddr: row.remote, Header: http.Header{}}
		if row.forwarded != "" {
			r.Header.Set("X-Forwarded-For", row.forwarded)
		}
		require.Equal(t, row.untrusting, throttlehttp.ByIP()(r), row.remote)
		require.Equal(t, row.trusting, throttlehttp.ByIP(proxies...)(r), "%s %s", row.remote, row.forwarded)
		require.Equal(t, strings.Replace(row.untrusting, "1:2::/64", "1::/48", 1), strings.Replace(throttlehttp.ByNetwork(48)(r), "fd00::/48", "fd00::/64", 1))
	}
	// Proxies may add a line of their own instead of a word.
	r := &http.Request{RemoteAddr: "10.0.0.1:80", Header: http.Header{"X-Forwarded-For": {"1.2.3.4", "198.51.100.7"}}}
	require.Equal(t, "{ip:198.51.100.7}", throttlehttp.ByIP(proxies...)(r))
	require.Equal(t, "{ip:198.51.100.7}", throttlehttp.ByIP(netip.MustParsePrefix("10.0.0.0/8"))(r))
	require.Equal(t, "{ip:1.2.3.4}", throttlehttp.ByIP(netip.MustParsePrefix("::ffff:0:0/96"))(r)) // of all of IPv4
	// Text that the client wrote before the address costs nothing, whatever its length.
	r.Header.Set("X-Forwarded-For", strings.Repeat("1.2.3.4,", 100_000)+"198.51.100.7, 10.9.9.9")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.Equal(t, "{ip:198.51.100.7}", throttlehttp.ByIP(proxies...)(r))
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100_000))
}

func TestByHeader(t *testing.T) {
	r := &http.Request{Header: http.Header{"X-Api-Key": {"k"}, "X-Tenant": {"k"}}}
	require.Equal(t, "{header:x-api-key:k}", throttlehttp.ByHeader("X-Api-Key")(r))
	require.Equal(t, "{header:x-api-key:k}", throttlehttp.ByHeader("x-api-key")(r))
	require.Equal(t, "{header:x-tenant:k}", throttlehttp.ByHeader("X-Tenant")(r)) // the same value names another limiter
}
