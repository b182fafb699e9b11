package rules

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	"go.yaml.in/yaml/v3"

	"gothrottle/throttle/throttlehttp"
)

// HTTP is the rules of a domain for requests that a proxy asks about.
type HTTP struct {
	rules   []httpRule
	domain  *Domain
	address func(*http.Request) string // of the client
	network func(*http.Request) string // that the address counts for
	proxies []network                  // that are trusted
	client  string                     // the header in which they name the client's address; "": X-Forwarded-For
	blind   atomic.Bool                // Blind has been true

	ignoreCase bool // of paths
}

// httpRule is one rule. A request counts for each rule that matches it.
type httpRule struct {
	matchLevel
	limits []*Limit
	name   string
	by     []string // what has a limit of its own
}

// loadHTTP reads the part http of a file.
func (l *loader) loadHTTP(d *Domain, at *yaml.Node) {
	rule := d.name + ".http"
	f := decode[httpLevel](l, at, rule)
	bits := or(f.IPv6Prefix, 64)
	switch {
	case l.HTTP[d.name] != nil:
		l.fail(at, rule, "another file has http rules of this domain")
	case bits < 1 || bits > 128:
		l.fail(at, rule, "ipv6_prefix is 1 to 128")
	case f.ClientAddress != "" && !token.MatchString(f.ClientAddress):
		l.fail(at, rule, "client_address is the name of a header, such as CF-Connecting-IP")
	case f.TrustedProxies == nil:
		l.warn(at, rule, "without trusted_proxies all requests count for the proxy's own address")
	}
	var trusted []netip.Prefix
	for _, n := range f.TrustedProxies {
		trusted = append(trusted, n.Prefix)
	}
	h := &HTTP{domain: d, address: throttlehttp.ByNetwork(128, trusted...), network: throttlehttp.ByNetwork(bits, trusted...),
		proxies: f.TrustedProxies, client: f.ClientAddress, ignoreCase: f.IgnoreCase}
	l.HTTP[d.name] = h
	paths := map[string]bool{}
	for i := range f.Rules {
		l.try(func() { l.addRule(h, &f.Rules[i], rule, paths) })
	}
}

// addRule loads a rule. The paths are those of the rules before it.
func (l *loader) addRule(h *HTTP, at *yaml.Node, parent string, paths map[string]bool) {
	r := l.loadHTTPRule(at, parent, h.domain.tag)
	if h.ignoreCase && !r.exempts() {
		r.Path = strings.ToLower(r.Path)
	}
	for _, m := range r.limits {
		if paths[m.Path] || slices.ContainsFunc(h.rules, func(other httpRule) bool { return other.name == r.name }) {
			l.fail(at, m.Path, "this name is there twice")
		}
		paths[m.Path] = true
	}
	h.rules = append(h.rules, r)
}

func (l *loader) loadHTTPRule(at *yaml.Node, parent string, tag tagging) (r httpRule) {
	var named httpRuleLevel // though it may have mistakes
	_ = at.Decode(&named)
	rule := parent + "." + named.Name
	f := decode[httpRuleLevel](l, at, rule)
	if f.Name == "" || !given(&f.RateLimit) {
		l.fail(at, rule, "a rule needs a name and a rate_limit")
	}
	r = httpRule{name: f.Name, by: f.By, limits: l.loadLimits(&f.RateLimit, rule, tag, given(&f.Cost))}
	for _, m := range r.limits {
		m.Shadow, m.Name = f.ShadowMode, cmp.Or(m.Name, f.Name)
		if m.Algorithm == Concurrency {
			l.fail(at, rule, "concurrency is for descriptors: a proxy that asks /check does not report the end of a request")
		}
		if given(&f.Cost) {
			m.Cost = new(decode[costLevel](l, &f.Cost, rule))
		}
		if wrong := m.mistakeOfCost(); wrong != "" {
			l.fail(at, rule, "%s", wrong)
		}
	}
	if given(&f.Match) {
		r.matchLevel = decode[matchLevel](l, &f.Match, rule)
		r.Host, r.Methods = cleanHost(r.Host), strings.Fields(strings.ToUpper(strings.Join(r.Methods, " ")))
	}
	if r.by == nil {
		r.by = []string{"address"}
	}
	names := slices.AppendSeq(slices.Clone(r.Methods), maps.Keys(r.Headers))
	for _, by := range r.by {
		if name, is := strings.CutPrefix(by, "header:"); is {
			names = append(names, name)
		} else if !slices.Contains([]string{"address", "method", "path", "host"}, by) {
			l.fail(at, rule, "by is a list of address, method, path, host and header:NAME, not %q", by)
		}
	}
	clean, _ := readings(r.Path)
	switch i := slices.IndexFunc(names, func(name string) bool { return !token.MatchString(name) }); {
	case i >= 0:
		l.fail(at, rule, "no request has a method or header %q: leave methods out for all of them", names[i])
	case strings.Contains(r.Host, "/"):
		l.fail(at, rule, "no request has the host %q: write a name without a scheme and a path", r.Host)
	case r.Path == clean[0]+"/":
		r.Path = clean[0]
	case r.Path != "" && r.Path[0] != '*' && r.Path != clean[0]:
		l.fail(at, rule, "no request has the path %s: write %s", r.Path, clean[0])
	}
	return r
}

