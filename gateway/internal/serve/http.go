package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/encoding/protojson"

	"gothrottle/gateway/internal/engine"
)

// match finds the http rules that a request counts for: those of all domains, or of one, as in /check/NAME. A report must come
// from a proxy that the rules trust. An error comes with the status of the answer.
func (s *Service) match(r *http.Request, report bool, deny int) (asks []engine.Ask, status int, err error) {
	_, name, _ := strings.Cut(strings.Trim(r.URL.Path, "/"), "/")
	set, names := s.Rules.Load(), []string{name}
	if name == "" {
		names = slices.Sorted(maps.Keys(set.HTTP))
	}
	if len(names) == 0 || set.HTTP[names[0]] == nil { // all is admitted if the domain has other rules: its file may have lost these
		reason := "no_domain"
		if set.Domains == nil { // a client that sees it should come again
			reason, status, err = "no_rules", http.StatusServiceUnavailable, errors.New("no rules received yet")
		} else if name != "" && set.Domains[name] == nil {
			status, err = http.StatusNotFound, fmt.Errorf("no rules have the domain %q", name)
		}
		s.metrics.refused.WithLabelValues(reason).Inc()
		s.engine.Complain("a proxy asks for a domain without http rules", "reason", reason, "path", r.URL.Path)
		return nil, status, err
	}
	for _, name := range names {
		h := set.HTTP[name]
		if report && !h.Trusts(r) {
			return nil, http.StatusForbidden, fmt.Errorf("%s is not among the trusted_proxies of the domain %s", r.RemoteAddr, name)
		}
		if h.Blind(r) {
			s.engine.Log.Warn("a request has neither X-Forwarded-Uri nor X-Original-URL, so rules with a path see none", "domain", name)
		}
		for _, f := range h.Match(r) {
			if f.Default && !report {
				s.metrics.wrongLimits.Inc()
				s.engine.Complain("the header of a limit has no number up to max, so requests_per_unit counts", "rule", f.Label, "header", f.Header)
			}
			a := engine.Ask{Found: f, Hits: 1}
			if f.Cost != nil {
				a.Hits = int64(f.Cost.Estimate)
			}
			asks = append(asks, a)
		}
	}
	s.engine.Replace(asks)
	for _, a := range asks {
		if a.Repeated != "" && a.Limit != nil && !a.Limit.Shadow && !s.engine.Shadow {
			s.metrics.refused.WithLabelValues("invalid").Inc()
			return nil, deny, errors.New("the request has more than one header " + a.Repeated)
		}
	}
	return asks, 0, nil
}

// check answers a proxy: 200 lets the request through, and 429 refuses it. ?deny=403 refuses with another status.
func (s *Service) check(w http.ResponseWriter, r *http.Request) {
	deny, err := strconv.Atoi(cmp.Or(r.URL.Query().Get("deny"), "429"))
	if err != nil || deny < 400 || deny > 599 {
		http.Error(w, "deny is 400 to 599", http.StatusBadRequest)
		return
	}
	began := time.Now()
	asks, status, err := s.match(r, false, deny)
	if err != nil {
		http.Error(w, err.Error(), status)
		return
	}
	response, tightest := s.decide(r.Context(), asks, len(asks))
	if by := fallback(asks); by != "" {
		w.Header().Set(fallbackHeader, by)
	}
	if tightest >= 0 {
		describe(w.Header(), asks, response.Statuses, tightest)
	}
	back, names := s.reserved(asks, began)
	refused := response.OverallCode == pb.RateLimitResponse_OVER_LIMIT
	if refused || r.Context().Err() != nil { // or nobody learns what is reserved
		s.engine.Decide(context.WithoutCancel(r.Context()), back)
		s.giveBack(asks)
	} else if slices.ContainsFunc(asks, func(a engine.Ask) bool { return a.Limit != nil && a.Cost != nil }) {
		s.metrics.settles.WithLabelValues("due").Inc()
		if len(names) > 0 {
			w.Header().Set(reservedHeader, strings.Join(names, ","))
		}
	}
	if refused {
		w.Header().Set("Retry-After", strconv.FormatInt(longestWait(asks), 10))
		http.Error(w, "Too Many Requests", deny)
	}
	s.metrics.took.WithLabelValues("http").Observe(time.Since(began).Seconds())
}

