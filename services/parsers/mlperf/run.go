package mlperf

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/parsers/report"
)

const maxQualities = 20 // of a run that are reported

// invocation is what one run has logged.
type invocation struct {
	init, train span
	status      string    // of run_stop: success, aborted
	last        int64     // time of the last event but run_start
	accuracy    []quality // of the last evaluation
	target      []quality
	epoch       *float64
	samples     *float64
	stats       []byte // the last line tracked_stats with a throughput
}

// span is the time between two events, in nanoseconds since 1970; 0 if one was not there.
type span struct{ start, stop int64 }

// begin takes the time of the first of several processes.
func (s *span) begin(at int64) {
	if s.start == 0 || at < s.start {
		s.start = at
	}
}

// end takes the time of the last of several processes.
func (s *span) end(at int64) { s.stop = max(s.stop, at) }

func (s *span) known() bool { return s.start > 0 && s.stop >= s.start }

func (s *span) seconds() float64 { return float64(s.stop-s.start) / 1e9 }

// quality is one of the qualities that a benchmark measures.
type quality struct {
	metric string
	value  float64
}

// over reports whether an event init_start is that of another run: one process after the other begins before any run starts.
func (r *invocation) over(at int64) bool {
	return r.train.start > 0 && at > max(r.train.start, r.train.stop)
}

// again reports whether an event run_start is that of another run, and not that of another process.
func (r *invocation) again(at int64) bool {
	return r.train.start > 0 && r.last > 0 && at >= r.last
}

// event takes an event. It is false if its value is none.
func (r *invocation) event(e logEvent) bool {
	r.progress(e)
	switch e.key {
	case "init_start":
		r.init.begin(e.at)
	case "init_stop":
		r.init.end(e.at)
	case "run_start":
		r.train.begin(e.at)
	case "run_stop":
		r.train.end(e.at)
		r.end(e)
	case "eval_accuracy":
		return set(&r.accuracy, word(e.metadata["metric"]), e.value)
	case "target_accuracy", "eval_target":
		return set(&r.target, word(e.metadata["metric"]), e.value)
	}
	return true
}

// progress takes what events say on the way.
func (r *invocation) progress(e logEvent) {
	if e.key != "run_start" && r.train.start > 0 {
		r.last = max(r.last, e.at)
	}
	if v, ok := number(e.metadata["epoch_num"]); ok {
		r.epoch = &v
	} else if v, ok := number(object(e.value)["epoch"]); ok && e.key == "eval_accuracy" {
		r.epoch = &v
	}
	if v, ok := number(e.metadata["samples_count"]); ok {
		r.samples = &v
	}
}

// end takes the status of run_stop. That of a process that failed counts before that of others.
func (r *invocation) end(e logEvent) {
	status := word(e.metadata["status"])
	if success, ok := object(e.value)["success"]; ok && status == "" {
		status = "success"
		if string(success) != "true" {
			status = "success: " + report.Clip(string(success))
		}
	}
	if status != "" && (r.status == "" || r.status == "success") {
		r.status = status
	}
}

// set takes a number, or one for each quality: 0.7, {"BBOX": 0.3, "SEGM": 0.3}, and of version 0.5 {"epoch": 3, "value": 0.7}. Numbers that
// version 0.5 prints later than their line ("DEFERRED: ...") are left out.
func set(all *[]quality, metric string, raw json.RawMessage) bool {
	if strings.HasPrefix(string(raw), `"DEFERRED: `) {
		return true
	}
	o := object(raw)
	if value, ok := o["value"]; ok {
		return set(all, metric, value)
	}
	if o == nil {
		v, ok := number(raw)
		if ok {
			put(all, quality{metric, v})
		}
		return ok
	}
	read := len(o) > 0
	for _, name := range slices.Sorted(maps.Keys(o)) {
		v, ok := number(o[name])
		if ok {
			put(all, quality{report.Clip(name), v})
		}
		read = read && ok
	}
	return read
}

// put takes a value in the place of an earlier one.
func put(all *[]quality, q quality) {
	i := slices.IndexFunc(*all, func(old quality) bool { return old.metric == q.metric })
	switch {
	case i >= 0:
		(*all)[i] = q
	case len(*all) < maxQualities:
		*all = append(*all, q)
	}
}

// failed says how the run failed, or nothing.
func (r *invocation) failed() string {
	if r.status == "" || r.status == "success" {
		return ""
	}
	return "run_stop: status " + strings.TrimPrefix(r.status, "status ")
}

// missing says what the run lacks.
func (r *invocation) missing() string {
	switch {
	case r.train.start == 0:
		return "no line run_start"
	case r.train.stop == 0:
		return "no line run_stop"
	case !r.train.known():
		return "run_stop is before run_start"
	case r.status == "":
		return "run_stop does not say whether the run was a success"
	}
	return ""
}

// throughput returns that of the last line tracked_stats.
func (r *invocation) throughput() (float64, bool) {
	if len(r.stats) == 0 {
		return 0, false
	}
	l, _ := cut(r.stats)
	e, ok := l.read()
	if !ok {
		return 0, false
	}
	return number(object(e.value)["throughput"])
}

// metrics returns the metrics of the run.
func (r *invocation) metrics() []report.Metric {
	var metrics []report.Metric
	add := func(name, unit string, direction report.Direction, value float64) {
		metrics = append(metrics, report.Metric{
			Name: name, Value: value, Unit: unit, Direction: direction, Labels: map[string]string{}, Headline: name == "time_to_train",
		})
	}
	if r.train.known() && r.failed() == "" {
		add("time_to_train", report.Seconds, report.Lower, r.train.seconds())
	}
	if r.init.known() {
		add("init_time", report.Seconds, report.Lower, r.init.seconds())
	}
	metrics = append(metrics, labelled("eval_accuracy", r.accuracy)...)
	metrics = append(metrics, labelled("target_accuracy", r.target)...)
	if r.epoch != nil {
		add("epoch_num", report.Count, "", *r.epoch)
	}
	if r.samples != nil {
		add("samples_count", report.Count, "", *r.samples)
	}
	if v, ok := r.throughput(); ok {
		add("throughput", "samples/s", report.Higher, v)
	}
	return metrics
}

// labelled returns a metric for each quality.
func labelled(name string, all []quality) (metrics []report.Metric) {
	for _, q := range all {
		labels := map[string]string{}
		if q.metric != "" {
			labels[labelMetric] = q.metric
		}
		metrics = append(metrics, report.Metric{Name: name, Value: q.value, Unit: report.Count, Labels: labels})
	}
	return metrics
}
