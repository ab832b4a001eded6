package prometheus_test

import (
	"errors"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/post"
	"github.com/benchmark-ai/bai/services/metrics-pusher/sink"
	"github.com/benchmark-ai/bai/services/metrics-pusher/sink/prometheus"
	"github.com/benchmark-ai/bai/services/metrics-pusher/sink/sinktest"
	receiving "github.com/benchmark-ai/bai/services/test/testbed/prometheus"
)

// TestOnARealPrometheus runs the suite against Prometheus' own handler and storage.
func TestOnARealPrometheus(t *testing.T) {
	sinktest.Run(t, realReceiver)
	t.Run("samples that come late are refused, and none with them", func(t *testing.T) {
		p := realReceiver(t)
		if err := p.Sink.Samples(t.Context(), []event.Metrics{sinktest.Metrics("r1", 10, "loss")}); err != nil {
			t.Fatal(err)
		}
		late := sinktest.Metrics("r1", 5, "loss", "speed", "loss", "speed", "loss", "loss", "loss")
		err := p.Sink.Samples(t.Context(), []event.Metrics{late, sinktest.Metrics("r2", 0, "loss")})
		var no *sink.RejectedError
		if !errors.As(err, &no) || no.Count != 3 { // seconds 5, 7 and 9 of loss; the server has 10 already
			t.Errorf("Samples: %v, want 3 refused", err)
		}
		if n := len(p.Points(t)); n != 1+2+1+1 {
			t.Errorf("%d samples are there: %v", n, p.Points(t))
		}
	})
}

// realReceiver is a receiver of its own.
func realReceiver(t *testing.T) sinktest.Destination {
	t.Helper()
	server := receiving.Start(t)
	to, err := prometheus.New(prometheus.Settings{Settings: post.Settings{URL: server.URL + "/api/v1/write"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = to.Close() })
	return sinktest.Destination{Sink: to, Deduplicates: true, Specials: true, Points: func(t *testing.T) (all []sinktest.Point) {
		t.Helper()
		for _, v := range server.DataPoints(t) {
			all = append(all, point(v.Labels, remoteSample{v.MS, v.Value}))
		}
		return all
	}}
}
