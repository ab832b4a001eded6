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
			{
				Name: "sec_per_op", Unit: report.Seconds, Direction: report.Lower, Headline: true, Labels: labels,
				Meaning: "time of an operation",
			},
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
	packages map[string]*packageRuns
	order    []string    // the packages as they come in the text
	run      *invocation // the one that the next line belongs to
	size     int         // bytes of all that is kept, as the text has them
	full     bool        // results were left out, because there were too many
	pending  []byte      // the name of a benchmark whose result is on another line
	begun    bool        // it has begun to run
	explain  bool        // the next line says why a benchmark failed
	units    units
}

// maxSize is how many bytes of results are kept: more than go test prints.
const maxSize = 4 << 20

// packageSize is what a package takes beside its results.
const packageSize = 256

// packageRuns are the runs of a package that count.
type packageRuns struct {
	chosen *invocation // the last that has come to its end, or the last
	last   *invocation
}

// invocation is one run of the benchmarks of a package.
type invocation struct {
	pkg     string
	begun   bool // something was read that belongs to it
	ended   bool
	results []result
	size    int    // of the results
	failure string // the first word about one
	missing string // the first result that is not there
}

// last returns the run to which a line about the end of one belongs.
func (p *parser) last() *invocation {
	if p.run == nil {
		p.run = &invocation{}
	}
	return p.run
}

// current returns the run to which a result belongs: not one that has ended.
func (p *parser) current() *invocation {
	if p.last().ended {
		p.begin(&invocation{})
	}
	return p.last()
}

// begin begins a run. The one before counts among those of its package, and takes the memory of those that do not count any more.
func (p *parser) begin(next *invocation) {
	r := p.last()
	if p.run = next; !r.begun {
		return
	}
	of := p.packages[r.pkg]
	if of == nil {
		if p.size += packageSize; p.size > maxSize {
			p.full = true
			return
		}
		of = &packageRuns{}
		if p.packages == nil {
			p.packages = make(map[string]*packageRuns)
		}
		p.packages[r.pkg], p.order = of, append(p.order, r.pkg)
	}
	before := *of
	if of.last = r; of.chosen == nil || r.ended || !of.chosen.ended {
		of.chosen = r
	}
	for _, old := range []*invocation{before.chosen, before.last} {
		if old != nil && old != of.chosen && old != of.last {
			p.size -= old.size
			old.size = 0
		}
	}
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
	c.begun = true
	if p.full = p.full || p.size+len(line) > maxSize; !p.full {
		c.results, c.size, p.size = append(c.results, r), c.size+len(line), p.size+len(line)
	}
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
			p.begin(&invocation{})
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
			p.begin(&invocation{pkg: f[1]})
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
	p.begin(nil)
	if p.full {
		missing = "results are left out: there are too many"
	}
	for _, pkg := range p.order {
		r, last := p.packages[pkg].chosen, p.packages[pkg].last
		chosen, failure, missing = append(chosen, r), cmp.Or(failure, r.failure), cmp.Or(missing, r.missing)
		if !last.ended {
			failure, missing = cmp.Or(failure, last.failure),
				cmp.Or(missing, "neither PASS nor FAIL at the end of "+cmp.Or(pkg, "the output"))
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
