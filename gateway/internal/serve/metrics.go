package serve

import (
	"context"
	"math"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"

	"gothrottle/gateway/internal/engine"
	"gothrottle/gateway/internal/rules"
)

// metrics is what /metrics shows, under names of our own and those of envoyproxy/ratelimit.
type metrics struct {
	registry    *prometheus.Registry
	refused     *prometheus.CounterVec
	loads       *prometheus.CounterVec
	settles     *prometheus.CounterVec
	took        *prometheus.HistogramVec
	stale, away prometheus.Gauge
	theirTook   prometheus.Observer
	theirCalls  prometheus.Counter
	theirErrors prometheus.Counter
	theirLoads  map[bool]prometheus.Counter // by: without an error
	perRule     map[string]*prometheus.Desc // what Collect sends
	nearRatio   float64

	rules  sync.Map // map[string]*counts, by the label of the rule
	labels atomic.Int64
}

// counts are a rule's. The label of a rule is its path in the files, and holds values of requests only if the rule has
// detailed_metric or value_to_metric.
type counts struct {
	decisions, hits [len(outcomes)]atomic.Uint64
	near            atomic.Uint64 // hits
	fallbacks       [len(policies)]atomic.Uint64
}

const (
	ok = iota
	overLimit
	shadow
	unlimited
)

var (
	outcomes = [...]string{ok: "ok", overLimit: "over_limit", shadow: "shadow", unlimited: "unlimited"}
	policies = [...]rules.Failure{rules.FailOpen, rules.FailClosed, rules.FailLocal}
)

// space begins the names of our own metrics.
const space = "gothrottle_gateway"

// MaxLabels is how many rules have counts of their own. Values beyond that count for the rule without values.
const MaxLabels = 10_000

