package collect_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// TestNumbersOfOpenTelemetrysOwnLibraryArrive has a program measure with that library, which gets the endpoint from the environment of a
// benchmark alone.
func TestNumbersOfOpenTelemetrysOwnLibraryArrive(t *testing.T) {
	v := newVolume(t)
	s := settings(v)
	s.OTLP = true
	store := newStore(t)
	done := start(t, s, store)
	t.Setenv(pod.EnvOTLPEndpoint, endpoint(t, v, store))
	t.Setenv(pod.EnvOTLPProtocol, "http/protobuf")

	measure(t)
	v.exit(t, pod.Exit{})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	got := map[string][]float64{}
	store.each(func(_ string, s event.Sample) {
		name := s.Name + s.Labels["le"]
		got[name] = append(got[name], s.Float())
		if begin := time.Now().Add(-time.Minute).UnixNano(); s.Time < begin {
			t.Errorf("%s is of %s", s.Name, time.Unix(0, s.Time))
		}
		if s.Name == "loss" && (s.Labels["rank"] != "0" || s.Unit != "1") {
			t.Errorf("loss has labels %v and unit %q", s.Labels, s.Unit)
		}
	})
	for name, values := range got { // the last is sent once more with the end
		got[name] = slices.Compact(values)
	}
	if diff := cmp.Diff(map[string][]float64{
		"loss": {1, 0.5, 1.0 / 3}, "steps": {10, 20, 30},
		"step.count": {1, 2, 3}, "step.sum": {5, 20, 45}, "step.min": {5}, "step.max": {5, 15, 25},
		"step.bucket10": {1}, "step.bucket20": {1, 2}, "step.bucket+Inf": {1, 2, 3},
	}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if end := store.end(event.StreamOTLP, event.TopicMetrics); end.Dropped != 0 {
		t.Errorf("it ends with %+v", end)
	}
}

// measure measures three times by OpenTelemetry's library.
func measure(t *testing.T) {
	t.Helper()
	out, err := otlpmetrichttp.New(t.Context(), otlpmetrichttp.WithCompression(otlpmetrichttp.GzipCompression))
	if err != nil {
		t.Fatal(err)
	}
	provider := sdk.NewMeterProvider(sdk.WithReader(sdk.NewPeriodicReader(out, sdk.WithInterval(time.Hour))))
	meter := provider.Meter("a benchmark's")
	loss, err := meter.Float64Gauge("loss", metric.WithUnit("1"))
	if err != nil {
		t.Fatal(err)
	}
	steps, err := meter.Int64Counter("steps")
	if err != nil {
		t.Fatal(err)
	}
	times, err := meter.Float64Histogram("step", metric.WithUnit("ms"), metric.WithExplicitBucketBoundaries(10, 20))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		loss.Record(t.Context(), 1/float64(i+1), metric.WithAttributes(attribute.Int("rank", 0)))
		steps.Add(t.Context(), 10)
		times.Record(t.Context(), float64(5+10*i))
		if err := provider.ForceFlush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
}
