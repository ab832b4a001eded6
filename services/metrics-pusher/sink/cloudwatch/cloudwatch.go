// Package cloudwatch copies samples to Amazon CloudWatch, as custom metrics: for each series and second, how often each value came.
//
// CloudWatch has no IDs: samples that are passed twice, after a process was killed or consumers were rebalanced, count twice there, as do
// those of a request whose answer was lost. Its statistics of extremes stay right, those of sums and counts do not. Samples that are passed
// again since another request failed count once.
package cloudwatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/smithy-go"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/metrics-pusher/sink"
)

// Settings say where and as what samples are put. Who puts them is found as all
// of Amazon's programs do: by the environment, files in the home directory, or
// the role of the machine or pod; secrets are no settings.
type Settings struct {
	Region    string `toml:"region"`    // eu-central-1
	Endpoint  string `toml:"endpoint"`  // URL in place of the region's own
	Namespace string `toml:"namespace"` // of the metrics; empty means BenchmarkAI
	// by which series are told apart, at most 30: namespace, owner, run, set, attempt, role, index, container, stream, labels.KEY; empty
	// means namespace, run, role, index
	Dimensions []string      `toml:"dimensions"`
	Minutes    bool          `toml:"minutes"` // statistics of minutes, in place of seconds: cheaper to look at
	Timeout    time.Duration `toml:"timeout"` // of one request; zero means 30 s
}

// dimensionNames are the dimensions that are no labels.
func dimensionNames() []string {
	return []string{"namespace", "owner", "run", "set", "attempt", "role", "index", "container", "stream"}
}

// Validate names every setting at fault.
func (s Settings) Validate() error {
	var errs []error
	if s.Region == "" {
		errs = append(errs, errors.New("sinks.cloudwatch.region: is needed"))
	}
	if u, err := url.Parse(s.Endpoint); s.Endpoint != "" &&
		(err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil) {
		errs = append(errs, errors.New("sinks.cloudwatch.endpoint: want a URL, without a password"))
	}
	if strings.HasPrefix(s.Namespace, "AWS/") || len(s.Namespace) > maxText {
		errs = append(errs, fmt.Errorf("sinks.cloudwatch.namespace: %.300q: want up to %d characters that do not begin with AWS/",
			s.Namespace, maxText))
	}
	if len(s.Dimensions) > 30 {
		errs = append(errs, fmt.Errorf("sinks.cloudwatch.dimensions: %d, want 30 at most", len(s.Dimensions)))
	}
	for i, d := range s.Dimensions {
		if !slices.Contains(dimensionNames(), d) && (!strings.HasPrefix(d, labels) || len(d) == len(labels)) ||
			slices.Contains(s.Dimensions[:i], d) {
			errs = append(errs, fmt.Errorf("sinks.cloudwatch.dimensions: %q: want each of %s, labels.KEY once", d,
				strings.Join(dimensionNames(), ", ")))
		}
	}
	if s.Timeout < 0 {
		errs = append(errs, errors.New("sinks.cloudwatch.timeout: must not be negative"))
	}
	return errors.Join(errs...)
}

// Sink implements sink.Sink.
type Sink struct {
	settings Settings
	client   *cloudwatch.Client
	now      func() time.Time

	mu  sync.Mutex
	has map[sampleID]bool // samples that CloudWatch has, of calls that failed and are to be repeated
}

// maxHas is how many samples of failed calls are remembered, about 128 MiB.
const maxHas = 1 << 20

// New returns a Sink. It does not wait for CloudWatch.
func New(ctx context.Context, s Settings, now func() time.Time) (*Sink, error) {
	s.Namespace, s.Timeout = cmp.Or(s.Namespace, "BenchmarkAI"), cmp.Or(s.Timeout, 30*time.Second)
	if len(s.Dimensions) == 0 {
		s.Dimensions = []string{"namespace", "run", "role", "index"}
	}
	c, err := config.LoadDefaultConfig(ctx, config.WithRegion(s.Region), config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }))
	if err != nil {
		return nil, fmt.Errorf("prepare to speak to CloudWatch: %w", err)
	}
	return &Sink{settings: s, now: now, has: make(map[sampleID]bool), client: cloudwatch.NewFromConfig(c, func(o *cloudwatch.Options) {
		if s.Endpoint != "" {
			o.BaseEndpoint = aws.String(s.Endpoint)
		}
	})}, nil
}

