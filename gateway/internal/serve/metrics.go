package serve

import (
	"context"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"

	"gothrottle/gateway/internal/engine"
)

// metrics is what /metrics shows. The rule of a metric is its path in the files, and holds values of requests only if the
// rule has detailed_metric or value_to_metric.
type metrics struct {
	registry                                   *prometheus.Registry
	decisions, near, fallbacks, refused, loads *prometheus.CounterVec
	took                                       prometheus.Histogram
	nearRatio                                  float64
}

func newMetrics(nearRatio float64) *metrics {
	const space = "gothrottle_gateway"
	m := &metrics{registry: prometheus.NewRegistry(), nearRatio: nearRatio}
	register := promauto.With(m.registry)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return register.NewCounterVec(prometheus.CounterOpts{Namespace: space, Name: name, Help: help}, labels)
	}
	m.decisions = counter("decisions_total", "Decisions by rule and outcome: ok, over_limit, shadow or unlimited.", "rule", "outcome")
	m.near = counter("near_limit_total", "Admitted hits after which more than NEAR_LIMIT_RATIO of the limit was used.", "rule")
	m.fallbacks = counter("fallbacks_total", "Decisions that the server did not make, by rule and on_failure.", "rule", "policy")
	m.refused = counter("refused_requests_total", "Requests without a decision: invalid, or of a domain without rules.", "reason")
	m.loads = counter("loads_total", "Files of rules that were loaded or refused.", "outcome")
	m.took = register.NewHistogram(prometheus.HistogramOpts{Namespace: space, Name: "request_seconds",
		Help: "Time from a request for a decision to its response, over gRPC and at /json.", Buckets: prometheus.ExponentialBuckets(1e-4, 2, 12)})
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Loaded counts files of rules that were loaded, or refused because of an error.
func (s *Service) Loaded(err error) {
	s.metrics.loads.WithLabelValues(map[bool]string{true: "refused", false: "loaded"}[err != nil]).Inc()
}

// decided counts a decision.
func (m *metrics) decided(a *engine.Ask) {
	outcome := "ok"
	switch {
	case a.Unlimited:
		outcome = "unlimited"
	case a.Over && a.Shadow:
		outcome = "shadow"
	case a.Over:
		outcome = "over_limit"
	case float64(a.Units-a.Remaining) > math.Floor(float64(a.Units)*m.nearRatio):
		m.near.WithLabelValues(a.Label).Inc()
	}
	m.decisions.WithLabelValues(a.Label, outcome).Inc()
	if a.Fallback != "" {
		m.fallbacks.WithLabelValues(a.Label, string(a.Fallback)).Inc()
	}
}

// Tracing makes a span of each gRPC call, below the caller's, and sends it by OTLP over HTTP, as the variables OTEL_* say.
func Tracing(ctx context.Context) (option grpc.ServerOption, end func(), err error) {
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, nil, err
	}
	provider := trace.NewTracerProvider(trace.WithBatcher(exporter))
	handler := otelgrpc.NewServerHandler(otelgrpc.WithTracerProvider(provider), otelgrpc.WithPropagators(propagation.TraceContext{}))
	return grpc.StatsHandler(handler), func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = provider.Shutdown(ctx)
	}, nil
}