// mistakeOfCost says what is wrong with a cost that is known after the request, or with late hits that have none.
func (m *Limit) mistakeOfCost() string {
	switch cost := m.Cost; {
	case cost == nil && m.Late:
		return "late needs a cost: /check takes one hit before the request"
	case cost == nil:
		return ""
	case !m.Late:
		return "cost cannot be combined with 'late: false', unlimited, a lockout or excess: what a request has cost is always charged"
	case !token.MatchString(cost.Header):
		return "cost needs the header of /settle that has it"
	case m.Holds() == 0 && (cost.Hold != nil || cost.Overdue != "") || !fits(cost.Hold):
		return "hold and overdue need an estimate that lapses; hold is a time between 1ms and 10 years"
	case int64(cost.Estimate) > m.Fits():
		return fmt.Sprintf("no request has room for the estimate: the limit is %d", m.Fits())
	}
	return ""
}

// Proxy returns the address of a proxy that the rules trust, "" if they trust none.
func (h *HTTP) Proxy() string {
	if len(h.proxies) == 0 {
		return ""
	}
	return h.proxies[0].Addr().String()
}

// Trusts says whether the request comes from a proxy of trusted_proxies.
func (h *HTTP) Trusts(r *http.Request) bool {
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	return slices.ContainsFunc(h.proxies, func(n network) bool { return n.Contains(peer.Addr().Unmap().WithZone("")) })
}

// Blind says, once, whether a proxy names no path though a rule has one.
func (h *HTTP) Blind(r *http.Request) bool {
	_, uri, _ := asked(r)
	return uri == "" && (h.proxies == nil || h.Trusts(r)) && slices.ContainsFunc(h.rules, func(one httpRule) bool { return one.Path != "" }) && !h.blind.Swap(true)
}

// asked returns what the headers of a proxy say: X-Original-Method and X-Original-URL if there is no X-Forwarded-Uri, as
// ingress-nginx has them. It passes a client's X-Forwarded-Uri on, so with ?original the gateway reads no other.
func asked(r *http.Request) (method, uri, host string) {
	uri = r.Header.Get("X-Forwarded-Uri")
	if original := r.Header.Get("X-Original-Url"); r.URL.Query().Has("original") || uri == "" && original != "" {
		return r.Header.Get("X-Original-Method"), original, (append(origin.FindStringSubmatch(original), "", ""))[1]
	}
	return r.Header.Get("X-Forwarded-Method"), uri, r.Header.Get("X-Forwarded-Host")
}

// origin is the part of a URL before its path.
var origin = regexp.MustCompile("^https?://([^/?#]*)")

// from is a request whose address the functions of throttlehttp read: the header of client_address takes the place of
// X-Forwarded-For.
func (h *HTTP) from(r *http.Request) *http.Request {
	if values := r.Header.Values(h.client); h.client != "" && values != nil {
		return &http.Request{RemoteAddr: r.RemoteAddr, Header: http.Header{"X-Forwarded-For": values}}
	}
	return r
}

// subject is the request that a proxy asks about.
//
// A path can be written in many ways, and programs behind the proxy read them differently. So a rule that limits matches if
// any reading of the path does, and a rule that exempts (unlimited, or with replaces) only if all of them do: a program
// that reads a path in one of these ways serves no limited path without its limit, and no other path without one because
// of an exempt path. See readings for what they are. Of several headers of one name each value is taken like a reading.
type subject struct {
	is      map[string]string // its method, path and host, and as its address the network that the address counts for
	paths   []string          // the readings of its path, in lower case if the rules ignore case
	exact   []string          // the same in the case of the request, for rules that exempt
	unread  bool              // there are too many readings: any path may be among them
	address netip.Addr
	header  http.Header
	trusted bool // its proxy is
}

// subject reads what the proxy says about a request.
func (h *HTTP) subject(r *http.Request) *subject {
	var address network // a proxy at a Unix socket has none
	from := h.from(r)
	_ = address.UnmarshalText([]byte(strings.TrimPrefix(strings.Trim(h.address(from), "{}"), "ip:")))
	method, uri, host := asked(r)
	exact, all := readings(uri)
	paths := exact
	if h.ignoreCase {
		paths = slices.Clone(exact)
		for i, p := range paths {
			paths[i] = strings.ToLower(p)
		}
	}
	return &subject{address: address.Addr(), header: r.Header, paths: paths, exact: exact, unread: !all, trusted: h.Trusts(r), is: map[string]string{
		"address": strings.Trim(h.network(from), "{}"), // the gateway's keys have a hash tag of their own
		"method":  strings.ToUpper(cmp.Or(method, r.Method)),
		"path":    paths[0],
		"host":    cleanHost(cmp.Or(host, r.Host)),
	}}
}

