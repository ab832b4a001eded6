// Package tfcnn reads the log of tf_cnn_benchmarks of TensorFlow.
package tfcnn

import (
	"bytes"
	"io"

	"github.com/benchmark-ai/bai/services/parsers/internal/mpirun"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

const name = "tf-cnn"

const maxHeader = 100 // lines that what the tool says of itself may have, with warnings between them

const imagesPerSecond = "images/sec" // the unit, as the tool says it

// Kind returns the parser of tf_cnn_benchmarks.py. Formats are those of print_info, benchmark_one_step, benchmark_with_session and
// _eval_once of scripts/tf_cnn_benchmarks/benchmark_cnn.py, for TensorFlow 1.4 to 2. Lines may begin as those of Kubebench do
// ("INFO|time|file|line| ") or with the number of a process by mpirun ("[1,0]<stdout>:").
//
// The headline is the line "total images/sec", which the tool prints at the end and which counts all workers. A run that trains and
// evaluates in turn has none; there the accuracy is. What the tool prints about itself are the labels of the metric settings, under the
// names of Kubebench, and its numbers are metrics. A Python exception is Failed. If the log has several runs, the last complete one counts.
func Kind() report.Kind {
	return report.Kind{Name: name, Tool: "tf_cnn_benchmarks", Metrics: definitions(), Looks: looks, Parse: parse}
}

func definitions() []report.Definition {
	const higher, lower = report.Higher, report.Lower
	settings := make([]string, 0, len(texts()))
	for _, s := range texts() {
		settings = append(settings, s.name)
	}
	return []report.Definition{
		{
			Name: "total_images_per_second", Unit: imagesPerSecond, Direction: higher, Headline: true,
			Meaning: "of all workers in the whole run",
		},
		{
			Name: "images_per_second", Unit: imagesPerSecond, Direction: higher,
			Meaning: "mean of the steps, at the last one that was printed",
		},
		{Name: "images_per_second_uncertainty", Unit: imagesPerSecond, Direction: lower, Meaning: "standard error of that mean"},
		{
			Name: "images_per_second_jitter", Unit: imagesPerSecond, Direction: lower,
			Meaning: "median deviation of the steps, scaled by 1.4826",
		},
		{Name: "loss", Unit: report.Count, Direction: lower, Meaning: "at the last step that was printed"},
		{Name: "steps", Unit: report.Count, Meaning: "number of the last step that was printed"},
		{Name: "top_1_accuracy", Unit: report.Ratio, Direction: higher, Headline: true, Meaning: "of the last evaluation"},
		{Name: "top_5_accuracy", Unit: report.Ratio, Direction: higher, Meaning: "of the last evaluation"},
		{Name: "batch_size", Unit: report.Count, Meaning: "images of a step of all workers"},
		{Name: "batch_size_per_device", Unit: report.Count, Meaning: "images of a step of one device"},
		{Name: "num_batches", Unit: report.Count, Meaning: "steps without those to warm up"},
		{Name: "num_epochs", Unit: report.Count, Meaning: "times that the data set is gone through"},
		{Name: "settings", Unit: report.Count, Labels: settings, Meaning: "1, with what the tool says of itself as labels"},
	}
}

// looks reports whether a text is such a log. One with lines of MLPerf is a log of that.
func looks(head []byte) bool {
	if bytes.Contains(head, []byte(":::MLP")) {
		return false
	}
	var tags mpirun.Tags
	for line := range bytes.Lines(head) {
		line = message(tags.Remove(line))
		if bytes.HasPrefix(line, []byte("TensorFlow:  ")) || bytes.HasPrefix(line, []byte("Step\tImg/sec\t")) ||
			bytes.HasPrefix(line, []byte("total images/sec: ")) {
			return true
		}
	}
	return false
}

func parse(r io.Reader, _ report.Options) (report.Report, error) {
	p := parser{}
	if err := report.Lines(r, p.line); err != nil {
		return report.Report{}, err
	}
	return p.report(), nil
}

// parser reads runs one after the other.
type parser struct {
	now   invocation
	whole *invocation // the last complete one
	tags  mpirun.Tags
}

func (p *parser) line(line []byte) {
	line = message(p.tags.Remove(line))
	if len(line) == 0 {
		return
	}
	if p.now.header <= 0 && begins(line) {
		p.keep()
		p.now = invocation{header: maxHeader}
	}
	p.now.line(line)
}

// begins reports whether a line is the first one of what the tool says of itself.
func begins(line []byte) bool {
	return bytes.HasPrefix(line, []byte("TensorFlow:  ")) || bytes.HasPrefix(line, []byte("Model:       "))
}

// keep keeps the run read if it is complete.
func (p *parser) keep() {
	if p.now.missing() == "" && p.now.failure == "" {
		done := p.now
		p.whole = &done
	}
}

// report returns what the last run says.
func (p *parser) report() report.Report {
	shown, missing := &p.now, p.now.missing()
	metrics := shown.metrics()
	switch {
	case p.now.failure != "":
		return report.Failure(name, p.now.texts["TensorFlow"], metrics, p.now.failure)
	case missing != "" && p.whole != nil:
		shown, missing = p.whole, missing+"; the values are those of the run before"
		metrics = shown.metrics()
	case len(metrics) == 0:
		missing = ""
	}
	return report.Of(name, shown.texts["TensorFlow"], metrics, missing)
}

// message returns a line without what Kubebench put before it: what is behind the fourth bar of a line as
// "INFO|2019-05-01T10:00:00|/opt/kubebench/run.py|83| Model: resnet50".
func message(line []byte) []byte {
	if len(line) == 0 || bytes.IndexByte([]byte("DIWEC"), line[0]) < 0 {
		return line
	}
	level, rest, ok := bytes.Cut(line[:min(len(line), 10)], []byte("|"))
	if !ok || bytes.IndexByte(level, ' ') >= 0 || len(rest) == 0 {
		return line
	}
	rest = line[len(level)+1:]
	for range 3 {
		if _, rest, ok = bytes.Cut(rest, []byte("|")); !ok {
			return line
		}
	}
	return bytes.TrimPrefix(rest, []byte(" "))
}
