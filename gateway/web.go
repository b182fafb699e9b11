package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protojson"
)

// handler serves what clients ask over HTTP.
func (s *service) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/check", s.check)
	mux.HandleFunc("/check/", s.check)
	mux.HandleFunc("POST /json", s.json)
	mux.HandleFunc("GET /healthcheck", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "OK") })
	return mux
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
		s.metrics.refused.Inc()
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

// debugHandler serves what operators ask.
func (s *service) debugHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.metrics.handler())
	mux.HandleFunc("GET /rules", s.showRules)
	return mux
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
