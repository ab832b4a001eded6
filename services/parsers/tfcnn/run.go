package tfcnn

import (
	"bytes"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/parsers/report"
)

// text is something that the tool says of itself: before the colon, and the name of its label, which is that of Kubebench.
type text struct{ title, name string }

// texts returns what is no number.
func texts() []text {
	return []text{
		{"Model", "model"},
		{"Dataset", "dataset"},
		{"Mode", "mode"},
		{"SingleSess", "singlesess"},
		{"Data format", "data_format"},
		{"Layout optimizer", "layout_optimizer"},
		{"Optimizer", "optimizer"},
		{"Variables", "variables"},
		{"Sync", "sync"},
	}
}

// invocation is what one run has printed.
type invocation struct {
	header    int // lines in which what the tool says of itself may come
	texts     map[string]string
	numbers   map[string]float64
	step      []byte // the last line of a step
	total     bool   // the last line is there
	trained   bool   // a run that evaluates has ended
	bad       string // the first line that cannot be read
	failure   string
	traceback bool // the lines of a Python exception come
}

// line reads a line that is not empty.
func (r *invocation) line(line []byte) {
	if r.header > 0 && r.self(line) {
		return
	}
	switch c := line[0]; {
	case r.traceback && c != ' ' && c != '\t':
		r.failure, r.traceback = report.Clip(string(line)), false
	case bytes.HasPrefix(line, []byte("Traceback (most recent call last):")):
		r.failure, r.traceback = "Traceback (most recent call last)", true
	case bytes.HasPrefix(line, []byte("FATAL Flags parsing error")), bytes.HasPrefix(line, []byte("mpirun noticed that ")),
		bytes.HasPrefix(line, []byte("mpirun detected that ")):
		r.fail(line)
	case c >= '1' && c <= '9' && bytes.Contains(line[:min(len(line), 32)], []byte("\timages/sec: ")):
		r.step = append(r.step[:0], line...)
	case c == 't' && bytes.HasPrefix(line, []byte("total images/sec: ")):
		r.total = r.number("total_images_per_second", string(line), "total images/sec: ", "")
	case c == 'A' && bytes.HasPrefix(line, []byte("Accuracy @ 1 = ")):
		r.number("top_1_accuracy", string(line), "Accuracy @ 1 = ", " ")
		r.number("top_5_accuracy", string(line), "Accuracy @ 5 = ", " ")
	case bytes.Equal(line, []byte("Done with training")):
		r.trained = true
	}
}

// fail notes the first failure.
func (r *invocation) fail(line []byte) {
	if r.failure == "" {
		r.failure = report.Clip(string(line))
	}
}

// self reads a line of what the tool says of itself, which ends with a line of equals signs.
func (r *invocation) self(line []byte) bool {
	r.header--
	if bytes.HasPrefix(line, []byte("==========")) || bytes.HasPrefix(line, []byte("Step\t")) {
		r.header = 0
		return true
	}
	title, value, ok := strings.Cut(report.Clip(string(line[:min(len(line), 1000)])), ":")
	value = strings.TrimSpace(value)
	switch {
	case !ok && strings.HasSuffix(title, " per device"):
		r.number("batch_size_per_device", title, "", " ")
	case title == "Batch size":
		r.number("batch_size", value, "", " ")
	case title == "Num batches":
		r.number("num_batches", value, "", "")
	case title == "Num epochs":
		r.number("num_epochs", value, "", "")
	case title == "TensorFlow" || slices.ContainsFunc(texts(), func(t text) bool { return t.title == title }):
		if r.texts == nil {
			r.texts = make(map[string]string)
		}
		r.texts[title] = value
	default:
		return false
	}
	return true
}

// number reads the number between two texts of a line.
func (r *invocation) number(metric, line, before, after string) bool {
	_, value, _ := strings.Cut(line, before)
	if after != "" {
		value, _, _ = strings.Cut(value, after)
	}
	v, ok := report.Number(strings.TrimSpace(value))
	if !ok {
		if r.bad == "" {
			r.bad = "cannot read " + report.Clip(metric+" "+value)
		}
		return false
	}
	if r.numbers == nil {
		r.numbers = make(map[string]float64)
	}
	r.numbers[metric] = v
	return true
}

// readStep reads the last line of a step, as "10\timages/sec: 5.8 +/- 0.0 (jitter = 0.1)\t7.983", with two accuracies at its end perhaps.
func (r *invocation) readStep() {
	if len(r.step) == 0 {
		return
	}
	columns := strings.Split(string(r.step), "\t")
	r.step = nil
	r.number("steps", columns[0], "", "")
	r.number("images_per_second", columns[1], "images/sec: ", " ")
	if strings.Contains(columns[1], " +/- ") {
		r.number("images_per_second_uncertainty", columns[1], " +/- ", " ")
		r.number("images_per_second_jitter", columns[1], "(jitter = ", ")")
	}
	if len(columns) > 2 {
		r.number("loss", columns[2], "", "")
	}
	if _, evaluated := r.numbers["top_1_accuracy"]; len(columns) > 4 && !evaluated {
		r.number("top_1_accuracy", columns[3], "", "")
		r.number("top_5_accuracy", columns[4], "", "")
	}
}

// missing says what the run lacks.
func (r *invocation) missing() string {
	r.readStep()
	switch {
	case r.bad != "":
		return r.bad
	case !r.total && !r.trained:
		return "no line total images/sec"
	}
	return ""
}

// metrics returns the metrics of the run.
func (r *invocation) metrics() []report.Metric {
	r.readStep()
	var metrics []report.Metric
	for _, d := range definitions() {
		if v, ok := r.numbers[d.Name]; ok {
			headline := d.Headline && (d.Name == "total_images_per_second" || r.trained && !r.total)
			metrics = append(metrics, report.Metric{Name: d.Name, Value: v, Unit: d.Unit, Direction: d.Direction, Headline: headline})
		}
	}
	labels := make(map[string]string)
	for _, s := range texts() {
		if v := r.texts[s.title]; v != "" {
			labels[s.name] = v
		}
	}
	if len(labels) > 0 {
		metrics = append(metrics, report.Metric{Name: "settings", Value: 1, Unit: report.Count, Labels: labels})
	}
	return metrics
}
