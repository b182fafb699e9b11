package throttlehttp

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// ByIP names the limiter after the client's address: an IPv4 address, or the /64 network of an IPv6 address, because one
// host has all addresses of such a network. The name is in braces, as in {ip:192.0.2.1}, so the keys of several rules for
// one address have one hash tag. Without trusted proxies the address is that of the connection. If the
// connection comes from a trusted proxy, the address is the last one in X-Forwarded-For that no trusted proxy has: the
// client wrote the text before it, which may be anything. If there are trusted proxies, a program at a Unix socket is one.
// Otherwise all clients behind a Unix socket share a limiter.
func ByIP(trusted ...netip.Prefix) func(*http.Request) string { return ByNetwork(64, trusted...) }

// ByNetwork is ByIP with networks of this many bits of IPv6 addresses, 1 to 128: a provider may give one customer a /56 or
// a /48.
func ByNetwork(bits int, trusted ...netip.Prefix) func(*http.Request) string {
	trusted = slices.Clone(trusted)
	for i, prefix := range trusted {
		if in4 := prefix.Addr(); in4.Is4In6() && prefix.Bits() >= 96 {
			trusted[i] = netip.PrefixFrom(in4.Unmap(), prefix.Bits()-96) // as addresses are compared
		}
	}
	return func(r *http.Request) string {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		if err != nil {
			host = r.RemoteAddr
		}
		address, ok := parseAddress(host)
		if !ok && len(trusted) > 0 || contains(trusted, address) { // not ok: a Unix socket, or a test
			address = forwarded(r, trusted, address)
		}
		if !address.IsValid() {
			return "{ip:" + host + "}"
		}
		if address.Is4() {
			return "{ip:" + address.String() + "}"
		}
		prefix, _ := address.Prefix(min(max(bits, 1), 128))
		return "{ip:" + prefix.String() + "}"
	}
}

// forwarded returns the last address in X-Forwarded-For that is not trusted. If there is none, or the word before it isn't
// an address, the answer is the last trusted address that was seen.
func forwarded(r *http.Request, trusted []netip.Prefix, from netip.Addr) netip.Addr {
	for _, line := range slices.Backward(r.Header.Values("X-Forwarded-For")) {
		for more := true; more; { // word by word, without a list of them: the client may write a million
			at := strings.LastIndexByte(line, ',')
			address, ok := parseAddress(strings.TrimSpace(line[at+1:]))
			if !ok {
				return from
			}
			if from = address; !contains(trusted, address) {
				return from
			}
			line, more = line[:max(at, 0)], at >= 0
		}
	}
	return from
}

// parseAddress reads an address, also with a port, in brackets, or with a zone. Some proxies write a port.
func parseAddress(text string) (netip.Addr, bool) {
	if pair, err := netip.ParseAddrPort(text); err == nil {
		return clean(pair.Addr()), true
	}
	address, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
	return clean(address), err == nil
}

// clean drops the zone, and the prefix of an IPv4 address that is written as IPv6.
func clean(address netip.Addr) netip.Addr { return address.Unmap().WithZone("") }

func contains(prefixes []netip.Prefix, address netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(prefix netip.Prefix) bool { return prefix.Contains(address) })
}

// ByHeader names the limiter after a header and its value in braces, as for API keys: {header:x-api-key:k}. All
// requests without the header share one limiter. A client may send any value: check the value first, or each new value
// is a new limiter.
func ByHeader(name string) func(*http.Request) string {
	prefix := "{header:" + strings.ToLower(name) + ":"
	return func(r *http.Request) string { return prefix + r.Header.Get(name) + "}" }
}
