package main

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// guard lets only requests through that the page itself, or a program on purpose, has sent. A page of another site can
// reach this address by a name of its own (DNS rebinding), so the Host must be an address, localhost, or one of the names,
// which are separated by commas. A request that changes something must come from the same origin. So must every request
// of the API: another site's page could not read the reply, but the server would be asked.
func guard(names string, next http.Handler) http.Handler {
	known := strings.FieldsFunc(names, func(r rune) bool { return r == ',' || r == ' ' })
	sameOrigin := http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !knownHost(r.Host, known) {
			http.Error(w, "this host name is not known here: use the address, or start with --name", http.StatusForbidden)
			return
		}
		if site := r.Header.Get("Sec-Fetch-Site"); strings.HasPrefix(r.URL.Path, "/api/") && (site == "cross-site" || site == "same-site") {
			http.Error(w, "only this page may ask", http.StatusForbidden)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
		sameOrigin.ServeHTTP(w, r)
	})
}

func knownHost(host string, names []string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	if len(name) > 2 && name[0] == '[' {
		name = name[1 : len(name)-1]
	}
	_, err := netip.ParseAddr(name)
	return err == nil || name == "localhost" || slices.Contains(names, name)
}

// checkListen refuses an address that other machines can reach, unless anywhere is set.
func checkListen(listen string, anywhere bool) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	addr, err := netip.ParseAddr(host)
	return anywhere || host == "localhost" || err == nil && addr.IsLoopback()
}
