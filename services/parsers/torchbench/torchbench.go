// Package torchbench reads the output of run.py of pytorch/benchmark (TorchBench), with that of GNU time that it was run under.
package torchbench

import (
	"bytes"
	"io"

	"github.com/benchmark-ai/bai/services/parsers/gnutime"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

const name = "torchbench"

// Labels of metrics. Those of the model are what run.py says that it runs.
const (
	labelModel     = "model"
	labelTest      = "test"   // eval or train
	labelDevice    = "device" // cpu, cuda and others
	labelBatchSize = "batch_size"
	labelGPU       = "gpu" // its number
)

// Kind returns the parser of run.py. Formats are those of its printResultSummaryTime, from the first one ("CPU Total Wall Time:") to that
// of 2025 ("CPU Wall Time per batch:"). The metrics of time are those of the kind gnu-time.
//
// The headline is the time for a batch: that of the GPU where the device has such a time, else that of the CPU. Older versions print the
// time of a whole call instead. Of a model that was run several times with the same labels, the last complete run counts.
//
// GB are what the tool means by them: for the CPU it divides bytes by 10^6 and by 1024, for a GPU by 2^30. Other units of memory, which it
// does not print, are what they say.
//
// A Python exception, a model that is not there, CUDA without memory, and the words of time about a command that failed are Failed.
func Kind() report.Kind {
	return report.Kind{Name: name, Tool: "TorchBench", Metrics: definitions(), Looks: looks, Parse: parse}
}

func definitions() []report.Definition {
	labels := []string{labelModel, labelTest, labelDevice, labelBatchSize, labelGPU}
	var all []report.Definition
	for _, r := range results() {
		all = append(all, report.Definition{
			Name: r.name, Unit: r.unit, Direction: r.direction, Headline: r.headline, Labels: labels, Meaning: r.meaning,
		})
	}
	for _, d := range gnutime.Kind().Metrics {
		d.Headline, d.Labels = false, labels
		d.Meaning = "by time: " + d.Meaning
		all = append(all, d)
	}
	return all
}

func looks(head []byte) bool {
	for line := range bytes.Lines(head) {
		if _, ok := readLabels(line); ok {
			return true
		}
		for _, label := range [...]string{"CPU Wall Time per batch:", "GPU Time per batch:", "CPU Total Wall Time:"} {
			if bytes.HasPrefix(line, []byte(label)) {
				return true
			}
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

const maxRuns = 1000 // of models that are reported

// parser reads runs one after the other.
type parser struct {
	now  invocation
	runs []invocation
}

func (p *parser) line(line []byte) {
	if i := bytes.LastIndexByte(line, '\r'); i >= 0 {
		line = line[i+1:] // what a bar of progress has left on the line
	}
	if labels, ok := readLabels(line); ok {
		p.keep()
		p.now = invocation{labels: labels}
		return
	}
	p.now.line(line)
}

// keep keeps the run read. A run of the same model takes the place of an earlier one, but for one that was cut off.
func (p *parser) keep() {
	if p.now.empty() {
		return
	}
	for i, before := range p.runs {
		if before.labels != p.now.labels {
			continue
		}
		if p.now.missing() == "" || p.now.failed() != "" || before.missing() != "" {
			p.runs[i] = p.now
		} else {
			p.runs[i].cut = p.now.missing()
		}
		return
	}
	if len(p.runs) < maxRuns {
		p.runs = append(p.runs, p.now)
	}
}

// report returns what the runs say. The first failure is the reason.
func (p *parser) report() report.Report {
	p.keep()
	var metrics []report.Metric
	var failure, missing string
	for _, r := range p.runs {
		metrics = append(metrics, r.metrics()...)
		if failure == "" {
			failure = r.failed()
		}
		if missing == "" {
			missing = r.missing()
		}
	}
	if failure != "" {
		return report.Failure(name, "", metrics, failure)
	}
	if len(metrics) == 0 && len(p.runs) == 0 {
		missing = ""
	}
	return report.Of(name, "", metrics, missing)
}
