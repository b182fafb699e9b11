package serve

import (
	"context"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace"

	"gothrottle/gateway/internal/engine"
	"gothrottle/gateway/internal/rules"
)

// metrics is what /metrics shows, under names of our own and those of envoyproxy/ratelimit.
type metrics struct {
	registry                         *prometheus.Registry
	decisions, hits, near, fallbacks *prometheus.CounterVec // by rule
	refused, loads, settles, holds   *prometheus.CounterVec
	took                             *prometheus.HistogramVec
	serverTook                       prometheus.Histogram
	inForce                          *prometheus.GaugeVec
	theirTook                        prometheus.Observer
	theirCalls, theirErrors          prometheus.Counter
	wrongLimits                      prometheus.Counter
	theirLoads                       map[bool]prometheus.Counter       // by: without an error
	theirHits                        map[string]*prometheus.CounterVec // by rule
	nearRatio                        float64

	known  sync.Map // *counters by label and outcome
	labels atomic.Int64
}

// counters count the decisions over a rule that have one outcome. The label of a rule is its path in the files, and holds values
// of requests only if the rule has detailed_metric or value_to_metric.
type counters struct {
	label       string
	theirLabels []string // the first three parts of the path: rules that share them have a sum
	decisions   prometheus.Counter
	hits        []prometheus.Counter
}

// Each outcome of a decision counts its hits for these metrics of envoyproxy/ratelimit.
const ok, overLimit, shadow, unlimited = "ok", "over_limit", "shadow", "unlimited"

var theirHits = map[string][]string{
	ok:        {"total_hits", "within_limit"},
	overLimit: {"total_hits", "over_limit"},
	shadow:    {"total_hits", "over_limit", "shadow_mode"},
}

const (
	space = "gothrottle_gateway" // begins the names of our own metrics
	// MaxLabels is how many pairs of rule and outcome have counters of their own. Values beyond that count for the rule without
	// values.
	MaxLabels = 10_000
)

func newMetrics(nearRatio float64) *metrics {
	const asTheirs, byRule = "As envoyproxy/ratelimit has it.", "By rule: see docs/gateway.md."
	m := &metrics{registry: prometheus.NewRegistry(), nearRatio: nearRatio, theirHits: map[string]*prometheus.CounterVec{}}
	register := promauto.With(m.registry)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return register.NewCounterVec(prometheus.CounterOpts{Namespace: space, Name: name, Help: help}, labels)
	}
	buckets := prometheus.ExponentialBuckets(1e-4, 2, 12)
	m.decisions, m.hits = counter("decisions_total", byRule, "rule", "outcome"), counter("hits_total", byRule, "rule", "outcome")
	m.near, m.fallbacks = counter("near_limit_total", byRule, "rule"), counter("fallbacks_total", byRule, "rule", "policy")
	m.refused = counter("refused_requests_total", "Requests without a decision: invalid, no_domain (it has no rules) or no_rules (none have come).", "reason")
	m.wrongLimits = counter("wrong_limits_total", "Limits in headers that are no number from 0 to the max of the rule, so its own number counted.").WithLabelValues()
	m.loads = counter("loads_total", "Sets of rules that were loaded or refused.", "outcome")
	m.settles = counter("settles_total", "Costs: due (/check has admitted a request), and reports of them: charged, nothing (no rule or no number), invalid or undecided.", "outcome")
	for _, outcome := range []string{"due", "charged", "nothing", "invalid", "undecided"} { // so that alerts see the first one
		m.settles.WithLabelValues(outcome)
	}
	m.holds = counter("holds_total", "Estimates: held, returned (another rule has refused the request), settled, already (settled before) or overdue (reported after the hold).", "outcome")
	for _, outcome := range []string{"held", "returned", engine.Settled, engine.Already, engine.Overdue} {
		m.holds.WithLabelValues(outcome)
	}
	m.took = register.NewHistogramVec(prometheus.HistogramOpts{Namespace: space, Name: "request_seconds",
		Help: "Time from a request for a decision to its answer. The protocol is grpc, also at /json, or http.", Buckets: buckets}, []string{"protocol"})
	m.serverTook = register.NewHistogram(prometheus.HistogramOpts{Namespace: space, Name: "server_seconds",
		Help: "Time of calls to Redis or Valkey, one command or a pipeline, from the call to its last reply.", Buckets: buckets})
	m.inForce = register.NewGaugeVec(prometheus.GaugeOpts{Namespace: space, Name: "rules_loaded_timestamp_seconds",
		Help: "When the rules in force were loaded, in seconds since 1970. The hash is of the files, the version the management server's."}, []string{"hash", "version"})
	m.theirTook = register.NewHistogramVec(prometheus.HistogramOpts{Name: "ratelimit_service_response_time_seconds",
		Help: asTheirs, Buckets: buckets}, []string{"grpc_method"}).WithLabelValues("ShouldRateLimit")
	their := func(name string, labels ...string) *prometheus.CounterVec {
		return register.NewCounterVec(prometheus.CounterOpts{Name: "ratelimit_service_" + name, Help: asTheirs}, labels)
	}
	m.theirLoads = map[bool]prometheus.Counter{true: their("config_load_success").WithLabelValues(), false: their("config_load_error").WithLabelValues()}
	m.theirCalls = their("total_requests", "grpc_method").WithLabelValues("ShouldRateLimit")
	m.theirErrors = their("should_rate_limit_error", "err_type").WithLabelValues("redis_error")
	for _, name := range append(theirHits[shadow], "within_limit", "near_limit") {
		m.theirHits[name] = their("rate_limit_"+name, "domain", "key1", "key2")
	}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Loaded puts a set of rules into force, or counts that it was refused because of an error.
