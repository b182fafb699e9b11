package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
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

	ignoreCase bool // of paths
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
	h := &httpRules{domain: d, address: throttlehttp.ByNetwork(128, trusted...), network: throttlehttp.ByNetwork(bits, trusted...),
		ignoreCase: f.IgnoreCase}
	l.http[d.name] = h
	for i := range f.Rules {
		r := l.loadHTTPRule(&f.Rules[i], rule, d.tag)
		if f.IgnoreCase && !r.exempts() {
			r.Path = strings.ToLower(r.Path)
		}
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
	if r.limit.Late {
		l.fail(at, rule, "late is for descriptors: /check takes one hit before the request")
	}
	if r.by == nil {
		r.by = []string{"address"}
	}
	for _, by := range r.by {
		if !slices.Contains([]string{"address", "method", "path", "host"}, by) && !strings.HasPrefix(by, "header:") {
			l.fail(at, rule, "by is a list of address, method, path, host and header:NAME, not %q", by)
		} else if name, is := strings.CutPrefix(by, "header:"); is && !token.MatchString(name) {
			l.fail(at, rule, "no request has a header %q", name)
		}
	}
	if given(&f.Match) {
		r.matchLevel = decode[matchLevel](l, &f.Match, rule)
		r.Host, r.Methods = cleanHost(r.Host), strings.Fields(strings.ToUpper(strings.Join(r.Methods, " ")))
		l.checkMatch(&f.Match, rule, &r.matchLevel)
		clean := readings(r.Path)[0]
		switch {
		case strings.HasPrefix(r.Path, "*") || r.Path == "" || r.Path == clean:
		case r.Path == clean+"/":
			r.Path = clean
		default:
			l.fail(at, rule, "no request has the path %s: write %s", r.Path, clean)
		}
	}
	return r
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

// appendAsks appends what a request asks of the rules that it matches. It returns a header that the request has several
// times, if a rule counts by it.
func (h *httpRules) appendAsks(asks []ask, r *http.Request) (_ []ask, repeated string) {
	sub := h.subject(r)
	for i := range h.rules {
		if h.rules[i].matches(sub) {
			asks = append(asks, h.rules[i].ask(h.domain, sub))
			repeated = cmp.Or(repeated, h.rules[i].repeated(sub))
		}
	}
	return asks, repeated
}

// check answers a proxy: 200 lets the request through, and 429 refuses it. The http rules of all domains count, or those of
// one: /check/NAME. ?deny=403 refuses with another status.
func (s *service) check(w http.ResponseWriter, r *http.Request) {
	name := strings.Trim(strings.TrimPrefix(r.URL.Path, "/check"), "/")
	all := s.rules.Load().http
	names := []string{name}
	if name == "" {
		names = slices.Sorted(maps.Keys(all))
	}
	if len(names) == 0 || all[names[0]] == nil {
		http.Error(w, fmt.Sprintf("no domain %q has http rules", name), http.StatusNotFound)
		return
	}
	deny, err := strconv.Atoi(cmp.Or(r.URL.Query().Get("deny"), "429"))
	if err != nil || deny < 400 || deny > 599 {
		http.Error(w, "deny is 400 to 599", http.StatusBadRequest)
		return
	}
	var asks []ask
	for _, name := range names {
		var repeated string
		if asks, repeated = all[name].appendAsks(asks, r); repeated != "" {
			http.Error(w, "the request has more than one header "+repeated, deny)
			return
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
	web.HandleFunc("GET /healthcheck", s.healthcheck)
	debug.HandleFunc("POST /json", s.json) // it gives units back, too: clients must not reach it
	debug.Handle("GET /metrics", promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{}))
	debug.HandleFunc("GET /rules", s.showRules)
	return web, debug
}

func (s *service) healthcheck(w http.ResponseWriter, _ *http.Request) {
	if why := s.refusal.Load(); why != nil {
		http.Error(w, (*why).Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "OK")
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
