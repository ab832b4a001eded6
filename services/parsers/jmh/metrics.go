package jmh

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/services/parsers/internal/document"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

// collector makes metrics of results.
type collector struct {
	metrics []report.Metric
	taken   map[string]int // where the metric of a name and labels is
	id      string         // of the labels of the result
	missing []string
}

func (c *collector) lack(what string) {
	if !slices.Contains(c.missing, what) {
		c.missing = append(c.missing, what)
	}
}

// add adds a metric. Of two with the same labels, the last counts.
func (c *collector) add(m report.Metric) {
	id := m.Name + "\x00" + m.Labels[labelPercentile] + "\x00" + c.id
	if i, ok := c.taken[id]; ok {
		c.metrics[i] = m
		return
	}
	c.taken[id] = len(c.metrics)
	c.metrics = append(c.metrics, m)
}

// headlines marks the metrics of the modes that have one value.
func (c *collector) headlines() {
	count := make(map[string]int)
	for _, m := range c.metrics {
		count[m.Name]++
	}
	for i, m := range c.metrics {
		switch m.Name {
		case "throughput", "average_time", "sample_time", "single_shot_time":
			c.metrics[i].Headline = count[m.Name] == 1
		}
	}
}

// modeOf returns the metric of a mode, and its unit and direction.
func modeOf(short string) (metric, unit string, better report.Direction) {
	switch short {
	case "thrpt":
		return "throughput", report.PerSecond, report.Higher
	case "avgt":
		return "average_time", report.Seconds, report.Lower
	case "sample":
		return "sample_time", report.Seconds, report.Lower
	case "ss":
		return "single_shot_time", report.Seconds, report.Lower
	}
	return "", "", ""
}

func (c *collector) result(r result) {
	if r.PrimaryMetric == nil || r.Benchmark == "" {
		return
	}
	metric, unit, better := modeOf(r.Mode)
	scale, got := convert(r.PrimaryMetric.Unit)
	if metric == "" || got != unit {
		c.lack(report.Clip(fmt.Sprintf("%s has the mode %q and the unit %q", r.Benchmark, r.Mode, r.PrimaryMetric.Unit)))
		return
	}
	labels := r.labels()
	c.id = fmt.Sprint(labels)
	value, ok := number(r.PrimaryMetric.Score, scale)
	if !ok {
		c.lack(report.Clip(r.Benchmark + " has no score"))
		return
	}
	c.add(report.Metric{Name: metric, Value: value, Unit: unit, Direction: better, Labels: labels})
	if e, ok := number(r.PrimaryMetric.Error, scale); ok {
		c.add(report.Metric{Name: metric + "_error", Value: e, Unit: unit, Labels: labels})
	}
	if r.Mode == "sample" {
		c.percentiles(r.PrimaryMetric.Percentiles, scale, labels)
	}
	c.secondaries(r.SecondaryMetrics, labels)
}

// labels returns the labels that all metrics of a result have.
func (r result) labels() map[string]string {
	labels := map[string]string{labelBenchmark: r.Benchmark}
	if r.Threads > 1 {
		labels[labelThreads] = strconv.Itoa(r.Threads)
	}
	for key, value := range r.Params {
		if key == labelBenchmark || key == labelThreads || key == labelPercentile {
			key = "param_" + key
		}
		labels[key] = value
	}
	return labels
}

func (c *collector) percentiles(all map[string]json.RawMessage, by scale, labels map[string]string) {
	keys := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		x, _ := report.Number(a)
		y, _ := report.Number(b)
		return cmp.Or(cmp.Compare(x, y), strings.Compare(a, b))
	})
	for _, p := range keys {
		value, ok := number(all[p], by)
		if _, isPercentile := report.Number(p); !ok || !isPercentile {
			continue
		}
		own := maps.Clone(labels)
		own[labelPercentile] = p
		c.add(report.Metric{Name: "sample_time_percentile", Value: value, Unit: report.Seconds, Direction: report.Lower, Labels: own})
	}
}