// Samples implements sink.Sink.
func (s *Sink) Samples(ctx context.Context, batches []event.Metrics) error {
	step, resolution := int64(1), int32(1)
	if s.settings.Minutes {
		step, resolution = 60, 60
	}
	s.mu.Lock()
	all, refused := gather(batches, s.has, s.settings.Dimensions, step, s.now())
	s.mu.Unlock()
	why := errors.New("it is no number, too large, older than two weeks or of the future")
	rest, samples := data(all, resolution)
	var taken []sampleID
	for _, n := range pieces(rest) {
		some, err := s.put(ctx, rest[:n], samples[:n], &taken)
		var no *permanentError
		switch {
		case errors.As(err, &no):
			refused, why = refused+some, no
		case err != nil:
			s.remember(taken)
			return err
		}
		rest, samples = rest[n:], samples[n:]
	}
	s.forget(batches)
	return sink.Rejected(refused, why)
}

// remember adds samples that CloudWatch has, and that are passed again since others of their call failed.
func (s *Sink) remember(taken []sampleID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.has)+len(taken) > maxHas { // of calls that another process repeats
		clear(s.has)
	}
	for _, id := range taken {
		s.has[id] = true
	}
}

// forget drops the samples of batches, which are not passed again.
func (s *Sink) forget(batches []event.Metrics) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.has) == 0 {
		return
	}
	for i := range batches {
		for _, id := range sampleIDs(&batches[i]) {
			delete(s.has, id)
		}
	}
}

// permanentError means that CloudWatch will never take data.
type permanentError struct{ cause error }

// Error implements error.
func (e *permanentError) Error() string { return e.cause.Error() }

// put sends data, adds their samples to taken, and returns how many samples are refused, and why. CloudWatch refuses a whole request for
// one datum: put halves a refused request to find the valid data.
func (s *Sink) put(ctx context.Context, some []types.MetricDatum, samples [][]sampleID, taken *[]sampleID) (refused int, err error) {
	err = s.putOnce(ctx, some)
	var no *permanentError
	if !errors.As(err, &no) {
		if err == nil {
			*taken = append(*taken, slices.Concat(samples...)...)
		}
		return 0, err
	}
	if len(some) == 1 {
		return len(samples[0]), no
	}
	half := len(some) / 2
	for _, part := range [][2]int{{0, half}, {half, len(some)}} {
		n, err := s.put(ctx, some[part[0]:part[1]], samples[part[0]:part[1]], taken)
		if err != nil && !errors.As(err, &no) {
			return 0, err
		}
		refused += n
	}
	if refused == 0 {
		return 0, nil
	}
	return refused, no
}

// putOnce puts data once.
func (s *Sink) putOnce(ctx context.Context, some []types.MetricDatum) error {
	ctx, cancel := context.WithTimeout(ctx, s.settings.Timeout)
	defer cancel()
	_, err := s.client.PutMetricData(ctx, &cloudwatch.PutMetricDataInput{Namespace: aws.String(s.settings.Namespace), MetricData: some})
	var apiErr smithy.APIError
	if !errors.As(err, &apiErr) {
		return err
	}
	switch apiErr.ErrorCode() {
	case "InvalidParameterValue", "InvalidParameterCombination", "MissingParameter", "MissingRequiredParameter",
		"InvalidParameterValueException", "InvalidParameterCombinationException", "MissingRequiredParameterException",
		"ValidationError", "SerializationException":
		return &permanentError{err}
	}
	return err
}