// describe sets the headers that name a limit, then the others of its rule.
func describe(h http.Header, asks []engine.Ask, statuses []*pb.RateLimitResponse_DescriptorStatus, tightest int) {
	var left, policies []string
	add := func(i int) {
		a, st := &asks[i], statuses[i]
		left = append(left, fmt.Sprintf("%q;r=%d;t=%d", a.Name, st.LimitRemaining, st.DurationUntilReset.Seconds))
		policy := fmt.Sprintf("%q;q=%d", a.Name, st.CurrentLimit.RequestsPerUnit)
		if a.TimeZone.Location == nil { // calendar days and months differ in length
			policy += fmt.Sprintf(";w=%d", (a.Period+time.Second-1)/time.Second)
		}
		policies = append(policies, policy)
	}
	add(tightest)
	for i := range asks {
		if i != tightest && asks[i].Key == asks[tightest].Key && statuses[i].CurrentLimit != nil {
			add(i)
		}
	}
	h.Set("RateLimit", strings.Join(left, ", "))
	h.Set("RateLimit-Policy", strings.Join(policies, ", "))
}

// longestWait returns the seconds until no rule refuses.
func longestWait(asks []engine.Ask) int64 {
	retry := int64(1)
	for i := range asks {
		if a := &asks[i]; a.Limit != nil && a.Over && !a.Shadow {
			retry = max(retry, untilReset(a))
		}
	}
	return retry
}

// Handlers serve what clients ask over HTTP, what operators ask, and the metrics alone.
func (s *Service) Handlers() (web, debug *http.ServeMux, metrics http.Handler) {
	web, debug, metrics = http.NewServeMux(), http.NewServeMux(), promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{})
	web.HandleFunc("/check", s.check)
	web.HandleFunc("/check/", s.check)
	web.HandleFunc("POST /settle", s.settle)
	web.HandleFunc("POST /settle/", s.settle)
	web.HandleFunc("GET /healthcheck", s.healthcheck)
	debug.HandleFunc("POST /json", s.json) // it gives units back, too: clients must not reach it
	debug.Handle("GET /metrics", metrics)
	debug.HandleFunc("GET /rules", s.showRules)
	debug.HandleFunc("POST /explain", s.explain)
	debug.HandleFunc("GET /explain", s.explain)
	debug.HandleFunc("DELETE /explain", s.reset)
	if s.Top {
		debug.HandleFunc("GET /top", s.top)
	}
	return web, debug, metrics
}

func (s *Service) healthcheck(w http.ResponseWriter, _ *http.Request) {
	switch r, _ := s.Health.Check(context.Background(), &healthpb.HealthCheckRequest{}); {
	case r.GetStatus() != healthpb.HealthCheckResponse_SERVING:
		http.Error(w, "no domain has rules yet, or the gateway ends", http.StatusServiceUnavailable)
	case s.engine.Script:
		fmt.Fprintln(w, "OK, by the script")
	default:
		fmt.Fprintln(w, "OK")
	}
}

// json is ShouldRateLimit for clients without gRPC: 200 or 429, with the response as JSON.
func (s *Service) json(w http.ResponseWriter, r *http.Request) {
	req, err := readRequest(w, r)
	var response *pb.RateLimitResponse
	if err == nil {
		response, err = s.ShouldRateLimit(r.Context(), req)
	} else {
		s.metrics.refused.WithLabelValues("invalid").Inc()
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	text, _ := protojson.Marshal(response)
	w.Header().Set("Content-Type", "application/json")
	if response.OverallCode == pb.RateLimitResponse_OVER_LIMIT {
		w.WriteHeader(http.StatusTooManyRequests)
	}
	_, _ = w.Write(text)
}

func readRequest(w http.ResponseWriter, r *http.Request) (*pb.RateLimitRequest, error) {
	req := new(pb.RateLimitRequest)
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxMessage))
	if err == nil {
		err = protojson.Unmarshal(body, req)
	}
	return req, err
}

// showRules shows what rules are in force, and each limit, in lines of JSON.
func (s *Service) showRules(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	encoder, set := json.NewEncoder(w), s.Rules.Load()
	_ = encoder.Encode(map[string]any{"hash": set.Hash, "version": set.Version, "loaded": set.Loaded})
	for _, m := range set.Limits {
		_ = encoder.Encode(map[string]any{
			"rule": m.Path, "place": m.Place, "units": m.Units, "period": m.Period.String(), "algorithm": m.Algorithm,
			"unlimited": m.Unlimited, "shadow": m.Shadow, "on_failure": m.OnFailure, "share": m.Share,
		})
	}
}
