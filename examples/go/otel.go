package examples

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"gothrottle/throttle"
)

// OTelObserver returns a function for throttle.Observe, with two instruments: throttle.decisions counts decisions
// by verb, result and source; throttle.duration has the seconds of a decision by verb.
func OTelObserver(meter metric.Meter) (func(throttle.Event), error) {
	decisions, err := meter.Int64Counter("throttle.decisions", metric.WithUnit("{decision}"),
		metric.WithDescription("Decisions of rate limiters."))
	if err != nil {
		return nil, err
	}
	duration, err := meter.Float64Histogram("throttle.duration", metric.WithUnit("s"),
		metric.WithDescription("Time from the call of a verb to its return."),
		metric.WithExplicitBucketBoundaries(0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1))
	if err != nil {
		return nil, err
	}
	return func(e throttle.Event) {
		verb, result, source := outcome(e)
		decisions.Add(context.Background(), 1, metric.WithAttributes(
			attribute.String("verb", verb), attribute.String("result", result), attribute.String("source", source)))
		duration.Record(context.Background(), e.Took.Seconds(), metric.WithAttributes(attribute.String("verb", verb)))
	}, nil
}
