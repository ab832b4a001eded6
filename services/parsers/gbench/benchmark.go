package gbench

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/parsers/internal/document"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

// field is one of an entry, with its value as it is in the document.
type field struct{ name, raw string }

// entry is a repetition, or an aggregate of several. Its fields are not fixed: counters are among them.
type entry []field

// UnmarshalJSON keeps the fields of an object; it is given JSON that is valid, and never fails. A map would take most of the time of a
// document.
func (e *entry) UnmarshalJSON(text []byte) error {
	*e = nil
	rest := strings.TrimSpace(string(text))
	if !strings.HasPrefix(rest, "{") {
		return nil
	}
	*e = make(entry, 0, 20)
	for rest = next(rest[1:]); rest != "" && rest[0] == '"'; rest = next(rest) {
		n := lengthOf(rest)
		name := unquoted(rest[:n])
		rest = next(rest[n:])
		n = lengthOf(rest)
		*e, rest = append(*e, field{name, rest[:n]}), rest[n:]
	}
	return nil
}

// next skips what is between a name and a value, and between fields.
func next(rest string) string {
	i := 0
	for i < len(rest) && (rest[i] <= ' ' || rest[i] == ':' || rest[i] == ',') {
		i++
	}
	return rest[i:]
}

// lengthOf returns the length of the JSON value at the beginning of a text.
func lengthOf(text string) int {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			if quoted = !quoted; !quoted && depth == 0 {
				return i + 1
			}
		case quoted:
		case c == '{' || c == '[':
			depth++
		case depth == 0 && (c <= ' ' || c == ',' || c == '}' || c == ']'):
			return i
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(text)
}

