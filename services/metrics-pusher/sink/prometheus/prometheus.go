// Package prometheus copies samples to a receiver of Prometheus' remote write, in the protocol's first version, such as Prometheus itself,
// Mimir or VictoriaMetrics.
//
// The metric, the run, the attempt, the source in the run and the sample's own labels identify a series. A sample that is passed twice is
// stored once: a receiver identifies a sample by its series and its time. That time has milliseconds: of several samples of one series
// within one millisecond only the last is sent, and the others count as refused.
package prometheus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/klauspost/compress/snappy"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/post"
	"github.com/benchmark-ai/bai/services/metrics-pusher/sink"
)

const (
	maxSamples = 5000 // samples of a request
	extraTries = 100  // requests, beside two for each series, to find the refused ones among so many samples
)

// Settings say where to write.
type Settings struct {
	post.Settings

	Labels map[string]string `toml:"labels"` // that every series gets
}

// Validate names every setting at fault.
func (s Settings) Validate() error {
	errs := []error{s.Settings.Validate("sinks.prometheus")}
	for _, name := range slices.Sorted(maps.Keys(s.Labels)) {
		if sink.SanitizeName(name, sink.Word) != name || strings.HasPrefix(name, "__") {
			errs = append(errs, fmt.Errorf("sinks.prometheus.labels: %q: want letters, digits and _, and no digit and no __ first", name))
		}
	}
	return errors.Join(errs...)
}

// Sink implements sink.Sink.
type Sink struct {
	client *post.Client
	labels map[string]string
}

// New returns a Sink. It does not wait for the place.
func New(s Settings) (*Sink, error) {
	c, err := post.New(s.Settings)
	if err != nil {
		return nil, err
	}
	return &Sink{client: c, labels: s.Labels}, nil
}

// Close closes the idle connections.
func (s *Sink) Close() error { return s.client.Close() }

// Samples implements sink.Sink.
func (s *Sink) Samples(ctx context.Context, batches []event.Metrics) error {
	refused, why := 0, error(nil)
	for _, some := range sink.Batch(batches, maxSamples) {
		all, merged := toTimeSeries(some, s.labels)
		if merged > 0 {
			refused, why = refused+merged, errors.New("another sample of the series has the same millisecond")
		}
		tries := extraTries + 2*len(all)
		n, err := s.write(ctx, all, &tries)
		var no *post.PermanentError
		switch {
		case errors.As(err, &no):
			refused, why = refused+n, no
		case err != nil:
			return err
		}
	}
	return sink.Rejected(refused, why)
}

// write sends series, and returns how many of their samples are refused, and why. A place refuses a whole request for one sample: write
// halves a refused request to find the valid samples, as long as there are tries.
func (s *Sink) write(ctx context.Context, all []*timeSeries, tries *int) (refused int, err error) {
	*tries--
	err = s.client.Post(ctx, snappy.Encode(nil, request(all)), map[string]string{
		"Content-Type": "application/x-protobuf", "Content-Encoding": "snappy", "X-Prometheus-Remote-Write-Version": "0.1.0",
	})
	var no *post.PermanentError
	if !errors.As(err, &no) {
		return 0, err
	}
	if n := count(all); n <= 1 || *tries <= 0 {
		return n, no
	}
	why := err
	first, second := split(all)
	for _, half := range [][]*timeSeries{first, second} { // in the order of time
		some, err := s.write(ctx, half, tries)
		if err != nil && !errors.As(err, &no) {
			return 0, err
		}
		if refused += some; some > 0 {
			why = err
		}
	}
	if refused == 0 {
		return 0, nil
	}
	return refused, why
}
