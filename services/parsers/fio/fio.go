// Package fio reads the JSON of fio.
package fio

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/parsers/internal/document"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

const name = "fio"

// Labels of metrics.
const (
	labelJob        = "job"        // the name of a job, or all for the sum
	labelOp         = "op"         // read, write, trim, sync (fsync and its like), or mixed with unified_rw_reporting
	labelHost       = "host"       // server and port, where there are servers
	labelIndex      = "index"      // counts jobs of one name from 1
	labelGroup      = "group"      // of the sum, where groups of jobs ran one after the other
	labelPercentile = "percentile" // as 99.9
)

// Kind returns the parser of fio's --output-format=json and json+, alone or with other formats and messages around. Formats are those of
// stat.c and client.c of fio 3.33; those of fio 2 (bw alone, latencies in microseconds) are read, too.
//
// The headlines are bandwidth and iops of job "all", in each direction that has transferred anything: trim or mixed counts if nothing was
// read or written. That job is the entry "All clients" of the tool, the only job, or the sum of the jobs of one group, whose rates are
// those of the line that fio prints for a group: all bytes and operations over the longest runtime. Groups that ran one after the other
// (stonewall) have a sum each. There is no sum unless all jobs and servers have ended well: what is left when a server has died is not the
// result. Only standard error says that a server was not reached: the document has the results of the others.
func Kind() report.Kind {
	job := []string{labelJob, labelHost, labelIndex}
	op := []string{labelJob, labelHost, labelIndex, labelGroup, labelOp}
	of := func(name, unit string, d report.Direction, labels []string, meaning string) report.Definition {
		return report.Definition{Name: name, Unit: unit, Direction: d, Labels: labels, Meaning: meaning}
	}
	all := []report.Definition{
		of("bandwidth", report.BytesPerSecond, report.Higher, op, "rate of the whole run; of several jobs, over the longest runtime"),
		of("iops", report.PerSecond, report.Higher, op, "operations a second of the whole run; of several jobs, over the longest runtime"),
		of("io_bytes", report.Bytes, "", op, "bytes transferred"),
		of("total_ios", report.Count, "", op, "operations done"),
		of("runtime", report.Seconds, "", op, "time in which there was any"),
	}
	all[0].Headline, all[1].Headline = true, true
	percentile := append(slices.Clone(op), labelPercentile)
	for _, l := range []struct{ name, meaning string }{
		{"lat", "time from submission to completion"}, {"clat", "time from the kernel's taking to completion"}, {"slat", "time to submit"},
	} {
		all = append(all,
			of(l.name+"_mean", report.Seconds, report.Lower, op, "mean "+l.meaning),
			of(l.name+"_stddev", report.Seconds, report.Lower, op, "standard deviation of the "+l.meaning),
			of(l.name+"_min", report.Seconds, report.Lower, op, "least "+l.meaning),
			of(l.name+"_max", report.Seconds, report.Lower, op, "greatest "+l.meaning),
			of(l.name+"_percentile", report.Seconds, report.Lower, percentile, "percentile of the "+l.meaning))
	}
	return report.Kind{
		Name: name, Tool: "fio", Document: true, Messages: true, Looks: looks, Parse: report.DocumentParser(name, parse),
		Metrics: append(all,
			of("usr_cpu", report.Ratio, "", job, "processor time in user mode, of the run time"),
			of("sys_cpu", report.Ratio, "", job, "processor time in the kernel, of the run time"),
			of("total_err", report.Count, report.Lower, job, "errors with continue_on_error")),
	}
}

func looks(head []byte) bool {
	return document.Starts(head, `"fio version"`) || isNormal(head)
}

// isNormal reports whether a text has what fio prints for people before it starts: the line of a job, and that of its version.
func isNormal(text []byte) bool {
	return bytes.Contains(text, []byte(": (g=0): rw=")) && bytes.Contains(text, []byte("\nfio-"))
}

func parse(text []byte, _ report.Options) report.Report {
	f := document.Find(text, `"fio version"`, func(d *output) bool { return d.Version != "" && (d.Jobs != nil || d.Clients != nil) })
	said := messages(f.Around)
	if f.Doc == nil {
		return nothing(f.Around, said)
	}
	return result(f, said)
}

// nothing returns the report of a text without a document.
func nothing(text []byte, said words) report.Report {
	switch {
	case bytes.Contains(text, []byte(`"fio version"`)):
		return report.Of(name, "", nil, "the JSON document ends in the middle")
	case len(said.all) > 0:
		return report.Failure(name, "", nil, said.first())
	case isNormal(text):
		return report.Of(name, "", nil, "no JSON document: fio was run without --output-format=json")
	}
	return report.Of(name, "", nil, "")
}

// result returns the report of a document.
func result(f document.Found[output], said words) report.Report {
	w := writer{}
	summed := w.output(f.Doc)
	failed := failedJob(f.Doc, said)
	missing := slices.DeleteFunc([]string{w.missing, summed, strings.Join(said.lost, "; ")}, func(s string) bool { return s == "" })
	if f.Cut {
		missing = append(missing, "the JSON document ends in the middle")
	}
	if failed == "" && len(missing) == 0 {
		w.headlines()
	} else {
		w.metrics = slices.DeleteFunc(w.metrics, isSum)
	}
	switch {
	case failed != "":
		return report.Failure(name, f.Doc.Version, w.metrics, failed)
	case len(w.metrics) > 0:
		return report.Of(name, f.Doc.Version, w.metrics, report.Clip(strings.Join(missing, "; ")))
	case len(said.all) > 0:
		return report.Failure(name, f.Doc.Version, nil, said.first())
	case len(f.Doc.entries()) == 0 && !f.Cut:
		return report.Failure(name, f.Doc.Version, nil, "no job was run")
	}
	return report.Of(name, f.Doc.Version, nil, report.Clip(strings.Join(missing, "; ")))
}

// failedJob returns why the first job that has failed has done so, in the words of the tool if it printed them.
func failedJob(d *output, said words) string {
	for _, e := range d.entries() {
		if v, ok := e.Error.Times(0); !ok || v == 0 {
			continue
		}
		for _, m := range said.all {
			if strings.Contains(m, "err="+string(e.Error)+"/") {
				return m
			}
		}
		return fmt.Sprintf("job %s: error %s", e.Name, e.Error)
	}
	return ""
}

// words are what fio says beside its results.
type words struct {
	all  []string // messages, of which some are warnings
	lost []string // those that say that a part of the results is not there
}

// first returns the first messages, for the first says most.
func (w words) first() string { return strings.Join(w.all[:min(3, len(w.all))], "; ") }

// maxMessages is how many messages are kept.
const maxMessages = 100

// messages reads the lines that fio prints about errors. Those of a server begin with its name: "<node> fio: job x dropped".
func messages(text []byte) (w words) {
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		if _, rest, ok := bytes.Cut(line, []byte("> ")); ok && line[0] == '<' {
			line = rest
		}
		if !bytes.HasPrefix(line, []byte("fio: ")) && !bytes.HasPrefix(line, []byte("client")) || len(w.all) == maxMessages {
			continue
		}
		m := string(line)
		if isLoss(m) {
			w.lost = append(w.lost, m)
		}
		if isLoss(m) || m[0] == 'f' {
			w.all = append(w.all, m)
		}
	}
	return w
}

// isLoss reports whether a message says that a job has not come to its end, or its result not to fio.
func isLoss(message string) bool {
	return slices.ContainsFunc([]string{
		"fio: failed to connect", " disconnected", "exited with error", " dropped", "terminating on signal", "got signal=",
	}, func(sign string) bool { return strings.Contains(message, sign) })
}
