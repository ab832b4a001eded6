// Package sinktest has the contract of a sink as a suite that every sink passes.
package sinktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/metrics-pusher/sink"
)

// Point is the copy of one sample in a place.
type Point struct {
	Run    string
	Metric string
	Second int64 // since 1970
	Value  float64
}

// Destination is the place of a sink, as a test sees it.
type Destination struct {
	Sink sink.Sink
	// Points returns the points in the place, in any order.
	Points func(t *testing.T) []Point
	// SetUnavailable makes the place unavailable, or available again. Nil means that the place is always available.
	SetUnavailable func(t *testing.T, away bool)
	// RejectedMetric is the name of a metric that the place never takes; empty means that the place takes every metric.
	RejectedMetric string

	Deduplicates bool // a sample that is passed twice is in the place once
	Specials     bool // the place takes NaN and infinities
}

// Start is the time of the first sample of the suite: sinks may refuse old samples.
func Start() time.Time { return time.Now().UTC().Truncate(time.Minute).Add(-5 * time.Minute) }

// Metrics returns a batch of samples of a run, a second between each.
func Metrics(run string, from int, names ...string) event.Metrics {
	at := Start()
	m := event.Metrics{
		Header: event.NewHeader(event.Derive(run, fmt.Sprint(from)), run, "pets", "ann", at),
		Stream: event.Stream{Role: "benchmark", Pod: "0b5a3c1e", Container: "benchmark", Kind: event.StreamMetrics},
	}
	for i, name := range names {
		n := from + i
		v := event.Sample{
			Seq: int64(n), Name: name, Time: at.Add(time.Duration(n) * time.Second).UnixNano(), Unit: "s",
			Labels: map[string]string{"gpu": "0"},
		}
		v.Set(float64(n) + 0.5)
		m.Samples = append(m.Samples, v)
	}
	return m
}

// Points returns the points that a place should have of batches.
func Points(batches ...event.Metrics) (all []Point) {
	for _, b := range batches {
		for _, v := range b.Samples {
			all = append(all, Point{b.Run, v.Name, v.Time / 1e9, v.Float()})
		}
	}
	return all
}

// Run checks that the places that open returns, each of them empty, are filled according to the contract.
func Run(t *testing.T, open func(t *testing.T) Destination) {
	t.Helper()
	for name, test := range map[string]func(t *testing.T, p Destination){
		"what is handed over is there":                          testDelivered,
		"what is handed over again, in part, is there as said":  testRedelivered,
		"what is no number is there, or counted as refused":     testSpecials,
		"what is refused is counted, and takes nothing with it": testRefused,
		"a place that is away is an error until it is back":     testUnavailable,
		"nothing is nothing":                                    testNothing,
		"much at once is there":                                 testMuch,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// want checks the points of a place.
func want(t *testing.T, p Destination, want []Point) {
	t.Helper()
	order := func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.Run, b.Run), cmp.Compare(a.Second, b.Second), cmp.Compare(a.Metric, b.Metric),
			cmp.Compare(a.Value, b.Value))
	}
	got := p.Points(t)
	slices.SortFunc(got, order)
	slices.SortFunc(want, order)
	if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("(-want +got):\n%.3000s", diff)
	}
}

func testDelivered(t *testing.T, p Destination) {
	t.Helper()
	batches := []event.Metrics{
		Metrics("r1", 0, "loss", "accuracy", "loss"), Metrics("r2", 0, "loss"),
		Metrics("r1", 10, "a-b", "ü", "loss"),
	}
	if err := p.Sink.Samples(t.Context(), batches); err != nil {
		t.Fatal(err)
	}
	want(t, p, Points(batches...))
}

func testRedelivered(t *testing.T, p Destination) {
	t.Helper()
	first, second := Metrics("r1", 0, "loss", "accuracy"), Metrics("r1", 1, "accuracy", "loss")
	all := append(Points(first), Points(second)[1])
	for range 2 {
		for _, b := range []event.Metrics{first, second} {
			err := p.Sink.Samples(t.Context(), []event.Metrics{b})
			var no *sink.RejectedError
			if err != nil && !errors.As(err, &no) { // a place may refuse samples that it has
				t.Fatal(err)
			}
		}
	}
	if p.Deduplicates {
		want(t, p, all)
		return
	}
	got := p.Points(t)
	for _, point := range all {
		if !slices.Contains(got, point) {
			t.Errorf("%+v is not there", point)
		}
	}
}

func testSpecials(t *testing.T, p Destination) {
	t.Helper()
	b := Metrics("r1", 0, "loss", "loss", "loss", "loss")
	for i, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		b.Samples[i].Set(v)
	}
	err := p.Sink.Samples(t.Context(), []event.Metrics{b})
	if p.Specials {
		if err != nil {
			t.Fatal(err)
		}
		want(t, p, Points(b))
		return
	}
	var no *sink.RejectedError
	if !errors.As(err, &no) || no.Count != 3 {
		t.Errorf("Samples: %v, want 3 refused", err)
	}
	want(t, p, Points(b)[3:])
}

func testRefused(t *testing.T, p Destination) {
	t.Helper()
	if p.RejectedMetric == "" {
		return
	}
	good, mixed := Metrics("r1", 0, "loss", "accuracy"),
		Metrics("r2", 0, "loss", p.RejectedMetric, "accuracy", "loss", p.RejectedMetric, "speed")
	err := p.Sink.Samples(t.Context(), []event.Metrics{good, mixed, Metrics("r3", 0, "loss")})
	var no *sink.RejectedError
	if !errors.As(err, &no) || no.Count != 2 {
		t.Errorf("Samples: %v, want 2 refused", err)
	}
	points := Points(good, mixed, Metrics("r3", 0, "loss"))
	want(t, p, slices.DeleteFunc(points, func(x Point) bool { return x.Metric == p.RejectedMetric }))
}

func testUnavailable(t *testing.T, p Destination) {
	t.Helper()
	if p.SetUnavailable == nil {
		return
	}
	b := Metrics("r1", 0, "loss", "accuracy")
	p.SetUnavailable(t, true)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err := p.Sink.Samples(ctx, []event.Metrics{b})
	var no *sink.RejectedError
	if err == nil || errors.As(err, &no) {
		t.Errorf("Samples: %v, want that it cannot now", err)
	}
	p.SetUnavailable(t, false)
	for end := time.Now().Add(20 * time.Second); err != nil && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		err = p.Sink.Samples(t.Context(), []event.Metrics{b})
	}
	if err != nil {
		t.Fatal(err)
	}
	want(t, p, Points(b))
}

func testNothing(t *testing.T, p Destination) {
	t.Helper()
	end := Metrics("r1", 0)
	end.End = &event.End{Last: -1}
	for _, batches := range [][]event.Metrics{nil, {Metrics("r1", 0)}, {end}} {
		if err := p.Sink.Samples(t.Context(), batches); err != nil {
			t.Error(err)
		}
	}
	want(t, p, nil)
}

func testMuch(t *testing.T, p Destination) {
	t.Helper()
	var batches []event.Metrics
	for run := range 8 {
		b := Metrics(fmt.Sprint("r", run), 0)
		for i := range 2000 {
			v := event.Sample{Seq: int64(i), Name: fmt.Sprint("m", i%20), Time: Start().Add(time.Duration(i/20) * time.Second).UnixNano()}
			v.Set(float64(i))
			b.Samples = append(b.Samples, v)
		}
		batches = append(batches, b)
	}
	if err := p.Sink.Samples(t.Context(), batches); err != nil {
		t.Fatal(err)
	}
	want(t, p, Points(batches...))
}
