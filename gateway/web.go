package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"gothrottle/throttle/throttlehttp"
)

// httpRules are the rules for requests that a proxy asks about at /check.
type httpRules struct {
	rules   []httpRule
	domain  *domain
	address func(*http.Request) string // of the client
	network func(*http.Request) string // that the address counts for
}

// httpRule is one rule. A request counts for each rule that matches it.
type httpRule struct {
	matchLevel
	limit *limit
	name  string
	by    []string // what has a limit of its own
}

// loadHTTP reads the part http of a file.
func (l *loader) loadHTTP(d *domain, at *yaml.Node) {
	rule := d.name + ".http"
	f := decode[httpLevel](l, at, rule)
	bits := or(f.IPv6Prefix, 64)
	switch {
	case l.http[d.name] != nil:
		l.fail(at, rule, "another file has http rules of this domain")
	case bits < 1 || bits > 128:
		l.fail(at, rule, "ipv6_prefix is 1 to 128")
	case f.TrustedProxies == nil:
		l.warn(at, rule, "without trusted_proxies all requests count for the proxy's own address")
	}
	var trusted []netip.Prefix
	for _, n := range f.TrustedProxies {
		trusted = append(trusted, n.Prefix)
	}
	h := &httpRules{domain: d, address: throttlehttp.ByNetwork(128, trusted...), network: throttlehttp.ByNetwork(bits, trusted...)}
	l.http[d.name] = h
	for i := range f.Rules {
		r := l.loadHTTPRule(&f.Rules[i], rule, d.tag)
		if slices.ContainsFunc(h.rules, func(other httpRule) bool { return other.name == r.name }) {
			l.fail(&f.Rules[i], r.limit.path, "this name is there twice")
		}
		h.rules = append(h.rules, r)
	}
}

func (l *loader) loadHTTPRule(at *yaml.Node, parent string, tag tagging) (r httpRule) {
	var named httpRuleLevel // though it may have mistakes
	_ = at.Decode(&named)
	rule := parent + "." + named.Name
	f := decode[httpRuleLevel](l, at, rule)
	if f.Name == "" || !given(&f.RateLimit) {
		l.fail(at, rule, "a rule needs a name and a rate_limit")
	}
	r = httpRule{name: f.Name, by: f.By, limit: l.loadLimit(&f.RateLimit, rule, tag)}
	r.limit.shadow, r.limit.Name = f.ShadowMode, cmp.Or(r.limit.Name, f.Name)
	if r.limit.Algorithm == concurrency {
		l.fail(at, rule, "concurrency is for descriptors: a proxy that asks /check does not report the end of a request")
	}
	if r.by == nil {
		r.by = []string{"address"}
	}
	for _, by := range r.by {
		if !slices.Contains([]string{"address", "method", "path", "host"}, by) && !strings.HasPrefix(by, "header:") {
			l.fail(at, rule, "by is a list of address, method, path, host and header:NAME, not %q", by)
		}
	}
	if given(&f.Match) {
		r.matchLevel = decode[matchLevel](l, &f.Match, rule)
		r.Host, r.Methods = cleanHost(r.Host), strings.Fields(strings.ToUpper(strings.Join(r.Methods, " ")))
		if clean := cleanPath(r.Path); !strings.HasPrefix(r.Path, "*") && strings.TrimSuffix(r.Path, "/") != strings.TrimSuffix(clean, "/") {
			l.fail(at, rule, "no request has the path %s: write %s", r.Path, clean)
		}
	}
	return r
}

// subject is the request that a proxy asks about.
type subject struct {
	is      map[string]string // its method, path and host, and as its address the network that the address counts for
	address netip.Addr
	header  http.Header
}

// subject reads what the proxy says about a request.
func (h *httpRules) subject(r *http.Request) *subject {
	address, _ := parsePrefix(strings.TrimPrefix(h.address(r), "ip:")) // a proxy at a Unix socket has none
	return &subject{address: address.Addr(), header: r.Header, is: map[string]string{
		"address": h.network(r),
		"method":  cmp.Or(r.Header.Get("X-Forwarded-Method"), r.Method),
		"path":    cleanPath(r.Header.Get("X-Forwarded-Uri")),
		"host":    cleanHost(cmp.Or(r.Header.Get("X-Forwarded-Host"), r.Host)),
	}}
}

// target finds the path of a request. It follows a host in "GET http://example.com/ HTTP/1.1", and ends before a query or a
// fragment, which nginx drops.
var target = regexp.MustCompile("^(?:[^/?#]+://[^/?#]*)?([^?#]*)")

// escape is a right escape. A wrong one stays in the path.
var escape = regexp.MustCompile("%[0-9A-Fa-f]{2}")

// cleanPath returns a path without host, query, escapes, empty parts, dots and last slash, so it cannot be written to avoid a
// rule.
func cleanPath(uri string) string {
	return path.Clean("/" + escape.ReplaceAllStringFunc(target.FindStringSubmatch(uri)[1], func(e string) string {
		c, _ := strconv.ParseUint(e[1:], 16, 8)
		return string([]byte{byte(c)})
	}))
}

// cleanHost returns a host in lower case, without its port and last dot.
func cleanHost(host string) string {
	return strings.TrimSuffix((&url.URL{Host: strings.ToLower(host)}).Hostname(), ".")
}

