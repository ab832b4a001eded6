// Package gobench reads the output of go test -bench.
package gobench

import (
	"bytes"
	"cmp"
	"io"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/parsers/report"
)

const name = "gobench"

// Labels of metrics.
const (
	labelBenchmark = "benchmark" // the whole name without Benchmark in front and -N behind
	labelProcs     = "procs"     // N: GOMAXPROCS; 1 is not printed
	labelPackage   = "package"   // if the text has benchmarks of several
)

// Kind returns the parser of go test -bench. The format is that of https://go.dev/design/14313-benchmark-format; units are those of
// golang.org/x/perf/benchunit: ns becomes seconds and MB 10^6 bytes, also in units of one's own, whose metric is named after the tidied
// unit (p99-ns/op is p99_sec_per_op). It was checked with Go 1.26.
//
// A metric is the median of the repetitions (-count) of one run of a package; of several runs in a text the last that has come to its end
// counts. The headline is sec_per_op, if the text has just one benchmark. A name that ends with -N and was run with one processor cannot be
// told from one with the suffix. Lines that a benchmark prints between its name and its result do no harm.
func Kind() report.Kind {
	labels := []string{labelBenchmark, labelProcs, labelPackage}
	return report.Kind{
		Name: name, Tool: "go test -bench", Looks: looks, Parse: parse,
		Metrics: []report.Definition{
			{Name: "sec_per_op", Unit: report.Seconds, Direction: report.Lower, Headline: true, Labels: labels, Meaning: "time of an operation"},
			{Name: "bytes_per_op", Unit: report.Bytes, Direction: report.Lower, Labels: labels, Meaning: "bytes allocated by an operation"},
			{Name: "allocs_per_op", Unit: report.Count, Direction: report.Lower, Labels: labels, Meaning: "allocations of an operation"},
			{Name: "bytes_per_sec", Unit: report.BytesPerSecond, Direction: report.Higher, Labels: labels, Meaning: "bytes processed"},
			{Name: "*", Unit: "*", Labels: labels, Meaning: "what the benchmark reports in a unit of its own, named after the unit"},
		},
	}
}

