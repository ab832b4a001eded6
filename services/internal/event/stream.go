package event

import (
	"errors"
	"fmt"
	"math"
	"strconv"
)

// Stream is where samples and lines of a run are read from: one file of one
// container of one pod. With the run and the attempt it is unique for ever.
type Stream struct {
	Role      string `json:"role"`      // benchmark, launcher, worker, server, client
	Index     int    `json:"index"`     // of the pod within its role, from 0
	Pod       string `json:"pod"`       // UID
	Container string `json:"container"` // name
	Kind      string `json:"stream"`    // StreamOutput or another of them
}

// Streams that a source can be.
const (
	StreamOutput  = "output"     // the wrapper's record of standard output and error
	StreamMetrics = "metrics"    // the file that client libraries append to
	StreamFIFO    = "fifo"       // the pipe of the original client library
	StreamSystem  = "system"     // the benchmark's use of the machine, as the entrypoint measures it
	StreamScraped = "prometheus" // numbers that the benchmark serves for Prometheus
	StreamOTLP    = "otlp"       // numbers that programs sent by OpenTelemetry's protocol
	StreamStep    = "step"       // the wrapper's record of the output of a step
	StreamLog     = "log"        // the cluster's log of a container without the entrypoint
)

// LogFollower is the producer name of the follower that reads a pod's log from outside;
// the pod's UID alone is the producer name of its collector. A run's data are complete
// once the data of all its producers are stored.
func LogFollower(pod string) string { return pod + "/" + StreamLog }

// Validate names every field that is missing.
func (s Stream) Validate() error {
	return errors.Join(required("source.role", s.Role), required("source.pod", s.Pod), required("source.container", s.Container),
		required("source.stream", s.Kind))
}

// ID identifies the stream among all streams of all runs.
func (s Stream) ID(run string, attempt int) string {
	return Derive("source", run, strconv.Itoa(attempt), s.Role, strconv.Itoa(s.Index), s.Pod, s.Container, s.Kind)
}

// Specials mark values that JSON cannot carry.
const (
	NaN      = "NaN"
	PlusInf  = "+Inf"
	MinusInf = "-Inf"
)

// Directions of a metric: which of two values is the better one.
const (
	Higher = "higher"
	Lower  = "lower"
)

// Sample is one value of one metric at one time.
type Sample struct {
	Seq     int64             `json:"seq"`               // byte offset, in its stream, of the text that it was read from
	Sub     int               `json:"sub,omitempty"`     // which of several samples read from there, from 0
	Name    string            `json:"name"`              // of the metric
	Value   *float64          `json:"value"`             // null where Special is set
	Special string            `json:"special,omitempty"` // NaN, PlusInf or MinusInf
	Unit    string            `json:"unit,omitempty"`    // as the descriptor or the benchmark says
	Time    int64             `json:"time,string"`       // ns since 1970, UTC
	Step    *int64            `json:"step,omitempty"`    // the benchmark's own count
	Labels  map[string]string `json:"labels,omitempty"`

	// Direction says which values of the metric are better: Higher or Lower, as
	// the descriptor says. It is empty where the descriptor says nothing; a store
	// keeps any other text as empty.
	Direction string `json:"direction,omitempty"`
}

// Set gives the sample its value, of any kind.
func (s *Sample) Set(v float64) {
	s.Value, s.Special = nil, ""
	switch {
	case math.IsNaN(v):
		s.Special = NaN
	case math.IsInf(v, 1):
		s.Special = PlusInf
	case math.IsInf(v, -1):
		s.Special = MinusInf
	default:
		s.Value = &v
	}
}

// Float returns the value that Set was given.
func (s Sample) Float() float64 {
	switch {
	case s.Value != nil:
		return *s.Value
	case s.Special == PlusInf:
		return math.Inf(1)
	case s.Special == MinusInf:
		return math.Inf(-1)
	}
	return math.NaN()
}

// Line is one line that a benchmark wrote to standard output or error.
type Line struct {
	// Byte offset in its source where it was complete; orders lines of both streams as
	// they were read.
	Seq          int64  `json:"seq"`
	Stderr       bool   `json:"err,omitempty"`  // standard error
	Time         int64  `json:"time,string"`    // ns since 1970, UTC, when it was read
	Text         string `json:"text"`           // valid UTF-8, without its line feed
	Raw          int64  `json:"raw,omitempty"`  // bytes that the benchmark wrote, where Text is not all of them
	Truncated    bool   `json:"cut,omitempty"`  // Text ends early: the line was over the limit
	Unterminated bool   `json:"open,omitempty"` // the benchmark ended without a line feed
}

// End says that a source will bring no more, and how much it brought.
type End struct {
	Count   int64  `json:"count"`             // samples or lines, from the beginning of the source
	Last    int64  `json:"last"`              // Seq of the last; -1 where there was none
	Dropped int64  `json:"dropped,omitempty"` // lines or samples that a limit kept out, not in Count
	Reason  string `json:"reason,omitempty"`  // which limit, for the user to read
}

// Metrics carries samples of one stream, in ascending order of (Seq, Sub). A batch may
// repeat samples of another; stream, Seq, Sub and Name identify a sample.
type Metrics struct {
	Header

	Stream  Stream   `json:"source"`
	Samples []Sample `json:"samples"`
	End     *End     `json:"end,omitempty"` // in the last batch of the source
}

// Topic implements Event.
func (Metrics) Topic() string { return TopicMetrics }

// Validate implements Event.
func (m Metrics) Validate() error {
	errs := []error{m.Header.Validate(), m.Stream.Validate()}
	for i := range m.Samples {
		s := &m.Samples[i]
		if s.Name == "" {
			errs = append(errs, fmt.Errorf("samples[%d].name: must not be empty", i))
		}
		if s.Value == nil && s.Special == "" {
			errs = append(errs, fmt.Errorf("samples[%d].value: null without a special", i))
		}
	}
	return errors.Join(errs...)
}

// Logs carries lines of one stream, in ascending order of Seq. A batch may repeat lines
// of another; stream and Seq identify a line.
type Logs struct {
	Header

	Stream Stream `json:"source"`

	// Environment is where the pod runs, in a batch that may have no lines. It
	// may come again with more in it.
	Environment *Environment `json:"environment,omitempty"`

	Lines []Line `json:"lines"`
	End   *End   `json:"end,omitempty"` // in the last batch of the source
}

// Topic implements Event.
func (Logs) Topic() string { return TopicLogs }

// Validate implements Event.
func (l Logs) Validate() error {
	return errors.Join(l.Header.Validate(), l.Stream.Validate())
}
