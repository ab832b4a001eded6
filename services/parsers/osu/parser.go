package osu

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/services/parsers/internal/mpirun"
	"github.com/benchmark-ai/bai/services/parsers/internal/table"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

// maxTables is how many tables are kept: more than there are benchmarks and data types.
const maxTables = 4096

// result is the table of one benchmark.
type result struct {
	about   about // of two tables about the same, the later counts
	columns []table.Column
	rows    table.Rows
}

// about is what is printed above a table.
type about struct {
	benchmark, datatype, pairs, window, creation, synchronization, memory string
}

func (a about) labels() map[string]string {
	all := map[string]string{
		labelBenchmark: a.benchmark, labelDatatype: a.datatype, labelPairs: a.pairs, labelWindow: a.window,
		labelCreation: a.creation, labelSync: a.synchronization, labelMemory: a.memory,
	}
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	return all
}

// parser keeps the last table of each benchmark.
type parser struct {
	known    []table.Column
	headers  table.Headers
	version  string
	begun    bool
	about    about // the benchmark that was begun last
	tables   []result
	open     int  // the index of the table that is read; -1 for none
	full     bool // tables were left out
	invalid  string
	tags     mpirun.Tags
	launcher mpirun.Errors // since the last benchmark began
}

func (p *parser) line(line []byte) {
	line = p.tags.Remove(line)
	switch {
	case len(line) == 0:
	case line[0] == '#':
		p.comment(line)
	case p.begun && p.open >= 0 && table.IsRow(line):
		p.tables[p.open].rows.Add(line)
	default:
		p.word(line)
	}
}

// word reads a line that is no part of a table.
func (p *parser) word(line []byte) {
	switch {
	case bytes.HasPrefix(line, []byte("DATA VALIDATION ERROR")):
		p.invalid = string(line)
	case bytes.HasPrefix(line, []byte("This test requires ")):
		p.launcher.Say(line)
	default:
		p.launcher.See(line)
	}
}

func (p *parser) comment(line []byte) {
	if benchmark, version, ok := title(line); ok {
		p.version, p.about, p.begun, p.open = version, about{benchmark: benchmark}, true, -1
		p.launcher = mpirun.Errors{}
		return
	}
	if !p.begun || p.label(line) {
		return
	}
	if columns := p.headers.Of(line, p.header); columns != nil {
		p.begin(columns)
	}
}

func (p *parser) header(line []byte) []table.Column {
	return header(bytes.TrimLeft(line[1:], " \t"), p.known)
}

// label reads a line between the title and the header.
func (p *parser) label(line []byte) bool {
	text, _ := bytes.CutPrefix(line, []byte("# "))
	for prefix, value := range p.about.prefixes() {
		if rest, ok := bytes.CutPrefix(text, []byte(prefix)); ok {
			*value = report.Clip(strings.TrimSuffix(string(bytes.TrimSpace(rest)), "."))
			return true
		}
	}
	if !bytes.HasPrefix(text, []byte("[ pairs: ")) {
		return p.memory(text)
	}
	var pairs, window int
	if n, err := fmt.Sscanf(string(text), "[ pairs: %d ] [ window size: %d ]", &pairs, &window); n == 2 && err == nil {
		p.about.pairs, p.about.window = strconv.Itoa(pairs), strconv.Itoa(window)
	}
	return true
}

// prefixes yields how lines begin whose rest is a label, and the label.
func (a *about) prefixes() iter.Seq2[string, *string] {
	return func(yield func(string, *string) bool) {
		_ = yield("Datatype: ", &a.datatype) && yield("Window creation: ", &a.creation) && yield("Synchronization: ", &a.synchronization)
	}
}

// memory reads where the buffers are:
//
//	Send Buffer on DEVICE (D) and Receive Buffer on HOST (H)
//	Rank 0 Memory on DEVICE (D) and Rank 1 Memory on DEVICE (D)
func (p *parser) memory(line []byte) bool {
	if !bytes.HasPrefix(line, []byte("Send Buffer on ")) && !bytes.HasPrefix(line, []byte("Rank 0 Memory on ")) {
		return false
	}
	var letters []string
	for word := range strings.FieldsSeq(string(line)) {
		if len(word) > 2 && word[0] == '(' && word[len(word)-1] == ')' {
			letters = append(letters, word[1:len(word)-1])
		}
	}
	p.about.memory = report.Clip(strings.Join(letters, " "))
	return true
}

