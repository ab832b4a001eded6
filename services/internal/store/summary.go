package store

import (
	"encoding/json"
	"fmt"
	"math"
)

// Summaries are what the samples of a run come to, once all of them are there.
type Summaries struct {
	Run       string    `json:"run"`
	Attempt   int       `json:"attempt"`  // whose samples are summarised: the last
	Complete  bool      `json:"complete"` // of all samples; else of those that there were when they were no longer waited for
	Samples   int64     `json:"samples"`  // that are summarised
	Method    string    `json:"method"`   // of the numbers, for people
	Summaries []Summary `json:"summaries"`
	Notes     []string  `json:"notes,omitempty"` // what is not summarised and why, for people
}

// Summary is what the samples of one metric, with one unit and one set of
// labels, come to. Where it has no numbers at all its values are NaN.
type Summary struct {
	Metric     string            `json:"metric"`
	Unit       string            `json:"unit,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	N          int64             `json:"n"`                     // samples that are numbers or infinite
	NotNumbers int64             `json:"not_numbers,omitempty"` // samples that are NaN: they are in nothing else
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
	Interval   *Interval         `json:"interval,omitempty"`  // of the median; nil where the samples are too few for one
	Direction  string            `json:"direction,omitempty"` // which values are better: event.Higher or event.Lower
}

// Interval is a confidence interval.
type Interval struct {
	Low   Float   `json:"low"`
	High  Float   `json:"high"`
	Level float64 `json:"level"` // the probability that it covers what it is of, at least that asked for
}

// Float is a number that JSON may not know: NaN and infinities are texts there.
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