// matches says whether a pattern with a star at one end matches a text.
func matches(pattern, text string) bool {
	if begin, ok := strings.CutSuffix(pattern, "*"); ok {
		return text != "" && strings.HasPrefix(text, begin)
	}
	if end, ok := strings.CutPrefix(pattern, "*"); ok {
		return strings.HasSuffix(text, end)
	}
	return pattern == text
}

func (r *httpRule) matches(s *subject) bool {
	at := s.is["path"]
	if r.Path != "" && !matches(r.Path, at) && !matches(r.Path, at+"/") || r.Host != "" && !matches(r.Host, s.is["host"]) {
		return false
	}
	if len(r.Methods) > 0 && !slices.Contains(r.Methods, s.is["method"]) {
		return false
	}
	for name, pattern := range r.Headers {
		if !matches(pattern, s.header.Get(name)) {
			return false
		}
	}
	return len(r.Addresses) == 0 || slices.ContainsFunc(r.Addresses, func(n network) bool { return n.Contains(s.address) })
}

// ask is what a request asks of the rule. Its key is that of a descriptor with these entries.
func (r *httpRule) ask(d *domain, s *subject) ask {
	entries := []*common.RateLimitDescriptor_Entry{{Key: "http"}, {Key: r.name}}
	for _, by := range r.by {
		value, found := s.is[by]
		if !found {
			value = s.header.Get(strings.TrimPrefix(by, "header:"))
		}
		entries = append(entries, &common.RateLimitDescriptor_Entry{Key: by, Value: value})
	}
	a := ask{found: found{limit: r.limit, label: r.limit.path}, hits: 1}
	a.key, a.tag = d.key(entries, nil)
	return a
}

// check answers a proxy: 200 lets the request through, and 429 refuses it. The path says which domain's rules count:
// /check/NAME, or /check if only one domain has http rules. ?deny=403 refuses with another status.
func (s *service) check(w http.ResponseWriter, r *http.Request) {
	name := strings.Trim(strings.TrimPrefix(r.URL.Path, "/check"), "/")
	h := s.rules.Load().http[name]
	if h == nil {
		http.Error(w, fmt.Sprintf("no domain %q has http rules, or several have: ask /check/NAME", name), http.StatusNotFound)
		return
	}
	deny, err := strconv.Atoi(cmp.Or(r.URL.Query().Get("deny"), "429"))
	if err != nil || deny < 400 || deny > 599 {
		http.Error(w, "deny is 400 to 599", http.StatusBadRequest)
		return
	}
	sub, asks := h.subject(r), []ask{}
	for i := range h.rules {
		if h.rules[i].matches(sub) {
			asks = append(asks, h.rules[i].ask(h.domain, sub))
		}
	}
	response, tightest := s.decide(r.Context(), asks)
	if tightest >= 0 {
		st, a := response.Statuses[tightest], &asks[tightest]
		w.Header().Set("RateLimit", fmt.Sprintf("%q;r=%d;t=%d", a.limit.Name, st.LimitRemaining, st.DurationUntilReset.Seconds))
		w.Header().Set("RateLimit-Policy", fmt.Sprintf("%q;q=%d;w=%d", a.limit.Name, st.CurrentLimit.RequestsPerUnit, int64(a.limit.period.Seconds())))
	}
	if response.OverallCode == pb.RateLimitResponse_OVER_LIMIT {
		retry := int64(1) // or the longest of all rules that refuse
		for _, st := range response.Statuses {
			if st.Code == pb.RateLimitResponse_OVER_LIMIT {
				retry = max(retry, st.DurationUntilReset.Seconds)
			}
		}
		w.Header().Set("Retry-After", strconv.FormatInt(retry, 10))
		http.Error(w, "Too Many Requests", deny)
	}
}

// handlers serve what clients ask over HTTP, and what operators ask.
func (s *service) handlers() (web, debug *http.ServeMux) {
	web, debug = http.NewServeMux(), http.NewServeMux()
	web.HandleFunc("/check", s.check)
	web.HandleFunc("/check/", s.check)
	web.HandleFunc("POST /json", s.json)
	web.HandleFunc("GET /healthcheck", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "OK") })
	debug.Handle("GET /metrics", promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{}))
	debug.HandleFunc("GET /rules", s.showRules)
	return web, debug
}

// json is ShouldRateLimit for clients without gRPC: 200 or 429, with the response as JSON.
func (s *service) json(w http.ResponseWriter, r *http.Request) {
	var req pb.RateLimitRequest
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessage))
	if err == nil {
		err = protojson.Unmarshal(body, &req)
	}
	var response *pb.RateLimitResponse
	if err != nil {
		s.metrics.refused.WithLabelValues("invalid").Inc()
	} else {
		response, err = s.ShouldRateLimit(r.Context(), &req)
	}
	text, wrong := protojson.Marshal(response)
	if err = errors.Join(err, wrong); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if response.OverallCode == pb.RateLimitResponse_OVER_LIMIT {
		w.WriteHeader(http.StatusTooManyRequests)
	}
	_, _ = w.Write(text)
}

// showRules shows the limits in force, a line of JSON for each.
func (s *service) showRules(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	for _, m := range s.rules.Load().limits {
		_ = encoder.Encode(map[string]any{
			"rule": m.path, "place": m.place, "units": m.units, "period": m.period.String(), "algorithm": m.Algorithm,
			"unlimited": m.Unlimited, "shadow": m.shadow, "on_failure": m.OnFailure,
		})
	}
}