func newMetrics(nearRatio float64) *metrics {
	const asTheirs = "As envoyproxy/ratelimit has it."
	m := &metrics{registry: prometheus.NewRegistry(), nearRatio: nearRatio, perRule: map[string]*prometheus.Desc{}}
	register := promauto.With(m.registry)
	counter := func(name, help string, label string) *prometheus.CounterVec {
		return register.NewCounterVec(prometheus.CounterOpts{Namespace: space, Name: name, Help: help}, []string{label})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return register.NewGauge(prometheus.GaugeOpts{Namespace: space, Name: name, Help: help})
	}
	buckets := prometheus.ExponentialBuckets(1e-4, 2, 12)
	m.refused = counter("refused_requests_total", "Requests without a decision: invalid, no_domain (it has no rules) or no_rules (none have come).", "reason")
	m.loads = counter("loads_total", "Sets of rules that were loaded or refused.", "outcome")
	m.settles = counter("settles_total", "Costs: due (/check has admitted a request), and reports of them: charged, nothing (no rule or no number), invalid or undecided.", "outcome")
	for _, outcome := range []string{"due", "charged", "nothing", "invalid", "undecided"} { // so that alerts see the first one
		m.settles.WithLabelValues(outcome)
	}
	m.stale = gauge("rules_stale", "1: newer rules were refused, or the xDS server is away.")
	m.away = gauge("server_away", "1: Redis or Valkey does not answer, or refuses the gateway.")
	m.took = register.NewHistogramVec(prometheus.HistogramOpts{Namespace: space, Name: "request_seconds",
		Help: "Time from a request for a decision to its answer. The protocol is grpc, also at /json, or http.", Buckets: buckets}, []string{"protocol"})
	m.theirTook = register.NewHistogramVec(prometheus.HistogramOpts{Name: "ratelimit_service_response_time_seconds",
		Help: asTheirs, Buckets: buckets}, []string{"grpc_method"}).WithLabelValues("ShouldRateLimit")
	their := func(name string, labels ...string) *prometheus.CounterVec {
		return register.NewCounterVec(prometheus.CounterOpts{Name: "ratelimit_service_" + name, Help: asTheirs}, labels)
	}
	loaded, refused := their("config_load_success"), their("config_load_error")
	m.theirLoads = map[bool]prometheus.Counter{true: loaded.WithLabelValues(), false: refused.WithLabelValues()}
	m.theirCalls = their("total_requests", "grpc_method").WithLabelValues("ShouldRateLimit")
	m.theirErrors = their("should_rate_limit_error", "err_type").WithLabelValues("redis_error")
	for name, more := range map[string]string{"decisions_total": "outcome", "hits_total": "outcome", "near_limit_total": "", "fallbacks_total": "policy"} {
		m.perRule[name] = prometheus.NewDesc(space+"_"+name, "By rule: see docs/gateway.md.", strings.Fields("rule "+more), nil)
	}
	for _, name := range []string{"total_hits", "within_limit", "over_limit", "near_limit", "shadow_mode"} {
		m.perRule[name] = prometheus.NewDesc("ratelimit_service_rate_limit_"+name, asTheirs, []string{"domain", "key1", "key2"}, nil)
	}
	m.registry.MustRegister(m, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Loaded counts sets of rules that were loaded, or refused because of an error.
func (s *Service) Loaded(err error) {
	s.metrics.loads.WithLabelValues(map[bool]string{true: "refused", false: "loaded"}[err != nil]).Inc()
	s.metrics.theirLoads[err == nil].Inc()
}

// Stale notes why the rules may be older than they should be, nil if they aren't.
func (s *Service) Stale(why error) { set(s.metrics.stale, why) }

// Away notes why the server does not decide, nil if it does.
func (s *Service) Away(why error) { set(s.metrics.away, why) }

func set(g prometheus.Gauge, why error) {
	g.Set(0)
	if why != nil {
		g.Set(1)
	}
}

// of returns the counts of a rule.
func (m *metrics) of(a *engine.Ask) *counts {
	label := a.Label // in which values of requests may be
	if c, found := m.rules.Load(label); found {
		return c.(*counts)
	}
	if m.labels.Load() >= MaxLabels {
		if label = "other"; a.Limit != nil && m.labels.Load() < 10*MaxLabels {
			label = a.Path
		}
	}
	c, found := m.rules.LoadOrStore(label, new(counts))
	if !found {
		m.labels.Add(1)
	}
	return c.(*counts)
}

// decided counts a decision.
func (m *metrics) decided(a *engine.Ask) {
	c, outcome, hits := m.of(a), ok, uint64(charged(a))
	switch {
	case a.Unlimited:
		outcome = unlimited
	case a.Over && a.Shadow:
		outcome = shadow
	case a.Over:
		outcome = overLimit
	case a.Counted() && float64(a.Units-a.Remaining) > math.Floor(float64(a.Units)*m.nearRatio):
		c.near.Add(hits)
	}
	c.decisions[outcome].Add(1)
	c.hits[outcome].Add(hits)
	for i, policy := range policies {
		if a.Fallback == policy {
			c.fallbacks[i].Add(1)
			m.theirErrors.Inc()
		}
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

// Describe sends nothing: which rules there are changes.
func (m *metrics) Describe(chan<- *prometheus.Desc) {}

// sum is what rules have together by which envoyproxy/ratelimit counts: those whose paths have the same three first parts.
type sum struct {
	hits [len(outcomes)]uint64
	near uint64
}

// Collect sends the counts of all rules, and their sums.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	sums := map[[3]string]sum{}
	for label, c := range m.rules.Range {
		var keys [3]string
		copy(keys[:], strings.SplitN(label.(string), ".", 4))
		sums[keys] = m.collect(ch, label.(string), c.(*counts), sums[keys])
	}
	for keys, all := range sums {
		within, over, shadowed := all.hits[ok], all.hits[overLimit], all.hits[shadow]
		for name, n := range map[string]uint64{"within_limit": within, "over_limit": over + shadowed, "shadow_mode": shadowed,
			"total_hits": within + over + shadowed, "near_limit": all.near} {
			ch <- prometheus.MustNewConstMetric(m.perRule[name], prometheus.CounterValue, float64(n), keys[:]...)
		}
	}
}

// collect sends the counts of a rule, and adds them to a sum.
func (m *metrics) collect(ch chan<- prometheus.Metric, label string, c *counts, all sum) sum {
	send := func(name string, n uint64, labels ...string) uint64 {
		if n > 0 {
			ch <- prometheus.MustNewConstMetric(m.perRule[name], prometheus.CounterValue, float64(n), append([]string{label}, labels...)...)
		}
		return n
	}
	for i, outcome := range outcomes {
		send("decisions_total", c.decisions[i].Load(), outcome)
		all.hits[i] += send("hits_total", c.hits[i].Load(), outcome)
	}
	for i, policy := range policies {
		send("fallbacks_total", c.fallbacks[i].Load(), string(policy))
	}
	all.near += send("near_limit_total", c.near.Load())
	return all
}

// Traces makes a span of each call over gRPC and HTTP, below the caller's, and sends it by OTLP over HTTP, as the variables
// OTEL_* say.
type Traces struct {
	GRPC  grpc.ServerOption                 // for the calls of a server
	HTTP  func(h http.Handler) http.Handler // for h's requests, except health checks
	Close func()                            // sends the last spans, within 5 s
}

// NewTraces returns an error if a variable is wrong. Traces that are off make no spans.
func NewTraces(ctx context.Context, on bool) (Traces, error) {
	if !on {
		return Traces{grpc.EmptyServerOption{}, func(h http.Handler) http.Handler { return h }, func() {}}, nil
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return Traces{}, err
	}
	provider, callers := trace.NewTracerProvider(trace.WithBatcher(exporter)), propagation.TraceContext{}
	return Traces{
		GRPC: grpc.StatsHandler(otelgrpc.NewServerHandler(otelgrpc.WithTracerProvider(provider), otelgrpc.WithPropagators(callers))),
		HTTP: func(h http.Handler) http.Handler {
			return otelhttp.NewHandler(h, "", otelhttp.WithTracerProvider(provider), otelhttp.WithPropagators(callers),
				otelhttp.WithFilter(func(r *http.Request) bool { return r.URL.Path != "/healthcheck" }))
		},
		Close: func() {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			_ = provider.Shutdown(ctx)
		},
	}, nil
}