// unquoted returns the text of a JSON string, or nothing.
func unquoted(raw string) string {
	if len(raw) >= 2 && raw[0] == '"' && !strings.Contains(raw, `\`) {
		return strings.ToValidUTF8(raw[1:len(raw)-1], "\uFFFD")
	}
	s := ""
	if json.Unmarshal([]byte(raw), &s) != nil {
		return ""
	}
	return s
}

// raw returns the value of a field, or nothing. The last of several of one name counts.
func (e entry) raw(name string) string {
	for _, f := range slices.Backward(e) {
		if f.name == name {
			return f.raw
		}
	}
	return ""
}

// text returns a field that is a text, or nothing.
func (e entry) text(name string) string { return unquoted(e.raw(name)) }

// number returns a field that is a number, or nothing.
func (e entry) number(name string) document.Number {
	if raw := e.raw(name); isNumber(raw) {
		return document.Number(raw)
	}
	return ""
}

func isNumber(raw string) bool { return raw != "" && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9') }

// isTrue reports whether a field is set.
func (e entry) isTrue(field string) bool { return e.raw(field) == "true" }

// benchmark is what a document has about one.
type benchmark struct {
	name        string
	repetitions []entry
	aggregates  map[string]entry // by their names
	failure     string
	skipped     bool
}

// aggregates are the names of those that this parser reads, with the ends of names that they have where there is no run_type.
func aggregates() []string { return []string{"median", "mean", "stddev", "cv", "BigO", "RMS"} }

// benchmarksOf returns the benchmarks of a document in its order.
func benchmarksOf(entries []entry) (all []*benchmark) {
	known := make(map[string]*benchmark)
	for _, e := range entries {
		name, aggregate := e.run()
		b := known[name]
		if b == nil {
			b = &benchmark{name: name, aggregates: make(map[string]entry)}
			known[name], all = b, append(all, b)
		}
		switch {
		case e.isTrue("error_occurred"):
			b.failure = report.Clip("error " + e.text("error_message"))
		case e.isTrue("skipped"):
			b.skipped = true
		case aggregate != "":
			b.aggregates[aggregate] = e
		default:
			b.repetitions = append(b.repetitions, e)
		}
	}
	return all
}

// run returns the name of the benchmark, and that of the aggregate if it is one.
func (e entry) run() (name, aggregate string) {
	name = e.text("name")
	switch e.text("run_type") {
	case "aggregate":
		aggregate = e.text("aggregate_name")
	case "":
		for _, a := range aggregates() {
			if run, ok := strings.CutSuffix(name, "_"+a); ok {
				return run, a
			}
		}
	}
	if run := e.text("run_name"); run != "" {
		return run, aggregate
	}
	return strings.TrimSuffix(name, "_"+aggregate), aggregate
}

// writer collects metrics.
type writer struct {
	defined []report.Definition // the metrics of the tool
	metrics []report.Metric
	missing string // the first that is
}

func (w *writer) miss(what string) {
	if w.missing == "" {
		w.missing = report.Clip(what)
	}
}

// benchmark adds the metrics of a benchmark.
func (w *writer) benchmark(b *benchmark) {
	labels := map[string]string{labelBenchmark: b.name}
	sample := b.sample()
	for _, d := range w.defined {
		of, field := sample, d.Name
		if aggregate, is := strings.CutSuffix(d.Name, "_stddev"); is {
			of, field = b.only("stddev"), aggregate
		}
		with := labels
		switch field {
		case "real_coefficient", "cpu_coefficient":
			if of = b.only("BigO"); len(of) > 0 {
				with = map[string]string{labelBenchmark: b.name, labelBigO: of[0].text("big_o")}
			}
		case "rms":
			of = b.only("RMS")
		case "*":
			continue
		}
		w.value(d, field, of, with)
	}
	names := counters(sample)
	for _, counter := range names {
		name := counter
		if slices.ContainsFunc(w.defined, func(d report.Definition) bool { return d.Name == counter }) {
			name += "_counter"
		}
		if name != counter && slices.Contains(names, name) {
			w.miss("two counters are called " + name)
			continue
		}
		w.value(report.Definition{Name: name, Unit: report.Count}, counter, sample, labels)
	}
}

// sample returns the entries whose median counts.
func (b *benchmark) sample() []entry {
	switch {
	case b.aggregates["median"] != nil:
		return b.only("median")
	case len(b.repetitions) > 0:
		return b.repetitions
	}
	return b.only("mean")
}

// only returns an aggregate, if there is one.
func (b *benchmark) only(aggregate string) []entry {
	if e := b.aggregates[aggregate]; e != nil {
		return []entry{e}
	}
	return nil
}

// value adds the median of a field of entries that have it.
func (w *writer) value(d report.Definition, field string, of []entry, labels map[string]string) {
	var values []float64
	for _, e := range of {
		if e.raw(field) == "" {
			continue
		}
		exponent := 0
		if d.Unit == report.Seconds {
			unit, known := exponentOf(e.text("time_unit"))
			if !known {
				w.miss("no unit of time: " + e.text("time_unit"))
				return
			}
			exponent = unit
		}
		v, ok := e.number(field).Times(exponent)
		if !ok {
			w.miss("no number: " + field + " of " + labels[labelBenchmark])
			return
		}
		values = append(values, v)
	}
	if len(values) > 0 {
		w.metrics = append(w.metrics,
			report.Metric{Name: d.Name, Value: median(values), Unit: d.Unit, Direction: d.Direction, Labels: labels})
	}
}

// exponentOf returns the power of ten of a unit of time.
func exponentOf(unit string) (exponent int, known bool) {
	switch unit {
	case "ns":
		return -9, true
	case "us":
		return -6, true
	case "ms":
		return -3, true
	case "s":
		return 0, true
	}
	return 0, false
}

// isField reports whether a field is one of the tool. All others are counters.
func isField(name string) bool {
	switch name {
	case "name", "run_name", "run_type", "family_index", "per_family_instance_index", "repetitions", "repetition_index", "threads",
		"iterations", "real_time", "cpu_time", "time_unit", "items_per_second", "bytes_per_second", "label", "aggregate_name",
		"aggregate_unit", "error_occurred", "error_message", "skipped", "skip_message", "cpu_coefficient", "real_coefficient", "big_o",
		"rms", "allocs_per_iter", "max_bytes_used", "total_allocated_bytes", "net_heap_growth", "":
		return true
	}
	return false
}

// counters returns the names of the counters of entries, in their order.
func counters(of []entry) []string {
	names := make(map[string]bool)
	for _, e := range of {
		for _, f := range e {
			if (isNumber(f.raw) || f.raw == "null") && !isField(f.name) {
				names[f.name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// median returns the middle one of values, or the mean of the two in the middle.
func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	if n%2 == 1 {
		return values[n/2]
	}
	low, high := values[n/2-1], values[n/2]
	if mean := (low + high) / 2; !math.IsInf(mean, 0) {
		return mean
	}
	return low/2 + high/2
}
