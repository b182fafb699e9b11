package examples

import (
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"gothrottle/throttle"
	"gothrottle/throttle/throttletest"
)

// decide makes decisions of each outcome, for two keys.
func decide(t *testing.T, observe func(throttle.Event)) {
	t.Helper()
	client, server := throttletest.New(t, throttle.Observe(observe), throttle.Logger(quiet), throttle.Timeout(patient))
	rate, ctx := client.Rate("t", throttle.PerHour(2)), t.Context()
	for _, key := range []string{"a", "a", "a", "b", "b", "b"} { // the third is denied
		_, err := rate.Allow(ctx, key)
		require.NoError(t, err)
	}
	_, err := rate.Peek(ctx, "")
	require.NoError(t, errors.Join(err, rate.Reset(ctx, "")))
	_, err = rate.AllowN(ctx, "", 0)
	require.ErrorIs(t, err, throttle.ErrParams)
	server.Fail(errors.New("away"))
	_, err = rate.Allow(ctx, "")
	require.ErrorIs(t, err, throttle.ErrUnavailable)
}

// decided are the counters after decide, and the numbers of decisions in the histograms, which have one label.
var decided = map[string]float64{
	"result=allowed,source=server,verb=Allow": 4, "result=denied,source=server,verb=Allow": 2, "result=unavailable,source=none,verb=Allow": 1,
	"result=allowed,source=server,verb=Peek": 1, "result=error,source=none,verb=Allow": 1,
	"result=allowed,source=server,verb=Reset": 1, "verb=Allow": 8, "verb=Peek": 1, "verb=Reset": 1,
}

func TestPrometheusObserver(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	observe, err := PrometheusObserver(registry)
	require.NoError(t, err)
	decide(t, observe)
	families, err := registry.Gather()
	require.NoError(t, err)
	counted := map[string]float64{}
	for _, family := range families {
		for _, m := range family.Metric {
			var labels []string
			for _, label := range m.Label {
				labels = append(labels, label.GetName()+"="+label.GetValue())
			}
			counted[strings.Join(labels, ",")] = m.Counter.GetValue() + float64(m.Histogram.GetSampleCount())
		}
	}
	require.Equal(t, decided, counted)
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	require.Empty(t, problems)
	_, err = PrometheusObserver(registry)
	require.Error(t, err, "a second observer in one registry")
}

func TestOTelObserver(t *testing.T) {
	reader := metric.NewManualReader()
	observe, err := OTelObserver(metric.NewMeterProvider(metric.WithReader(reader)).Meter("examples"))
	require.NoError(t, err)
	decide(t, observe)
	var collected metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &collected))
	require.Len(t, collected.ScopeMetrics, 1)
	counted := map[string]float64{}
	for _, m := range collected.ScopeMetrics[0].Metrics {
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			require.Equal(t, "throttle.decisions", m.Name)
			for _, p := range data.DataPoints {
				counted[p.Attributes.Encoded(attribute.DefaultEncoder())] = float64(p.Value)
			}
		case metricdata.Histogram[float64]:
			require.Equal(t, "throttle.duration", m.Name)
			for _, p := range data.DataPoints {
				counted[p.Attributes.Encoded(attribute.DefaultEncoder())] = float64(p.Count)
			}
		}
	}
	require.Equal(t, decided, counted)
}
