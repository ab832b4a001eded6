// Package mlperf reads logs of training benchmarks of MLPerf.
package mlperf

import (
	"bytes"
	"io"

	"github.com/benchmark-ai/bai/services/parsers/report"
)

const name = "mlperf"

// labelMetric tells the qualities apart that a benchmark measures, as BBOX and SEGM. It is not there if there is one.
const labelMetric = "metric"

// Kind returns the parser of MLPerf's log: lines ":::MLLOG {...}" of mlperf_logging (0.7 and later; checked with 4.1.68), ":::MLL" of 0.6
// and ":::MLPv0.5.0" of mlperf_compliance. Other text may be around them and before them on the line.
//
// The headline is the time from run_start to run_stop, if run_stop says that the run was a success; any other status is Failed. Where
// several processes write the log, it is that from the first run_start to the last run_stop. If the log has several runs, the last complete
// one counts. The version is that of the oldest format, which alone prints it.
func Kind() report.Kind {
	of := []string{labelMetric}
	return report.Kind{
		Name: name, Tool: "MLPerf training",
		Metrics: []report.Definition{
			{Name: "time_to_train", Unit: report.Seconds, Direction: report.Lower, Headline: true, Meaning: "from run_start to run_stop"},
			{Name: "init_time", Unit: report.Seconds, Direction: report.Lower, Meaning: "from init_start to init_stop"},
			{
				Name: "eval_accuracy", Unit: report.Count, Labels: of,
				Meaning: "quality at the last evaluation; the benchmark says which is better",
			},
			{Name: "target_accuracy", Unit: report.Count, Labels: of, Meaning: "quality that is to be reached"},
			{Name: "epoch_num", Unit: report.Count, Meaning: "number of the last epoch, as the benchmark counts"},
			{Name: "samples_count", Unit: report.Count, Meaning: "samples that were trained on, at the last line that tells it"},
			{
				Name: "throughput", Unit: "samples/s", Direction: report.Higher,
				Meaning: "of the last line tracked_stats, as the benchmark counts",
			},
		},
		Looks: looks, Parse: parse,
	}
}

func looks(head []byte) bool {
	for line := range bytes.Lines(head) {
		if _, ok := cut(line); ok {
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
	now     invocation
	whole   *invocation // the last complete one
	version string
	seen    bool // a line of the log was there
	bad     string
}

func (p *parser) line(line []byte) {
	l, ok := cut(line)
	if !ok {
		return
	}
	p.seen = true
	if l.version != "" {
		p.version = l.version
	}
	switch l.key {
	case "":
	case trackedStats:
		if bytes.Contains(l.json, []byte(`"throughput"`)) {
			p.now.stats = append(p.now.stats[:0], line...)
		}
	default:
		e, ok := l.read()
		if (!ok || !p.event(e)) && p.bad == "" {
			p.bad = "cannot read a line " + l.key
		}
	}
}

// event takes an event of a key that is read. It is false if its value is none.
func (p *parser) event(e logEvent) bool {
	if e.key == "init_start" && p.now.over(e.at) || e.key == "run_start" && p.now.again(e.at) {
		p.keep()
		p.now, p.bad = invocation{}, ""
	}
	return p.now.event(e)
}

// keep keeps the run read if it is complete.
func (p *parser) keep() {
	if p.now.missing() == "" && p.now.failed() == "" {
		done := p.now
		p.whole = &done
	}
}

// report returns what the last run says.
func (p *parser) report() report.Report {
	shown, missing := &p.now, p.now.missing()
	if missing == "" {
		missing = p.bad
	}
	metrics := shown.metrics()
	switch {
	case p.now.failed() != "":
		return report.Failure(name, p.version, metrics, p.now.failed())
	case !p.seen:
		missing = ""
	case p.now.missing() != "" && p.whole != nil:
		metrics = p.whole.metrics()
		missing += "; the values are those of the run before"
	}
	return report.Of(name, p.version, metrics, missing)
}
