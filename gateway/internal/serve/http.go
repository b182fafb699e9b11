package serve

import (
	"cmp"
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
	"google.golang.org/protobuf/encoding/protojson"

	"gothrottle/gateway/internal/engine"
	"gothrottle/gateway/internal/rules"
)

// check answers a proxy: 200 lets the request through, and 429 refuses it. The http rules of all domains count, or those of
// one: /check/NAME. ?deny=403 refuses with another status.
func (s *Service) check(w http.ResponseWriter, r *http.Request) {
	name := strings.Trim(strings.TrimPrefix(r.URL.Path, "/check"), "/")
	all := s.Rules.Load().HTTP
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
	began := time.Now()
	var asks []engine.Ask
	for _, name := range names {
		found, repeated := all[name].Match(r)
		if repeated != "" {
			http.Error(w, "the request has more than one header "+repeated, deny)
			return
		}
		for _, f := range found {
			asks = append(asks, engine.Ask{Found: f, Hits: 1})
		}
	}
	response, tightest := s.decide(r.Context(), asks)
	if tightest >= 0 {
		st, a := response.Statuses[tightest], &asks[tightest]
		w.Header().Set("RateLimit", fmt.Sprintf("%q;r=%d;t=%d", a.Name, st.LimitRemaining, st.DurationUntilReset.Seconds))
		w.Header().Set("RateLimit-Policy", fmt.Sprintf("%q;q=%d;w=%d", a.Name, st.CurrentLimit.RequestsPerUnit, int64(a.Period.Seconds())))
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
	s.metrics.took.WithLabelValues("http").Observe(time.Since(began).Seconds())
}

// Handlers serve what clients ask over HTTP, and what operators ask.
func (s *Service) Handlers() (web, debug *http.ServeMux) {
	web, debug = http.NewServeMux(), http.NewServeMux()
	web.HandleFunc("/check", s.check)
	web.HandleFunc("/check/", s.check)
	web.HandleFunc("GET /healthcheck", s.healthcheck)
	debug.HandleFunc("POST /json", s.json) // it gives units back, too: clients must not reach it
	debug.Handle("GET /metrics", s.Metrics("/metrics"))
	debug.HandleFunc("GET /rules", s.showRules)
	debug.HandleFunc("POST /explain", s.explain)
	debug.HandleFunc("GET /explain", s.explainHTTP)
	return web, debug
}

// Metrics serves the metrics at a path.
func (s *Service) Metrics(path string) http.Handler {
	at := http.NewServeMux()
	at.Handle("GET "+path, promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{}))
	return at
}

func (s *Service) healthcheck(w http.ResponseWriter, _ *http.Request) {
	if why := s.refusal.Load(); why != nil {
		http.Error(w, (*why).Error(), http.StatusServiceUnavailable)
		return
	}
	answer := "OK"
	if s.engine.Script {
		answer = "OK, by the script"
	}
	fmt.Fprintln(w, answer)
}

// json is ShouldRateLimit for clients without gRPC: 200 or 429, with the response as JSON.
func (s *Service) json(w http.ResponseWriter, r *http.Request) {
	req, err := readRequest(w, r)
	var response *pb.RateLimitResponse
	if err != nil {
		s.metrics.refused.WithLabelValues("invalid").Inc()
	} else {
		response, err = s.ShouldRateLimit(r.Context(), req)
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

func readRequest(w http.ResponseWriter, r *http.Request) (*pb.RateLimitRequest, error) {
	req := new(pb.RateLimitRequest)
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxMessage))
	if err == nil {
		err = protojson.Unmarshal(body, req)
	}
	return req, err
}

// explain says which limits a RateLimitRequest has, and why. It takes nothing.
func (s *Service) explain(w http.ResponseWriter, r *http.Request) {
	req, err := readRequest(w, r)
	d := s.Rules.Load().Domains[req.GetDomain()]
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	case d == nil:
		fmt.Fprintf(w, "no limit: no rules have the domain %q\n", req.GetDomain())
	default:
		for _, one := range req.GetDescriptors() {
			entries := one.GetEntries()[:min(len(one.GetEntries()), rules.MaxEntries)]
			if last := len(entries) - 1; last >= 0 && entries[last].GetKey() == settleKey {
				entries = entries[:last]
			}
			fmt.Fprintln(w, strings.Join(d.Explain(entries), "\n"))
		}
	}
}

// explainHTTP says which http rules a request with these headers counts for. It takes nothing.
func (s *Service) explainHTTP(w http.ResponseWriter, r *http.Request) {
	for name, h := range s.Rules.Load().HTTP {
		fmt.Fprintf(w, "domain %s: %s\n", name, strings.Join(h.Explain(r), "\n"))
	}
}

// showRules shows the limits in force, a line of JSON for each.
func (s *Service) showRules(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	for _, m := range s.Rules.Load().Limits {
		_ = encoder.Encode(map[string]any{
			"rule": m.Path, "place": m.Place, "units": m.Units, "period": m.Period.String(), "algorithm": m.Algorithm,
			"unlimited": m.Unlimited, "shadow": m.Shadow, "on_failure": m.OnFailure, "share": m.Share,
		})
	}
}
