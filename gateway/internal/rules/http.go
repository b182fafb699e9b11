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
	"strings"

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

	ignoreCase bool // of paths
}

// httpRule is one rule. A request counts for each rule that matches it.
type httpRule struct {
	matchLevel
	limit *Limit
	name  string
	by    []string // what has a limit of its own
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
	case f.TrustedProxies == nil:
		l.warn(at, rule, "without trusted_proxies all requests count for the proxy's own address")
	}
	var trusted []netip.Prefix
	for _, n := range f.TrustedProxies {
		trusted = append(trusted, n.Prefix)
	}
	h := &HTTP{domain: d, address: throttlehttp.ByNetwork(128, trusted...), network: throttlehttp.ByNetwork(bits, trusted...),
		proxies: f.TrustedProxies, ignoreCase: f.IgnoreCase}
	l.HTTP[d.name] = h
	for i := range f.Rules {
		r := l.loadHTTPRule(&f.Rules[i], rule, d.tag)
		if f.IgnoreCase && !r.exempts() {
			r.Path = strings.ToLower(r.Path)
		}
		if slices.ContainsFunc(h.rules, func(other httpRule) bool { return other.name == r.name }) {
			l.fail(&f.Rules[i], r.limit.Path, "this name is there twice")
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
	r = httpRule{name: f.Name, by: f.By, limit: l.loadLimit(&f.RateLimit, rule, tag, given(&f.Cost))}
	r.limit.Shadow, r.limit.Name = f.ShadowMode, cmp.Or(r.limit.Name, f.Name)
	if r.limit.Algorithm == Concurrency {
		l.fail(at, rule, "concurrency is for descriptors: a proxy that asks /check does not report the end of a request")
	}
	if given(&f.Cost) {
		r.limit.Cost = new(decode[costLevel](l, &f.Cost, rule))
	}
	if wrong := r.limit.mistakeOfCost(); wrong != "" {
		l.fail(at, rule, "%s", wrong)
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
	case int64(cost.Estimate) > m.Fits():
		return fmt.Sprintf("no request has room for the estimate: the limit is %d", m.Fits())
	}
	return ""
}

// Trusts says whether the request comes from a proxy of trusted_proxies.
func (h *HTTP) Trusts(r *http.Request) bool {
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	return slices.ContainsFunc(h.proxies, func(n network) bool { return n.Contains(peer.Addr().Unmap().WithZone("")) })
}

// Blind says whether a proxy names no path, and a rule has one.
func (h *HTTP) Blind(r *http.Request) bool {
	return r.Header.Get("X-Forwarded-Uri") == "" && h.Trusts(r) && slices.ContainsFunc(h.rules, func(one httpRule) bool { return one.Path != "" })
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
}

// subject reads what the proxy says about a request.
func (h *HTTP) subject(r *http.Request) *subject {
	var address network // a proxy at a Unix socket has none
	_ = address.UnmarshalText([]byte(strings.TrimPrefix(strings.Trim(h.address(r), "{}"), "ip:")))
	exact, all := readings(r.Header.Get("X-Forwarded-Uri"))
	paths := exact
	if h.ignoreCase {
		paths = slices.Clone(exact)
		for i, p := range paths {
			paths[i] = strings.ToLower(p)
		}
	}
	return &subject{address: address.Addr(), header: r.Header, paths: paths, exact: exact, unread: !all, is: map[string]string{
		"address": strings.Trim(h.network(r), "{}"), // the gateway's keys have a hash tag of their own
		"method":  strings.ToUpper(cmp.Or(r.Header.Get("X-Forwarded-Method"), r.Method)),
		"path":    paths[0],
		"host":    cleanHost(cmp.Or(r.Header.Get("X-Forwarded-Host"), r.Host)),
	}}
}

// Match finds the limits that a request counts for.
func (h *HTTP) Match(r *http.Request) (all []Found) {
	s := h.subject(r)
	for i := range h.rules {
		if rule := &h.rules[i]; rule.misses(s) == "" {
			f := Found{Limit: rule.limit, Label: rule.limit.Path}
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
			all = append(all, f)
		}
	}
	return all
}

// Explain says which rules a request counts for, and what keeps it from counting for the others. say describes a limit.
func (h *HTTP) Explain(r *http.Request, say func(Found) string) (lines []string) {
	s := h.subject(r)
	lines = append(lines, fmt.Sprintf("%s %s%s from %s, paths %q", s.is["method"], s.is["host"], s.is["path"], s.is["address"], s.paths))
	found := h.Match(r)
	for i := range h.rules {
		rule := &h.rules[i]
		if part := rule.misses(s); part != "" {
			lines = append(lines, rule.name+": no, because of its "+part)
			continue
		}
		at := slices.IndexFunc(found, func(f Found) bool { return f.Limit == rule.limit })
		lines = append(lines, rule.name+": yes, "+say(found[at]))
	}
	return lines
}

// matches says whether a pattern matches a text. A star alone matches any but the empty one: a header that isn't there.
func matches(pattern, text string) bool {
	return (text != "" || pattern != "*") && Pattern(pattern).Match(text)
}

// exempts says whether the rule takes a limit away.
func (r *httpRule) exempts() bool { return r.limit.Unlimited || len(r.limit.Replaced) > 0 }

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
