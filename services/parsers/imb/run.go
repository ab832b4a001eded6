package imb

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/services/parsers/internal/table"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

// maxTables is how many tables are kept of a run: more than there are benchmarks and numbers of processes.
const maxTables = 4096

// invocation is what one start of IMB has printed.
type invocation struct {
	version string
	unknown string // the line about a benchmark that there is not
	tables  []result
	full    bool // tables were left out
	ended   bool // IMB has come to its end
}

// result is the table of one benchmark.
type result struct {
	benchmark, processes string
	groups               int
	mode                 string         // empty if there is none
	columns              []table.Column // nil before the header
	rows                 table.Rows
}

// reset begins a new run. The memory of the old one is used again.
func (r *invocation) reset(version string) { *r = invocation{version: version, tables: r.tables[:0]} }

// open reports whether a benchmark was begun.
func (r *invocation) open() bool { return len(r.tables) > 0 && !r.ended }

// none reports whether there is no row.
func (r *invocation) none() bool {
	return !slices.ContainsFunc(r.tables, func(t result) bool { return !t.rows.None() })
}

func (r *invocation) begin(benchmark string) {
	if r.full = r.full || len(r.tables) == maxTables; r.full {
		return
	}
	var rows table.Rows
	if n := len(r.tables); n < cap(r.tables) {
		rows = r.tables[:n+1][n].rows
		rows.Reset()
	}
	r.tables = append(r.tables, result{benchmark: benchmark, rows: rows})
}

// processes reads how many processes take part:
//
//	# #processes = 2
//	# ( 2 groups of 2 processes each running simultaneous )
func (r *invocation) processes(line []byte) {
	if len(r.tables) == 0 {
		return
	}
	t := &r.tables[len(r.tables)-1]
	words := strings.FieldsFunc(string(line), func(c rune) bool { return c == ' ' || c == ';' })
	switch {
	case t.columns != nil:
	case len(words) > 3 && words[1] == "#processes" && isNumber(words[3]):
		t.processes = words[3]
	case len(words) > 5 && words[3] == "groups" && isNumber(words[2]) && isNumber(words[5]):
		t.processes = words[5]
		t.groups, _ = strconv.Atoi(words[2])
	}
}

// mode reads the line between the processes and the header of a benchmark that is run once in each mode.
func (r *invocation) mode(name string) {
	if len(r.tables) == 0 {
		return
	}
	if t := &r.tables[len(r.tables)-1]; t.columns == nil {
		t.mode = strings.ToLower(name)
	}
}

func isNumber(word string) bool {
	n, err := strconv.Atoi(word)
	return err == nil && n > 0
}

// header begins the table of the benchmark. A table has one.
func (r *invocation) header(columns []table.Column) {
	if t := &r.tables[len(r.tables)-1]; t.columns == nil && t.processes != "" {
		t.columns = columns
	}
}

func (r *invocation) row(line []byte) {
	if t := &r.tables[len(r.tables)-1]; t.columns != nil {
		t.rows.Add(line)
	}
}

// metrics returns all metrics, what the tool says has failed, and which rows are missing.
func (r *invocation) metrics() (all []report.Metric, failed, missing string) {
	var set table.Metrics
	var bad, left []string
	if r.full {
		left = append(left, fmt.Sprintf("tables beyond the first %d", maxTables))
	}
	for i := range r.tables {
		v := reader{set: &set, table: &r.tables[i]}
		v.read()
		bad, left = append(bad, v.failed...), append(left, v.missing...)
		v.summary()
	}
	return headlines(set.List()), strings.Join(bad, "; "), strings.Join(left, "; ")
}

// headlines marks what a person quotes: of each benchmark, the numbers with the most processes.
func headlines(all []report.Metric) []report.Metric {
	most := make(map[string]int)
	processes := func(m report.Metric) int {
		n, _ := strconv.Atoi(m.Labels[labelProcesses])
		return n
	}
	for _, m := range all {
		most[m.Labels[labelBenchmark]] = max(most[m.Labels[labelBenchmark]], processes(m))
	}
	for i, m := range all {
		summary := m.Name == "peak_bandwidth" || m.Name == "minimum_latency"
		all[i].Headline = summary && processes(m) == most[m.Labels[labelBenchmark]]
	}
	return all
}

// reader reads the rows of a table.
type reader struct {
	set             *table.Metrics
	table           *result
	peak, fastest   report.Metric
	failed, missing []string
}

func (v *reader) read() {
	v.table.rows.Each(v.row)
	if v.table.rows.Full {
		v.missing = append(v.missing, "rows of "+v.table.benchmark)
	}
}

// row reads a row, which says instead of numbers why there are none if its sample was left out:
//
//	4 time-out.; Time limit (secs_per_sample * msg_sizes_list_len) is over; …
func (v *reader) row(words []string) {
	labels, at := v.labels(words)
	if len(words) != len(v.table.columns) {
		reason := "a row is incomplete"
		if at < len(words) && !strings.ContainsAny(words[at][:1], "0123456789") {
			reason = strings.Join(words[at:], " ")
		}
		v.missing = append(v.missing, strings.TrimSpace(v.table.benchmark+" "+labels[labelBytes])+": "+reason)
		return
	}
	for i, c := range v.table.columns {
		if c.Name == "" {
			continue
		}
		m, ok := c.Metric(words[i], labels)
		if !ok {
			v.missing = append(v.missing, fmt.Sprintf("%s: %s is %q", v.table.benchmark, c.Title, words[i]))
			continue
		}
		v.put(m, words)
	}
}

// labels returns the labels of a row, and the index of the first word that is no label.
func (v *reader) labels(words []string) (labels map[string]string, at int) {
	labels = map[string]string{labelBenchmark: v.table.benchmark, labelProcesses: v.table.processes}
	if v.table.groups > 1 {
		labels[labelGroups] = strconv.Itoa(v.table.groups)
	}
	if v.table.mode != "" {
		labels[labelMode] = v.table.mode
	}
	for at < min(len(words), len(v.table.columns)) {
		switch v.table.columns[at].Title {
		case titleBytes:
			labels[labelBytes] = words[at]
		case titleGroup:
			labels[labelGroup] = words[at]
		default:
			return labels, at
		}
		at++
	}
	return labels, at
}

func (v *reader) put(m report.Metric, words []string) {
	v.set.Put(m)
	switch m.Name {
	case "bandwidth":
		table.Best(&v.peak, m)
	case "time", "time_avg", "time_overlapped":
		if m.Labels[labelBytes] != "0" || v.moves() {
			table.Best(&v.fastest, m)
		}
	case "defects":
		if m.Value > 0 {
			v.failed = append(v.failed, v.table.benchmark+": defects in "+strings.Join(words, " "))
		}
	}
}

// moves reports whether the table is about messages, which are sent although they have 0 bytes: it has their bandwidth.
func (v *reader) moves() bool {
	return slices.ContainsFunc(v.table.columns, func(c table.Column) bool { return c.Name == "bandwidth" })
}

// summary adds the numbers of the whole table, of all groups.
func (v *reader) summary() {
	for _, m := range []report.Metric{v.peak, v.fastest} {
		if m.Name == "" {
			continue
		}
		if m.Name == "bandwidth" {
			m.Name = "peak_bandwidth"
		} else {
			m.Name = "minimum_latency"
		}
		m.Labels = maps.Clone(m.Labels)
		delete(m.Labels, labelBytes)
		delete(m.Labels, labelGroup)
		v.set.Put(m)
	}
}
