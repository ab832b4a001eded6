package k6

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/parsers/internal/document"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

// valuePath is the path of a value in a document: the metric, and the key of the value.
type valuePath struct {
	metric    []byte
	key       string
	threshold bool
}

// word returns a key. The usual ones need no memory.
func word(key []byte) string {
	for _, usual := range [...]string{
		"avg", "min", "med", "max", "p(90)", "p(95)", "value", "count", "rate", "passes", "fails", "type", "contains", "ok",
	} {
		if string(key) == usual {
			return usual
		}
	}
	return string(key)
}

// fromJSON returns the last summary in a text that is complete. Cut tells that one follows which is not.
func fromJSON(text []byte) (last summary, cut bool) {
	at := document.All(text, func(doc []byte) {
		if s := read(doc); len(s.values) > 0 {
			last = s
		}
	})
	return last, at >= 0
}

// read returns what a document says that is --summary-export or what handleSummary gets, or else that is the newer JSON.
func read(doc []byte) summary {
	const usual = 200 // bytes of a document for each metric, or more
	var m machine
	size := min(len(doc)/usual, 1000)
	s := summary{values: make([]value, 0, size)}
	values := make(map[string]int, size)
	document.Walk(doc, func(way []document.Step, leaf []byte) {
		if at, ok := valuePathOf(way); ok {
			s.note(at, leaf, values)
		}
	})
	if len(s.values) == 0 && json.Unmarshal(doc, &m) == nil && m.Metadata.Version != "" {
		return m.summary()
	}
	if !slices.ContainsFunc(s.values, func(v value) bool { return isBuiltin(v.name) }) {
		return summary{} // every test of k6 has some of its metrics
	}
	for i, v := range s.values {
		if v.kind == "" {
			s.values[i] = guess(v)
		}
	}
	return s
}

// valuePathOf tells whether a value is of a metric: metrics.NAME.KEY, metrics.NAME.values.KEY, metrics.NAME.thresholds.SOURCE, and the same
// with ok.
func valuePathOf(way []document.Step) (at valuePath, ok bool) {
	if len(way) < 3 || len(way) > 5 || string(way[0].Key) != "metrics" {
		return valuePath{}, false
	}
	for _, step := range way {
		if step.Index >= 0 {
			return valuePath{}, false
		}
	}
	at = valuePath{metric: way[1].Key, key: word(way[len(way)-1].Key)}
	switch {
	case len(way) == 3:
		return at, at.key != "values" && at.key != "thresholds"
	case string(way[2].Key) == "values":
		return at, len(way) == 4
	case string(way[2].Key) == "thresholds":
		at.threshold = true
		return at, len(way) == 4 || at.key == "ok"
	}
	return valuePath{}, false
}

// note notes a value of a metric. Values is where in s.values each metric is.
func (s *summary) note(at valuePath, leaf []byte, values map[string]int) {
	if at.threshold {
		s.threshold(string(leaf), at.key == "ok")
		return
	}
	i, ok := values[string(at.metric)]
	if !ok {
		i = len(s.values)
		values[string(at.metric)] = i
		v := value{numbers: make([]number, 0, 6)}
		v.name, v.tags = split(string(at.metric))
		s.values = append(s.values, v)
	}
	v := &s.values[i]
	switch at.key {
	case "type":
		v.kind, _ = document.Text(leaf)
	case "contains":
		v.contains, _ = document.Text(leaf)
	default:
		if n, ok := report.Number(string(leaf)); ok {
			v.set(strings.ToValidUTF8(at.key, "\uFFFD"), n)
		}
	}
}

// threshold counts a threshold. Its word says that it was kept, or that it was crossed.
func (s *summary) threshold(word string, kept bool) {
	if word != "true" && word != "false" {
		return
	}
	s.thresholds++
	if kept != (word == "true") {
		s.crossed++
	}
}

// split returns the name of a metric, and the tags that it is narrowed down to: http_reqs{status:200}.
func split(metric string) (metricName, tags string) {
	metric = strings.ToValidUTF8(metric, "\uFFFD")
	metricName, tags, _ = strings.Cut(metric, "{")
	if metricName == "" {
		return "metric", tags
	}
	return metricName, strings.TrimSuffix(tags, "}")
}

// guess returns a metric with the kind that --summary-export does not say. The part of a rate is called value there.
func guess(v value) value {
	has := func(key string) bool { _, ok := v.number(key); return ok }
	switch {
	case has("passes") && has("fails"):
		v.kind = rate
		part, _ := v.number("value")
		v.set("rate", part)
	case has("avg") || has("med") || has("p(95)") || has("p(90)"):
		v.kind = trend
	case has("count"):
		v.kind = counter
	case has("value"):
		v.kind = gauge
	default:
		v.kind = trend
	}
	return v
}

// machine is the JSON of --new-machine-readable-summary, version 1.
type machine struct {
	Metadata struct {
		Version string `json:"k6Version"`
	} `json:"metadata"`
	Config struct {
		Duration float64 `json:"duration"` // seconds
	} `json:"config"`
	Results struct {
		Checks struct {
			Metrics []machineMetric `json:"metrics"`
		} `json:"checks"`
		Metrics []machineMetric `json:"metrics"`
	} `json:"results"`
}

type machineMetric struct {
	Name     string             `json:"name"`
	Type     string             `json:"type"`
	Contains string             `json:"contains"`
	Values   map[string]float64 `json:"values"`
}

// summary returns what the newer JSON says. It has no thresholds, and the rate of no counter: that is its count in the time of the test.
func (m machine) summary() summary {
	s := summary{version: report.Clip(m.Metadata.Version)}
	for _, one := range append(m.Results.Metrics, m.Results.Checks.Metrics...) {
		v := value{kind: one.Type, contains: one.Contains}
		v.name, v.tags = split(one.Name)
		for _, key := range slices.Sorted(maps.Keys(one.Values)) {
			v.set(key, one.Values[key])
		}
		switch {
		case one.Type == counter && m.Config.Duration >= 1e-3:
			v.set("rate", one.Values["count"]/m.Config.Duration)
		case one.Type == rate:
			v.set("passes", one.Values["matches"])
			v.set("fails", one.Values["total"]-one.Values["matches"])
			if one.Name == "checks_succeeded" {
				v.name = "checks"
			}
		}
		s.values = append(s.values, v)
	}
	return s
}