func (s *Service) Loaded(set *rules.Set, err error) {
	if err == nil {
		s.Rules.Store(set)
		s.metrics.inForce.Reset()
		s.metrics.inForce.WithLabelValues(set.Hash, set.Version).Set(float64(set.Loaded.Unix()))
	}
	s.metrics.loads.WithLabelValues(map[bool]string{true: "refused", false: "loaded"}[err != nil]).Inc()
	s.metrics.theirLoads[err == nil].Inc()
}

// gauge returns what sets a gauge: 1 if there is an error, else 0.
func (m *metrics) gauge(name, help string) func(error) {
	g := promauto.With(m.registry).NewGauge(prometheus.GaugeOpts{Namespace: space, Name: name, Help: help})
	return func(why error) { g.Set(map[bool]float64{true: 1}[why != nil]) }
}

// of returns the counters of a rule.
func (m *metrics) of(a *engine.Ask, outcome string) *counters {
	key := [2]string{a.Label, outcome} // values of requests may be in the label
	for range 2 {
		if c, found := m.known.Load(key); found {
			return c.(*counters)
		}
		if n := m.labels.Load(); n >= MaxLabels {
			if key[0] = "other"; a.Limit != nil && n < 10*MaxLabels {
				key[0] = a.Path
			}
		}
	}
	c := &counters{label: key[0], theirLabels: append(strings.SplitN(key[0], ".", 4), "", "")[:3],
		decisions: m.decisions.WithLabelValues(key[:]...), hits: []prometheus.Counter{m.hits.WithLabelValues(key[:]...)}}
	for _, name := range theirHits[outcome] {
		c.hits = append(c.hits, m.theirHits[name].WithLabelValues(c.theirLabels...))
	}
	if _, found := m.known.LoadOrStore(key, c); !found {
		m.labels.Add(1)
	}
	return c
}

// decided counts a decision.
func (m *metrics) decided(a *engine.Ask) {
	outcome, near, hits := ok, false, float64(charged(a))
	switch {
	case a.Unlimited:
		outcome = unlimited
	case a.Over && a.Shadow:
		outcome = shadow
	case a.Over:
		outcome = overLimit
	default:
		near = a.Counted() && float64(a.Units-a.Remaining) > math.Floor(float64(a.Units)*m.nearRatio)
	}
	c := m.of(a, outcome)
	c.decisions.Inc()
	for _, sum := range c.hits {
		sum.Add(hits)
	}
	if near {
		m.near.WithLabelValues(c.label).Add(hits)
		m.theirHits["near_limit"].WithLabelValues(c.theirLabels...).Add(hits)
	}
	if a.Fallback != "" {
		m.fallbacks.WithLabelValues(c.label, string(a.Fallback)).Inc()
		m.theirErrors.Inc()
	}
}

// charged returns the hits that hits_total has: those that were taken or, of a refused request and one that the server has not
// decided, asked for. A cost counts when its report comes.
func charged(a *engine.Ask) int64 {
	switch {
	case a.Limit == nil:
	case a.Cost != nil:
		return a.Total
	case a.Fallback == "" && !a.Over && a.Algorithm != rules.Concurrency:
		return max(a.Granted, 0)
	}
	return max(a.Hits, 0)
}

// Trace lets otelgrpc and otelhttp make spans of calls, below the caller's, and sends them by OTLP over HTTP, as the variables
// OTEL_* say. The function that it returns sends the last ones, within 5 s.
func Trace(ctx context.Context) (end func(), err error) {
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, err
	}
	provider := trace.NewTracerProvider(trace.WithBatcher(exporter))
	otel.SetTracerProvider(provider)
	otel.SetTextMapPropagator(propagation.TraceContext{})
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = provider.Shutdown(ctx)
	}, nil
}
