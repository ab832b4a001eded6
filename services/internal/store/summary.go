package store

import (
	"encoding/json"
	"fmt"
	"math"
)

// Summaries are the summaries of a run's samples, once all of them are stored. Complete ones are never replaced.
type Summaries struct {
	Run       string    `json:"run"`
	Attempt   int       `json:"attempt"`  // whose samples are summarised: the last
	Complete  bool      `json:"complete"` // of all samples; else of the samples that were stored when the wait ended
	Samples   int64     `json:"samples"`  // that are summarised
	Method    string    `json:"method"`   // of the numbers, for people
	Summaries []Summary `json:"summaries"`
	Notes     []string  `json:"notes,omitempty"` // samples that are not summarised, and why, and limits of the others, for people

	Unknown []UnknownMetric   `json:"unknown,omitempty"` // metrics that the platform computes for each run, and could not
	Prices  map[string]string `json:"prices,omitempty"`  // per hour, by instance type, that the cost of the run was computed with
}

// UnknownMetric is a metric without a value.
type UnknownMetric struct {
	Metric string `json:"metric"`
	Reason string `json:"reason"` // for people
}

// Summary is the summary of the samples of one metric, with one unit and one set of labels. Without any number, its values are NaN.
type Summary struct {
	Metric     string            `json:"metric"`
	Unit       string            `json:"unit,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	N          int64             `json:"n"`                     // samples that are numbers or infinite
	NotNumbers int64             `json:"not_numbers,omitempty"` // samples that are NaN: no other field counts them
	Min        Float             `json:"min"`
	Max        Float             `json:"max"`
	Median     Float             `json:"median"`
	P90        Float             `json:"p90"`
	P95        Float             `json:"p95"`
	P99        Float             `json:"p99"`
	Mean       Float             `json:"mean"`
	SD         Float             `json:"sd"`    // of the sample (n-1); NaN for one value
	First      Float             `json:"first"` // by time
	Last       Float             `json:"last"`
	Interval   *Interval         `json:"interval,omitempty"`  // of the median; nil if the samples are too few for one
	Direction  string            `json:"direction,omitempty"` // which values are better: event.Higher or event.Lower
}

// Interval is a confidence interval.
type Interval struct {
	Low   Float   `json:"low"`
	High  Float   `json:"high"`
	Level float64 `json:"level"` // the probability that the interval covers the value, at least the requested one
}

// Float is a number that JSON may not support: NaN and infinities are texts there.
type Float float64

// MarshalJSON implements json.Marshaler.
func (f Float) MarshalJSON() ([]byte, error) {
	v := float64(f)
	switch {
	case math.IsNaN(v):
		return []byte(`"NaN"`), nil
	case math.IsInf(v, 1):
		return []byte(`"Infinity"`), nil
	case math.IsInf(v, -1):
		return []byte(`"-Infinity"`), nil
	}
	return json.Marshal(v)
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *Float) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case `"NaN"`:
		*f = Float(math.NaN())
	case `"Infinity"`:
		*f = Float(math.Inf(1))
	case `"-Infinity"`:
		*f = Float(math.Inf(-1))
	default:
		var v float64
		if err := json.Unmarshal(b, &v); err != nil {
			return fmt.Errorf("read a number: %w", err)
		}
		*f = Float(v)
	}
	return nil
}