// Match finds the limits that a request counts for.
func (h *HTTP) Match(r *http.Request) (all []Found) {
	s := h.subject(r)
	for i := range h.rules {
		if rule := &h.rules[i]; rule.misses(s) == "" {
			all = append(all, h.found(rule, s)...)
		}
	}
	return all
}

// found is the limits of a rule that matches.
func (h *HTTP) found(rule *httpRule, s *subject) (all []Found) {
	f := Found{}
	entries := Descriptor{{Key: "http"}, {Key: rule.name}}
	for _, by := range rule.by {
		value, found := s.is[by]
		if name := strings.TrimPrefix(by, "header:"); !found {
			if value = s.header.Get(name); len(s.header.Values(name)) > 1 {
				f.Repeated = cmp.Or(f.Repeated, name)
			}
		}
		entries = append(entries, &common.RateLimitDescriptor_Entry{Key: by, Value: value})
	}
	f.Key, f.Tag = h.domain.key(entries, nil)
	for _, m := range rule.limits {
		f.Limit, f.Label, f.Default = m, m.Path, false
		if values := s.header.Values(m.Header); m.Header != "" && values != nil && s.trusted {
			f.Limit, f.Default = m.by(strings.Join(values, ","))
		}
		all = append(all, f)
	}
	return all
}

// by is the limit with the number that a request brings, or itself if that is wrong.
func (m *Limit) by(text string) (own *Limit, wrong bool) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n > uint64(m.Max) {
		return m, true
	}
	own = new(*m)
	own.Units = int64(n)
	own.Reply = own.reply(m.Reply.Name)
	return own, false
}

// Explain says which rules a request counts for, and what keeps it from counting for the others. say describes a limit.
func (h *HTTP) Explain(r *http.Request, say func(Found) string) (lines []string) {
	s := h.subject(r)
	lines = append(lines, fmt.Sprintf("%s %s%s from %s, paths %q", s.is["method"], s.is["host"], s.is["path"], s.is["address"], s.paths))
	for i := range h.rules {
		rule := &h.rules[i]
		if part := rule.misses(s); part != "" {
			lines = append(lines, rule.name+": no, because of its "+part)
			continue
		}
		for _, f := range h.found(rule, s) {
			lines = append(lines, rule.name+": yes, "+say(f))
		}
	}
	return lines
}

// matches says whether a pattern matches a text. A star alone matches any but the empty one: a header that isn't there.
func matches(pattern, text string) bool {
	return (text != "" || pattern != "*") && Pattern(pattern).Match(text)
}

// exempts says whether the rule takes a limit away.
func (r *httpRule) exempts() bool {
	return slices.ContainsFunc(r.limits, func(m *Limit) bool { return m.Unlimited || len(m.Replaced) > 0 })
}

// fits says whether one text matches a pattern, or all of them if the rule exempts.
func (r *httpRule) fits(pattern string, texts []string) bool {
	if r.exempts() {
		return !slices.ContainsFunc(texts, func(text string) bool { return !matches(pattern, text) })
	}
	return slices.ContainsFunc(texts, func(text string) bool { return matches(pattern, text) })
}

func (r *httpRule) servesPath(s *subject) bool {
	paths, exempts := s.paths, r.exempts()
	if exempts {
		paths = s.exact
	}
	return r.Path == "" || s.unread && !exempts ||
		!s.unread && (r.fits(r.Path, paths) || r.fits(strings.TrimSuffix(r.Path, "/*"), paths)) // /a/* is also /a
}

// misses returns the part of match that doesn't, "" if all do.
func (r *httpRule) misses(s *subject) string {
	switch {
	case !r.servesPath(s):
		return "path"
	case r.Host != "" && !matches(r.Host, s.is["host"]):
		return "host"
	case len(r.Methods) > 0 && !slices.Contains(r.Methods, s.is["method"]):
		return "methods"
	case len(r.Addresses) > 0 && !slices.ContainsFunc(r.Addresses, func(n network) bool { return n.Contains(s.address) }):
		return "addresses"
	}
	for name, pattern := range r.Headers {
		values := s.header.Values(name)
		if values = append(values, strings.Join(values, ", ")); !r.fits(pattern, values) {
			return "headers"
		}
	}
	return ""
}

// token is a method or the name of a header.
var token = regexp.MustCompile("^[0-9A-Za-z!#$%&'+.^_`|~-]+$")

// cleanHost returns a host in lower case, without its port and last dot.
func cleanHost(host string) string {
	return strings.TrimSuffix((&url.URL{Host: strings.ToLower(host)}).Hostname(), ".")
}