// secondaries adds secondary results in the order of the file. Percentiles of sampled times are there once more: they are left out.
func (c *collector) secondaries(all json.RawMessage, labels map[string]string) {
	var key string
	var value float64
	var valid bool
	document.Walk(all, func(way []document.Step, leaf []byte) {
		if len(way) != 2 || way[0].Index >= 0 {
			return
		}
		switch string(way[1].Key) {
		case "score":
			key = string(way[0].Key)
			value, valid = number(leaf, scale{1, 1})
		case "scoreUnit":
			if unit, _ := document.Text(leaf); valid && key == string(way[0].Key) && !isPercentile(key) {
				c.secondary(key, value, unit, labels)
			}
		}
	})
}

// isPercentile reports whether a secondary result is a percentile: p0.50.
func isPercentile(key string) bool {
	rest, found := strings.CutPrefix(strings.TrimPrefix(key, "·"), "p")
	_, ok := report.Number(rest)
	return found && ok
}

func (c *collector) secondary(key string, value float64, unit string, labels map[string]string) {
	m := report.Metric{Name: snake(key), Labels: labels}
	by, base := convert(unit)
	m.Value, m.Unit = value*by.times/by.over, base
	defined := map[string]string{
		"gc_alloc_rate": report.BytesPerSecond, "gc_alloc_rate_norm": "B/op", "gc_count": report.Count, "gc_time": report.Seconds,
	}
	if want, ok := defined[m.Name]; ok && want != m.Unit || ownName(m.Name) || m.Value-m.Value != 0 {
		c.lack(report.Clip(fmt.Sprintf("%s in %q was left out", key, unit)))
		return
	}
	if m.Name == "gc_alloc_rate_norm" {
		m.Direction = report.Lower
	}
	c.add(m)
}

// ownName reports whether a metric of the primary result has the name, so that no secondary one may.
func ownName(metric string) bool {
	for _, mode := range []string{"throughput", "average_time", "sample_time", "single_shot_time"} {
		if metric == mode || metric == mode+"_error" || metric == mode+"_percentile" {
			return true
		}
	}
	return metric == ""
}

// snake returns the name of a metric: gc.alloc.rate becomes gc_alloc_rate. Before 1.37, names of profilers began with a dot in the middle
// of the line.
func snake(key string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, key), "_")
}

// scale is a factor. It has two parts because 1e-9 is no exact number and 1e9 is.
type scale struct{ times, over float64 }

// number reads a number of the file. NaN, -INF and +INF are strings there, and no numbers.
func number(raw json.RawMessage, by scale) (float64, bool) {
	v, ok := report.Number(string(raw))
	v = v * by.times / by.over
	return v, ok && v-v == 0
}

// convert returns the base unit of a unit of JMH, and the factor to it. What is no physical unit stays as it is.
func convert(unit string) (by scale, base string) {
	if tail, ok := strings.CutPrefix(unit, "ops/"); ok {
		if s, ok := seconds(tail); ok {
			return scale{s.over, s.times}, report.PerSecond
		}
	}
	if s, ok := seconds(strings.TrimSuffix(unit, "/op")); ok {
		return s, report.Seconds
	}
	switch unit {
	case "MB/sec":
		return scale{1 << 20, 1}, report.BytesPerSecond
	case "", "counts", "#":
		return scale{1, 1}, report.Count
	}
	return scale{1, 1}, unit
}

// seconds returns the length of a unit of time; it is called as TimeValue.tuToString of JMH abbreviates it.
func seconds(unit string) (length scale, ok bool) {
	switch unit {
	case "ns":
		return scale{1, 1e9}, true
	case "us":
		return scale{1, 1e6}, true
	case "ms":
		return scale{1, 1e3}, true
	case "s":
		return scale{1, 1}, true
	case "min":
		return scale{60, 1}, true
	case "hr":
		return scale{3600, 1}, true
	case "day":
		return scale{86400, 1}, true
	}
	return scale{}, false
}
