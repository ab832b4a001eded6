// Package report has the vocabulary of parsers: what one finds in the output of a tool, and the helpers that all of them need.
package report

import (
	"fmt"
	"io"
	"slices"
)

// State says how much of a tool's output was there.
type State string

// The states.
const (
	OK      State = "ok"      // the tool has succeeded, and its output is complete
	Partial State = "partial" // some metrics are there, and the reason says which part is missing
	Failed  State = "failed"  // the tool says that it has failed, whatever its exit code
	Empty   State = "empty"   // nothing in the text is output of the tool
)

// Direction says which of two values of a metric is the better one.
type Direction string

// The directions. The empty one is that of metrics of which none is better.
const (
	Higher Direction = "higher"
	Lower  Direction = "lower"
)

// Base units. Parsers convert to them: 1 KiB/s is 1024 B/s, 1 KB/s and 1 Kbit/s are 1000 B/s and bits/s.
const (
	BitsPerSecond  = "bits/s"
	BytesPerSecond = "B/s"
	Bytes          = "B"
	Seconds        = "s"
	PerSecond      = "op/s"
	Count          = "1"
	Ratio          = "ratio" // of a whole: 1 is all of it
)

// Metric is one value that a tool has printed.
type Metric struct {
	Name      string            `json:"name"`
	Value     float64           `json:"value"` // finite
	Unit      string            `json:"unit"`  // a base unit, or that of the tool for what has none
	Direction Direction         `json:"direction"`
	Labels    map[string]string `json:"labels"` // apart from other values of the name; never nil in a Report that Parse of a Kind returns
	Headline  bool              `json:"headline"`
}

// Report is what a parser has found. Its JSON is a contract of `baictl parser test -o json`: keys may come, none goes.
type Report struct {
	Kind  string `json:"kind"`
	State State  `json:"state"`
	// why the state is not ok: what failed, or what is missing, in the words of the tool; empty if it is
	Reason  string   `json:"reason"`
	Version string   `json:"version,omitempty"` // of the tool, as it prints it; empty if it does not
	Metrics []Metric `json:"metrics"`           // in the order of the output
}

// Options say which values of a file of one's own are metrics. Parsers of tools ignore them.
type Options struct {
	Metrics []Selection
}

// Selection is a metric at a place of a JSON document or in a column of a CSV file.
type Selection struct {
	Name      string
	Path      string // of a JSON document, as a.b[2].c, or the name of a column
	Unit      string
	Direction Direction
}

// Kind is one kind of output, and the parser for it.
type Kind struct {
	Name string // of `kind` in a descriptor
	Tool string // that prints it, for people
	// Document says that the output is one document, such as JSON, in which lines of another stream would be a fault.
	Document bool
	// Messages says of a document that the tool writes to standard error which of its results are missing. Without them the document
	// may look complete.
	Messages bool
	Metrics  []Definition
	// Looks reports whether a text begins like output of the tool. Head is its beginning, 64 KiB at most.
	Looks func(head []byte) bool
	// Parse reads the output to its end. A text that is no output of the tool is a Report with the state Empty. The only error is that of
	// the reader.
	Parse func(r io.Reader, o Options) (Report, error)
}

// Definition describes a metric of a kind, for the documentation.
type Definition struct {
	Name      string // "*" stands for names that the output gives
	Unit      string // "*" stands for units that the output gives
	Direction Direction
	Headline  bool     // one of its values may be a headline
	Labels    []string // names of its labels
	Meaning   string   // a phrase, for people
}

// Check returns an error if a report breaks a rule that holds for all parsers: its metrics are defined, finite and apart from each other,
// an ok report has metrics, and any other has a reason. Tests of parsers call it.
func (k Kind) Check(r Report) error {
	if r.Kind != k.Name {
		return fmt.Errorf("kind %q, want %q", r.Kind, k.Name)
	}
	switch {
	case !slices.Contains([]State{OK, Partial, Failed, Empty}, r.State):
		return fmt.Errorf("state %q is none", r.State)
	case r.State == OK && (len(r.Metrics) == 0 || r.Reason != ""):
		return fmt.Errorf("ok with %d metrics and the reason %q", len(r.Metrics), r.Reason)
	case r.State != OK && r.Reason == "":
		return fmt.Errorf("%s without a reason", r.State)
	case r.State == Partial && len(r.Metrics) == 0:
		return fmt.Errorf("partial without metrics")
	case r.State == Empty && len(r.Metrics) > 0:
		return fmt.Errorf("empty with %d metrics", len(r.Metrics))
	}
	seen := make(map[string]bool)
	for _, m := range r.Metrics {
		if err := k.checkMetric(m); err != nil {
			return err
		}
		id := fmt.Sprintf("%q %q", m.Name, m.Labels)
		if seen[id] {
			return fmt.Errorf("%s %v comes twice", m.Name, m.Labels)
		}
		seen[id] = true
	}
	return nil
}

func (k Kind) checkMetric(m Metric) error {
	if m.Name == "" || m.Labels == nil || !finite(m.Value) {
		return fmt.Errorf("%+v lacks a name, labels or a finite value", m)
	}
	i := slices.IndexFunc(k.Metrics, func(d Definition) bool { return d.Name == m.Name })
	if i < 0 {
		i = slices.IndexFunc(k.Metrics, func(d Definition) bool { return d.Name == "*" })
	}
	if i < 0 {
		return fmt.Errorf("no definition of metric %q", m.Name)
	}
	d := k.Metrics[i]
	if d.Unit != "*" && d.Unit != m.Unit || d.Name != "*" && d.Direction != m.Direction || m.Headline && !d.Headline {
		return fmt.Errorf("%+v, want as defined: %+v", m, d)
	}
	for name := range m.Labels {
		if !slices.Contains(d.Labels, name) && !slices.Contains(d.Labels, "*") {
			return fmt.Errorf("%s has the label %q, which is not defined", m.Name, name)
		}
	}
	return nil
}
