package examples

import (
	"errors"
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"gothrottle/throttle"
	"gothrottle/throttle/throttletest"
)

// decide makes decisions of each outcome, for two keys.
func decide(t *testing.T, observe func(throttle.Event)) {
	t.Helper()
	client, server := throttletest.New(t, throttle.Options{Observe: observe, Logger: quiet}, throttle.Timeout(patient), throttle.Coalesce(false))
	for _, key := range []string{"a", "b"} {
		for range 3 { // the third is denied
			_, err := client.Rate("t", throttle.PerHour(2)).Allow(t.Context(), key)
			require.NoError(t, err)
		}
	}
	_, err := client.Rate("t", throttle.PerHour(2)).Peek(t.Context(), "")
	require.NoError(t, err)
	_, err = client.Rate("t", throttle.PerHour(2)).AllowN(t.Context(), "", 0)
	require.ErrorIs(t, err, throttle.ErrParams)
	server.Fail(errors.New("away"))
	_, err = client.Rate("t", throttle.PerHour(2)).Allow(t.Context(), "")
	require.ErrorIs(t, err, throttle.ErrUnavailable)
}

// decided are the counters after decide: verb, result, source.
var decided = map[string]float64{
	"Allow allowed server": 4, "Allow denied server": 2, "Allow unavailable none": 1,
	"Peek allowed server": 1, "Allow error none": 1,
}

// timed are the numbers of decisions in the histograms after decide.
var timed = map[string]uint64{"Allow": 8, "Peek": 1}

func TestPrometheusObserver(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	observe, err := PrometheusObserver(registry)
	require.NoError(t, err)
	decide(t, observe)
	families, err := registry.Gather()
	require.NoError(t, err)
	require.Len(t, families, 2)
	counted, histogram := map[string]float64{}, map[string]uint64{}
	for _, m := range families[1].Metric { // in the order of names
		labels := map[string]string{}
		for _, label := range m.Label {
			labels[label.GetName()] = label.GetValue()
		}
		counted[fmt.Sprint(labels["verb"], " ", labels["result"], " ", labels["source"])] = m.Counter.GetValue()
		require.Len(t, labels, 3)
	}
	for _, m := range families[0].Metric {
		require.Len(t, m.Label, 1)
		histogram[m.Label[0].GetValue()] = m.Histogram.GetSampleCount()
	}
	require.Equal(t, decided, counted)
	require.Equal(t, timed, histogram)
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	require.Empty(t, problems)
	_, err = PrometheusObserver(registry)
	require.Error(t, err, "a second observer in one registry")
}

func TestOTelObserver(t *testing.T) {
	reader := metric.NewManualReader()
	provider := metric.NewMeterProvider(metric.WithReader(reader))
	observe, err := OTelObserver(provider.Meter("examples"))
	require.NoError(t, err)
	decide(t, observe)
	var collected metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &collected))
	require.Len(t, collected.ScopeMetrics, 1)
	counted, histogram := map[string]float64{}, map[string]uint64{}
	for _, m := range collected.ScopeMetrics[0].Metrics {
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			require.Equal(t, "throttle.decisions", m.Name)
			for _, p := range data.DataPoints {
				verb, _ := p.Attributes.Value("verb")
				result, _ := p.Attributes.Value("result")
				source, _ := p.Attributes.Value("source")
				counted[fmt.Sprint(verb.AsString(), " ", result.AsString(), " ", source.AsString())] = float64(p.Value)
				require.Equal(t, 3, p.Attributes.Len())
			}
		case metricdata.Histogram[float64]:
			require.Equal(t, "throttle.duration", m.Name)
			for _, p := range data.DataPoints {
				verb, _ := p.Attributes.Value("verb")
				histogram[verb.AsString()] = p.Count
				require.Equal(t, 1, p.Attributes.Len())
			}
		}
	}
	require.Equal(t, decided, counted)
	require.Equal(t, timed, histogram)
}