// begin begins a table, in the place of an earlier one about the same.
func (p *parser) begin(columns []table.Column) {
	r := result{about: p.about, columns: columns}
	p.open = slices.IndexFunc(p.tables, func(t result) bool { return t.about == r.about })
	switch {
	case p.open >= 0:
		r.rows = p.tables[p.open].rows
		r.rows.Reset()
		p.tables[p.open] = r
	case len(p.tables) == maxTables:
		p.full = true
	default:
		p.open = len(p.tables)
		p.tables = append(p.tables, r)
	}
}

// report returns what the tables say.
func (p *parser) report() report.Report {
	v := reader{}
	if p.full {
		v.missing = append(v.missing, fmt.Sprintf("tables beyond the first %d", maxTables))
	}
	for i := range p.tables {
		v.read(&p.tables[i])
	}
	metrics, said := v.set.List(), p.launcher.Last()
	if p.invalid != "" {
		v.failed = append(v.failed, p.invalid)
	}
	switch {
	case len(v.failed) > 0:
		return report.Failure(name, p.version, metrics, strings.Join(v.failed, "; "))
	case len(metrics) == 0 && said != "":
		return report.Failure(name, p.version, nil, said)
	case len(metrics) == 0 && p.begun:
		v.missing = append(v.missing, "the benchmark printed no row")
	}
	if said != "" {
		v.missing = append(v.missing, said)
	}
	return report.Of(name, p.version, metrics, report.Clip(strings.Join(v.missing, "; ")))
}

// reader reads the rows of tables.
type reader struct {
	set             table.Metrics
	table           *result
	best            report.Metric // for the headline of the table
	places          int           // decimal places of the last number of a row
	broken          string        // the last row, if it is none
	failed, missing []string
}

func (v *reader) read(t *result) {
	v.table, v.best, v.places, v.broken = t, report.Metric{}, -1, ""
	t.rows.Each(v.row)
	benchmark := t.about.benchmark
	switch {
	case t.rows.Full:
		v.missing = append(v.missing, benchmark+": a part of the rows")
	case v.broken != "":
		v.missing = append(v.missing, benchmark+": the row "+v.broken+" is incomplete")
	case t.rows.None():
		v.missing = append(v.missing, benchmark+": no row")
	}
	if v.best.Name == "" {
		return
	}
	m := v.best
	m.Labels, m.Headline = t.about.labels(), true
	if m.Name == "bandwidth" {
		m.Name = "peak_bandwidth"
	} else {
		m.Name = "minimum_latency"
	}
	v.set.Put(m)
}

// row reads a row. That whose last number has fewer decimal places than the others is cut; one that others follow is some other line.
func (v *reader) row(words []string) {
	columns := v.table.columns
	if columns[len(columns)-1].Title == titleTransmit { // has blanks
		columns = columns[:len(columns)-1]
		words = words[:min(len(words), len(columns))]
	}
	if len(words) != len(columns) || !v.whole(words[len(words)-1]) {
		v.broken = strings.Join(words, " ")
		return
	}
	v.broken = ""
	labels := v.table.about.labels()
	if columns[0].Title == titleSize {
		labels[labelBytes] = words[0]
	}
	for i, c := range columns {
		if c.Title == titleValidation {
			v.validation(words[i], labels)
		}
		if c.Name != "" {
			v.put(c, words[i], labels)
		}
	}
}

// whole reports whether the last word of a row looks like that of the first row.
func (v *reader) whole(last string) bool {
	if last == "Pass" || last == "Fail" {
		return true
	}
	_, decimals, _ := strings.Cut(last, ".")
	if v.places < 0 {
		v.places = len(decimals)
	}
	return len(decimals) == v.places
}

func (v *reader) validation(word string, labels map[string]string) {
	if word != "Pass" {
		v.failed = append(v.failed, strings.TrimSpace(labels[labelBenchmark]+" "+labels[labelBytes])+": Validation "+word)
	}
}

func (v *reader) put(c table.Column, word string, labels map[string]string) {
	m, ok := c.Metric(word, labels)
	if !ok {
		v.missing = append(v.missing, fmt.Sprintf("%s: %s is %q", labels[labelBenchmark], c.Title, word))
		return
	}
	v.set.Put(m)
	switch m.Name {
	case "bandwidth", "latency", "time_overall":
		table.Best(&v.best, m)
	}
}
