package gobench

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/benchmark-ai/bai/services/parsers/report"
)

// result is a line of a benchmark.
type result struct {
	name, procs string
	values      []value
}

// value is one value of a line, in a tidied unit.
type value struct {
	unit   string
	number float64
}

// isName reports whether a line begins with the name of a benchmark: a lower-case letter after Benchmark makes it another word.
func isName(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("Benchmark"))
	if !ok {
		return false
	}
	r, _ := utf8.DecodeRune(rest)
	return len(rest) > 0 && !unicode.IsLower(r) && !unicode.IsSpace(r)
}

// readResult reads a line such as
//
//	BenchmarkCopy/size=64-2   200   24.59 ns/op   2603.21 MB/s
//
// Broken is the first value that is no finite number; it is left out.
func readResult(line []byte) (r result, broken string, ok bool) {
	if !isName(line) {
		return result{}, "", false
	}
	full, rest := field(string(line))
	count, rest := field(rest)
	if _, err := strconv.ParseUint(count, 10, 64); err != nil || rest == "" {
		return result{}, "", false
	}
	r = result{values: make([]value, 0, 4)}
	for rest != "" {
		var text, unit string
		text, rest = field(rest)
		unit, rest = field(rest)
		tidied, exponent := tidy(unit)
		v, ok := scaled(text, exponent)
		switch {
		case ok && unit != "":
			r.set(tidied, v)
		case unit == "" || !isFloat(text):
			return result{}, "", false
		default:
			broken = cmp.Or(broken, text+" "+unit+" of "+full)
		}
	}
	r.name, r.procs = split(full)
	return r, broken, true
}

// field parts the first word of a line from the others. What is left begins with a word.
func field(line string) (word, rest string) {
	i := 0
	for i < len(line) && line[i] != ' ' && line[i] != '\t' {
		i++
	}
	j := i
	for j < len(line) && (line[j] == ' ' || line[j] == '\t') {
		j++
	}
	return line[:i], line[j:]
}

// isFloat reports whether a text is a number that Go prints, a finite one or not.
func isFloat(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}

// set sets a value. The first of two in one unit counts.
func (r *result) set(unit string, v float64) {
	if !slices.ContainsFunc(r.values, func(o value) bool { return o.unit == unit }) {
		r.values = append(r.values, value{unit, v})
	}
}

// split parts the name of a benchmark from the number of processors.
func split(full string) (name, procs string) {
	name = strings.TrimPrefix(full, "Benchmark")
	if i := strings.LastIndexByte(name, '-'); i > 0 {
		if n, err := strconv.ParseUint(name[i+1:], 10, 31); err == nil && n > 0 {
			return name[:i], name[i+1:]
		}
	}
	return name, "1"
}

// tidy returns a unit in which ns is sec and MB is B, and the power of ten of it. What is behind a slash is left as it is.
func tidy(unit string) (tidied string, exponent int) {
	switch unit {
	case "ns/op":
		return "sec/op", -9
	case "MB/s":
		return "B/s", 6
	case "B/op", "allocs/op":
		return unit, 0
	}
	over, under, slash := strings.Cut(unit, "/")
	words := strings.Split(over, "-")
	for i, w := range words {
		switch w {
		case "ns":
			words[i], exponent = "sec", exponent-9
		case "MB":
			words[i], exponent = "B", exponent+6
		}
	}
	if tidied = strings.Join(words, "-"); slash {
		tidied += "/" + under
	}
	return tidied, exponent
}

// scaled returns a number times a power of ten, exactly.
func scaled(text string, exponent int) (float64, bool) {
	if exponent == 0 {
		return report.Number(text)
	}
	mantissa, power, has := strings.Cut(strings.ToLower(text), "e")
	p, err := strconv.Atoi(power)
	if has && err != nil {
		return 0, false
	}
	return report.Number(mantissa + "e" + strconv.Itoa(p+exponent))
}

// units gives metrics names after their units.
type units struct {
	names map[string]string // by unit
	taken map[string]bool
}

// of returns the name, the unit and the direction of a metric.
func (u *units) of(unit string) (name, base string, d report.Direction) {
	switch unit {
	case "sec/op":
		return "sec_per_op", report.Seconds, report.Lower
	case "B/op":
		return "bytes_per_op", report.Bytes, report.Lower
	case "allocs/op":
		return "allocs_per_op", report.Count, report.Lower
	case "B/s":
		return "bytes_per_sec", report.BytesPerSecond, report.Higher
	}
	if u.names == nil {
		u.names = make(map[string]string)
		u.taken = map[string]bool{"sec_per_op": true, "bytes_per_op": true, "allocs_per_op": true, "bytes_per_sec": true}
	}
	if _, ok := u.names[unit]; !ok {
		plain := snake(unit)
		free := plain
		for i := 2; u.taken[free]; i++ {
			free = plain + "_" + strconv.Itoa(i)
		}
		u.names[unit], u.taken[free] = free, true
	}
	if words := strings.Split(strings.SplitN(unit, "/", 2)[0], "-"); slices.Contains(words, "sec") {
		return u.names[unit], report.Seconds, ""
	}
	return u.names[unit], unit, ""
}

// snake makes a name of a unit.
func snake(unit string) string {
	unit = strings.NewReplacer("/", "_per_", "%", "percent").Replace(strings.ToLower(unit))
	words := strings.FieldsFunc(unit, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if len(words) == 0 {
		return "value"
	}
	return strings.Join(words, "_")
}

// key tells the values of a metric apart from those of others.
type key struct{ pkg, name, procs, unit string }

// metrics returns the median of each value of the runs, in the order of the text.
func (p *parser) metrics(runs []*invocation) (metrics []report.Metric) {
	var order []key
	values := make(map[key][]float64)
	packages := make(map[string]bool)
	for _, run := range runs {
		for _, r := range run.results {
			for _, v := range r.values {
				k := key{run.pkg, r.name, r.procs, v.unit}
				if values[k] == nil {
					order = append(order, k)
				}
				values[k] = append(values[k], v.number)
				packages[run.pkg] = true
			}
		}
	}
	for _, k := range order {
		name, unit, d := p.units.of(k.unit)
		labels := map[string]string{labelBenchmark: k.name, labelProcs: k.procs}
		if len(packages) > 1 {
			labels[labelPackage] = k.pkg
		}
		metrics = append(metrics, report.Metric{Name: name, Value: median(values[k]), Unit: unit, Direction: d, Labels: labels})
	}
	return metrics
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
