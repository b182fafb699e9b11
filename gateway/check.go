package main

import (
	"cmp"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"go.yaml.in/yaml/v3"

	"gothrottle/throttle/throttlehttp"
)

// httpRules are the rules for requests that a proxy asks about at /check.
type httpRules struct {
	rules   []httpRule
	address func(*http.Request) string // of the client
	domain  *domain
}

// httpRule is one rule. A request counts for each rule that matches it.
type httpRule struct {
	limit     *limit
	methods   []string
	path      string // a pattern; "": any
	host      string
	headers   map[string]string
	addresses []netip.Prefix
	by        []string // what has a limit of its own
}

var (
	httpKeys     = []string{"trusted_proxies", "ipv6_prefix", "rules"}
	httpRuleKeys = []string{"name", "match", "by", "rate_limit", "shadow_mode"}
	matchKeys    = []string{"methods", "path", "host", "headers", "addresses"}
)

// loadHTTP reads the part http of a file.
func (l *loader) loadHTTP(d *domain, at *yaml.Node) {
	rule := d.name + ".http"
	if d.http != nil {
		l.fail(at, rule, "another file has http rules of this domain")
	}
	f := l.fields(at, rule, httpKeys)
	bits := 64
	if f["ipv6_prefix"] != nil {
		if bits = value[int](l, f["ipv6_prefix"], rule); bits < 1 || bits > 128 {
			l.fail(f["ipv6_prefix"], rule, "ipv6_prefix is 1 to 128")
		}
	}
	d.http = &httpRules{address: throttlehttp.ByNetwork(bits, l.prefixes(f["trusted_proxies"], rule)...), domain: d}
	if f["trusted_proxies"] == nil {
		l.warnings = append(l.warnings, l.place(at)+prefixed(rule)+"without trusted_proxies all requests count for the proxy's own address")
	}
	names := map[string]bool{}
	for _, item := range l.items(f["rules"], rule) {
		r := l.loadHTTPRule(item, rule, d.tag)
		if names[r.limit.path] {
			l.fail(item, r.limit.path, "this name is there twice")
		}
		names[r.limit.path] = true
		d.http.rules = append(d.http.rules, r)
	}
}

func (l *loader) loadHTTPRule(at *yaml.Node, parent string, tag tagging) (r httpRule) {
	f := l.fields(at, parent, httpRuleKeys)
	name := l.text(f["name"])
	rule := parent + "." + name
	if name == "" || f["rate_limit"] == nil {
		l.fail(at, rule, "a rule needs a name and a rate_limit")
	}
	r.limit = l.loadLimit(f["rate_limit"], rule, tag)
	r.limit.shadow = value[bool](l, f["shadow_mode"], rule)
	if r.limit.name == "" {
		r.limit.name = name
	}
	if r.limit.algorithm == concurrency {
		l.fail(at, rule, "concurrency is for descriptors: a proxy that asks /check does not report the end of a request")
	}
	r.by = []string{"address"}
	if f["by"] != nil {
		r.by = l.texts(f["by"], rule)
	}
	for _, by := range r.by {
		if !slices.Contains([]string{"address", "method", "path", "host"}, by) && !strings.HasPrefix(by, "header:") {
			l.fail(f["by"], rule, "by is a list of address, method, path, host and header:NAME, not %q", by)
		}
	}
	if f["match"] == nil {
		return r
	}
	m := l.fields(f["match"], rule, matchKeys)
	r.methods, r.path, r.host = l.texts(m["methods"], rule), l.text(m["path"]), strings.ToLower(l.text(m["host"]))
	r.addresses = l.prefixes(m["addresses"], rule)
	r.headers = value[map[string]string](l, m["headers"], rule)
	return r
}

// texts reads one text or a list of them.
func (l *loader) texts(at *yaml.Node, rule string) (all []string) {
	if at != nil && at.Kind == yaml.ScalarNode {
		return []string{at.Value}
	}
	for _, item := range l.items(at, rule) {
		all = append(all, l.text(resolve(item)))
	}
	return all
}

// prefixes reads networks such as 10.0.0.0/8.
func (l *loader) prefixes(at *yaml.Node, rule string) (all []netip.Prefix) {
	for _, text := range l.texts(at, rule) {
		prefix, err := parsePrefix(text)
		if err != nil {
			l.fail(at, rule, "%q isn't a network: write 10.0.0.0/8 or ::1", text)
		}
		all = append(all, prefix)
	}
	return all
}

// parsePrefix reads a network, or an address as a network of its own.
func parsePrefix(text string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(address, address.BitLen()), nil
	}
	return netip.ParsePrefix(text)
}

