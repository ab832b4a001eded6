package torchbench

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/parsers/gnutime"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

// modelLabels say what is run.
type modelLabels struct{ model, test, device, batchSize string }

// readLabels reads the line at the beginning of a run, as "Running eval method from alexnet on cpu in eager mode with input batch size 64
// and precision fp32." Old versions say less.
func readLabels(line []byte) (modelLabels, bool) {
	text, ok := bytes.CutPrefix(line, []byte("Running "))
	if !ok {
		return modelLabels{}, false
	}
	test, rest, ok := strings.Cut(report.Clip(string(text)), " method from ")
	if !ok || strings.Contains(test, " ") {
		return modelLabels{}, false
	}
	model, rest, ok := strings.Cut(rest, " on ")
	device, rest, _ := strings.Cut(rest, " ")
	_, size, _ := strings.Cut(rest, " with input batch size ")
	size, _, _ = strings.Cut(size, " ")
	return modelLabels{model, test, strings.TrimSuffix(device, "."), strings.TrimSuffix(size, ".")}, ok
}

// of returns them as labels of a metric. What is not known is left out.
func (l modelLabels) of(gpu string) map[string]string {
	labels := map[string]string{
		labelModel: l.model, labelTest: l.test, labelDevice: l.device, labelBatchSize: l.batchSize, labelGPU: gpu,
	}
	maps.DeleteFunc(labels, func(_, value string) bool { return value == "" })
	return labels
}

// invocation is what run.py has printed about one model, and time after it.
type invocation struct {
	labels    modelLabels
	values    []value
	bad       string // the first line that cannot be read
	failure   string
	traceback bool   // the lines of a Python exception come
	cut       string // what a later run of the same model lacks
	time      gnutime.Scanner
}

// value is a result.
type value struct {
	result result
	gpu    string
	value  float64
}

func (r *invocation) empty() bool {
	return r.labels == modelLabels{} && len(r.values) == 0 && r.failed() == "" && r.bad == "" && len(r.time.Result().Metrics) == 0
}

func (r *invocation) line(line []byte) {
	r.time.See(line)
	if len(line) == 0 {
		return
	}
	switch c := line[0]; {
	case r.traceback && c != ' ' && c != '\t':
		r.failure, r.traceback = report.Clip(string(line)), false
	case bytes.HasPrefix(line, []byte("Traceback (most recent call last):")):
		r.failure, r.traceback = "Traceback (most recent call last)", true
	case bytes.HasPrefix(line, []byte("Unable to find model matching ")):
		r.failure = report.Clip(string(line))
	case c == 'C' || c == 'G' || c == 'T' || c == 'F' || c == 'P':
		r.read(line)
	}
	if r.failure == "" && bytes.Contains(line, []byte("CUDA out of memory")) {
		r.failure = report.Clip(string(line))
	}
}

// read reads a line as "GPU 0 Peak Memory:             1.2500 GB".
func (r *invocation) read(line []byte) {
	label, text, ok := bytes.Cut(line, []byte(":"))
	if !ok || len(label) > 40 || !ends(label) {
		return
	}
	title, gpu := string(label), ""
	if words := strings.Fields(title); len(words) > 2 && words[0] == "GPU" && isNumber(words[1]) {
		gpu = words[1]
		title = "GPU " + strings.Join(words[2:], " ")
	}
	all := results()
	i := slices.IndexFunc(all, func(of result) bool { return slices.Contains(of.titles, title) })
	if i < 0 {
		return
	}
	v, ok := all[i].parse(string(bytes.TrimSpace(text)))
	if !ok {
		if r.bad == "" {
			r.bad = "cannot read " + report.Clip(string(line))
		}
		return
	}
	r.values = slices.DeleteFunc(r.values, func(old value) bool { return old.result.name == all[i].name && old.gpu == gpu })
	r.values = append(r.values, value{all[i], gpu, v})
}

// ends reports whether the title of a result may end like this. It keeps the parser from looking closely at other lines.
func ends(title []byte) bool {
	for _, word := range [...]string{" batch", " Time", " time", " Memory", "FLOPS", " Breaks"} {
		if bytes.HasSuffix(title, []byte(word)) {
			return true
		}
	}
	return false
}

func isNumber(text string) bool {
	return text != "" && len(text) < 5 && strings.Trim(text, "0123456789") == ""
}

// has reports whether a result is there.
func (r *invocation) has(name string) bool {
	return slices.ContainsFunc(r.values, func(v value) bool { return v.result.name == name })
}

// headline returns the name of the result that people quote. It is empty if that is not there.
func (r *invocation) headline() string {
	names := []string{"gpu_time_per_batch", "gpu_time"}
	if r.labels.device != "cuda" && r.labels.device != "xpu" {
		names = append(names, "cpu_wall_time_per_batch", "cpu_wall_time")
	}
	for _, name := range names {
		if r.has(name) {
			return name
		}
	}
	return ""
}

// failed says how the run failed, or nothing.
func (r *invocation) failed() string {
	if r.failure != "" {
		return r.failure
	}
	return r.time.Result().Failure
}

// missing says what the run lacks.
func (r *invocation) missing() string {
	switch {
	case r.bad != "":
		return r.bad
	case r.headline() == "":
		return strings.TrimSpace("no time of " + r.labels.model)
	case r.labels == modelLabels{}:
		return "no line Running, which tells the model"
	case r.cut != "":
		return r.cut + "; the values are those of the run before"
	}
	return r.time.Result().Missing
}

// metrics returns the metrics of the run.
func (r *invocation) metrics() []report.Metric {
	var metrics []report.Metric
	headline := r.headline()
	for _, v := range r.values {
		metrics = append(metrics, report.Metric{
			Name: v.result.name, Value: v.value, Unit: v.result.unit, Direction: v.result.direction,
			Labels: r.labels.of(v.gpu), Headline: v.result.name == headline,
		})
	}
	for _, m := range r.time.Result().Metrics {
		m.Labels, m.Headline = r.labels.of(""), false
		metrics = append(metrics, m)
	}
	return metrics
}