func looks(head []byte) bool {
	for line := range bytes.Lines(head) {
		if _, _, ok := readResult(bytes.TrimRight(line, "\r\n")); ok {
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

// parser keeps the runs of packages in a text.
type parser struct {
	runs    []*invocation
	pending []byte // the name of a benchmark whose result is on another line
	begun   bool   // it has begun to run
	explain bool   // the next line says why a benchmark failed
	units   units
}

// invocation is one run of the benchmarks of a package.
type invocation struct {
	pkg     string
	begun   bool // something was read that belongs to it
	ended   bool
	results []result
	failure string // the first word about one
	missing string // the first result that is not there
}

// last returns the run to which a line about the end of one belongs.
func (p *parser) last() *invocation {
	if len(p.runs) == 0 {
		p.runs = append(p.runs, &invocation{})
	}
	return p.runs[len(p.runs)-1]
}

// current returns the run to which a result belongs: not one that has ended.
func (p *parser) current() *invocation {
	if p.last().ended {
		p.runs = append(p.runs, &invocation{})
	}
	return p.last()
}

func (p *parser) line(line []byte) {
	if p.explain {
		if p.explain = false; bytes.HasPrefix(line, []byte("    ")) {
			p.last().failure += ": " + report.Clip(string(line))
		}
	}
	if len(line) == 0 {
		return
	}
	switch line[0] {
	case 'B':
		p.benchmark(line)
	case ' ', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		if p.pending != nil && bytes.Contains(line, []byte("ns/op")) {
			p.add(slices.Concat(p.pending, []byte("\t"), line))
		}
	case 'p', 'g':
		p.header(line)
	case 'P', 'o':
		p.passed(line)
	case 'F', '-', 's', 'f':
		p.failed(line)
	}
}

// benchmark reads a line that may begin with the name of a benchmark. Go prints the name before it runs one, and the result behind it.
func (p *parser) benchmark(line []byte) {
	if !isName(line) {
		return
	}
	p.without()
	if p.add(line) {
		return
	}
	name, rest, begun := bytes.Cut(line, []byte("\t"))
	p.pending, p.begun = bytes.TrimSpace(bytes.Clone(name)), begun
	if bytes.HasPrefix(rest, []byte("panic: ")) {
		p.current().fail(string(rest))
	}
}

// add keeps the result of a line, if it is one.
func (p *parser) add(line []byte) bool {
	r, broken, ok := readResult(line)
	if !ok {
		return false
	}
	c := p.current()
	c.begun, c.results = true, append(c.results, r)
	if broken != "" && c.missing == "" {
		c.missing = "no number: " + report.Clip(broken)
	}
	p.pending, p.begun = nil, false
	return true
}

// without notes that a benchmark which has begun has no result.
func (p *parser) without() {
	if c := p.last(); p.begun && c.missing == "" {
		c.missing = "no result of " + report.Clip(string(p.pending))
	}
	p.pending, p.begun = nil, false
}

// header reads a line about the machine or the package, which begins a run.
func (p *parser) header(line []byte) {
	switch {
	case bytes.HasPrefix(line, []byte("panic: ")):
		p.current().fail(string(line))
	case bytes.HasPrefix(line, []byte("goos: ")), bytes.HasPrefix(line, []byte("pkg: ")):
		if p.current().begun {
			p.without()
			p.runs = append(p.runs, &invocation{})
		}
		if pkg, ok := bytes.CutPrefix(line, []byte("pkg: ")); ok {
			c := p.last()
			c.pkg, c.begun = string(pkg), true
		}
	}
}

// passed reads a line that may say that a run ended well: PASS and ok are two words about one.
func (p *parser) passed(line []byte) {
	if string(line) == "PASS" || bytes.HasPrefix(line, []byte("ok  \t")) {
		p.without()
		p.last().ended = true
	}
}

// failed reads a line that may tell of a failure.
func (p *parser) failed(line []byte) {
	switch {
	case bytes.HasPrefix(line, []byte("--- FAIL: ")):
		c := p.current()
		p.explain = c.failure == ""
		c.fail(string(line))
	case bytes.HasPrefix(line, []byte("fatal error: ")), bytes.HasPrefix(line, []byte("signal: ")):
		p.current().fail(string(line))
	case string(line) == "FAIL":
		p.last().fail("FAIL")
		p.last().ended = true
	case bytes.HasPrefix(line, []byte("FAIL\t")):
		f := strings.Fields(string(line))
		if c := p.last(); len(f) > 1 && c.pkg != "" && c.pkg != f[1] {
			p.runs = append(p.runs, &invocation{pkg: f[1]})
		}
		p.last().fail(strings.Join(f, " "))
		p.last().ended = true
	}
}

func (r *invocation) fail(why string) {
	if r.begun = true; r.failure == "" {
		r.failure = report.Clip(why)
	}
}

// report returns what the runs say.
func (p *parser) report() report.Report {
	if p.begun {
		p.without()
	}
	chosen, failure, missing := p.choose()
	metrics := p.metrics(chosen)
	switch {
	case failure != "":
		return report.Failure(name, "", metrics, failure)
	case len(metrics) == 0 && len(chosen) > 0 && missing == "":
		missing = "no benchmark was run"
	case missing == "":
		headline(metrics)
	}
	return report.Of(name, "", metrics, missing)
}

// choose returns the last run of each package that has come to its end, or the last, and what they say about failures and what is missing.
func (p *parser) choose() (chosen []*invocation, failure, missing string) {
	at, last := make(map[string]int), make(map[string]*invocation)
	for _, r := range p.runs {
		if !r.begun {
			continue
		}
		i, ok := at[r.pkg]
		if last[r.pkg] = r; !ok {
			at[r.pkg], chosen = len(chosen), append(chosen, r)
		} else if r.ended || !chosen[i].ended {
			chosen[i] = r
		}
	}
	for _, r := range chosen {
		failure, missing = cmp.Or(failure, r.failure), cmp.Or(missing, r.missing)
		if end := last[r.pkg]; !end.ended {
			failure, missing = cmp.Or(failure, end.failure), cmp.Or(missing, "neither PASS nor FAIL at the end of "+cmp.Or(r.pkg, "the output"))
		}
	}
	return chosen, failure, missing
}

// headline marks the time of the only benchmark.
func headline(metrics []report.Metric) {
	only, ids := -1, make(map[string]bool)
	for i, m := range metrics {
		ids[m.Labels[labelPackage]+"\n"+m.Labels[labelBenchmark]+"\n"+m.Labels[labelProcs]] = true
		if m.Name == "sec_per_op" {
			only = i
		}
	}
	if len(ids) == 1 && only >= 0 {
		metrics[only].Headline = true
	}
}