// subject is the request that a proxy asks about.
type subject struct {
	method, host, path string
	address            string
	header             http.Header
}

// subjectOf reads what the proxy says about the request. The path has no query, no escapes, no empty parts and no dots, so it cannot be written to avoid a rule.
func subjectOf(r *http.Request) (s subject, err error) {
	s = subject{method: cmp.Or(r.Header.Get("X-Forwarded-Method"), r.Method), header: r.Header}
	s.host, _, _ = strings.Cut(strings.ToLower(cmp.Or(r.Header.Get("X-Forwarded-Host"), r.Host)), ":")
	raw, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Uri"), "?")
	decoded, err := url.PathUnescape(raw)
	s.path = path.Clean("/" + decoded)
	return s, err
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
	if r.path != "" && !matches(r.path, s.path) || r.host != "" && !matches(r.host, s.host) {
		return false
	}
	if len(r.methods) > 0 && !slices.Contains(r.methods, s.method) {
		return false
	}
	for name, pattern := range r.headers {
		if !matches(pattern, s.header.Get(name)) {
			return false
		}
	}
	network, err := parsePrefix(s.address)
	return len(r.addresses) == 0 || err == nil && slices.ContainsFunc(r.addresses, func(p netip.Prefix) bool {
		return p.Contains(network.Addr()) && p.Bits() <= network.Bits()
	})
}

// ask is what a request asks of the rule.
func (r *httpRule) ask(d *domain, s *subject) ask {
	key := d.beginKey(nil, nil)
	key = append(append(key, "|http="...), r.limit.path[len(d.name)+len(".http."):]...)
	for _, by := range r.by {
		key = append(appendEscaped(append(key, '|'), by), '=')
		key = appendEscaped(key, s.value(by))
	}
	return ask{found: found{limit: r.limit, label: r.limit.path, key: shorten(key), tag: d.tagOf(key)}, hits: 1}
}

// value returns what a rule counts by.
func (s *subject) value(by string) string {
	switch by {
	case "address":
		return s.address
	case "method":
		return s.method
	case "path":
		return s.path
	case "host":
		return s.host
	}
	return s.header.Get(strings.TrimPrefix(by, "header:"))
}

// check answers a proxy: 200 lets the request through, and 429 refuses it. The path says which domain's rules count:
// /check/NAME, or /check if only one domain has http rules. ?deny=403 refuses with another status.
func (s *service) check(w http.ResponseWriter, r *http.Request) {
	h, err := s.rules.Load().httpRulesOf(strings.Trim(strings.TrimPrefix(r.URL.Path, "/check"), "/"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	deny := http.StatusTooManyRequests
	if text := r.URL.Query().Get("deny"); text != "" {
		deny, err = strconv.Atoi(text)
	}
	sub, wrong := subjectOf(r)
	if err != nil || wrong != nil || deny < 400 || deny > 599 {
		http.Error(w, "the path of the request has a wrong escape, or deny is not 400 to 599", http.StatusBadRequest)
		return
	}
	sub.address = strings.TrimPrefix(h.address(r), "ip:")
	asks := []ask{}
	for i := range h.rules {
		if h.rules[i].matches(&sub) {
			asks = append(asks, h.rules[i].ask(h.domain, &sub))
		}
	}
	response, tightest := s.decide(r.Context(), asks)
	if tightest >= 0 {
		st, a := response.Statuses[tightest], &asks[tightest]
		w.Header().Set("RateLimit", fmt.Sprintf("%q;r=%d;t=%d", a.limit.name, st.LimitRemaining, st.DurationUntilReset.Seconds))
		w.Header().Set("RateLimit-Policy", fmt.Sprintf("%q;q=%d;w=%d", a.limit.name, st.CurrentLimit.RequestsPerUnit, int64(a.limit.period.Seconds())))
	}
	if response.OverallCode == pb.RateLimitResponse_OVER_LIMIT {
		w.Header().Set("Retry-After", strconv.FormatInt(max(1, response.Statuses[tightest].DurationUntilReset.Seconds), 10))
		http.Error(w, "Too Many Requests", deny)
	}
}

// httpRulesOf returns the rules of a domain; without a name, of the only domain that has any.
func (r *rules) httpRulesOf(name string) (only *httpRules, err error) {
	for _, d := range r.domains {
		switch {
		case d.http == nil || name != "" && d.name != name:
		case only != nil:
			return nil, fmt.Errorf("several domains have http rules: ask /check/NAME")
		default:
			only = d.http
		}
	}
	if only == nil {
		return nil, fmt.Errorf("no domain %q has http rules", name)
	}
	return only, nil
}
