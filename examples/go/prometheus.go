package examples

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"gothrottle/throttle"
)

// PrometheusObserver returns a function for throttle.Observe, with two metrics: throttle_decisions_total counts
// decisions by verb, result and source; throttle_decision_duration_seconds has the time of a decision by verb.
func PrometheusObserver(registry prometheus.Registerer) (func(throttle.Event), error) {
	decisions := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "throttle_decisions_total", Help: "Decisions of rate limiters.",
	}, []string{"verb", "result", "source"})
	duration := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "throttle_decision_duration_seconds", Help: "Time from the call of a verb to its return.",
		Buckets: []float64{0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1},
	}, []string{"verb"})
	if err := errors.Join(registry.Register(decisions), registry.Register(duration)); err != nil {
		return nil, err
	}
	return func(e throttle.Event) {
		verb, result, source := outcome(e)
		decisions.WithLabelValues(verb, result, source).Inc()
		duration.WithLabelValues(verb).Observe(e.Took.Seconds())
	}, nil
}
