// Package extract finds samples in what a benchmark writes: in its output, by
// the patterns of its descriptor, and in the lines that client libraries emit.
// It does no I/O and reads no clock.
package extract

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// Patterns finds samples in lines of output. It may be used by several
// goroutines.
type Patterns struct {
	patterns []pattern
}

type pattern struct {
	name    string
	unit    string
	re      *regexp.Regexp
	literal needle // in every line that matches; empty where there is none
	value   int    // group whose text is the number; 0 is the whole match
	units   int    // group whose text is the unit; 0 is none
}

// Compile returns Patterns that look for metrics. The number is the group
// called "value", else the first group that is not called "unit", else the
// whole match.
func Compile(metrics []pod.Metric) (*Patterns, error) {
	p := &Patterns{patterns: make([]pattern, 0, len(metrics))}
	for _, m := range metrics {
		re, err := regexp.Compile(m.Pattern)
		if err != nil {
			return nil, fmt.Errorf("pattern of metric %q: %w", m.Name, err)
		}
		value, units := groups(re)
		p.patterns = append(p.patterns, pattern{
			name: m.Name, unit: m.Unit, re: re, literal: newNeedle(required(m.Pattern)), value: value, units: units,
		})
	}
	return p, nil
}

// groups returns the groups of the number and of the unit.
func groups(re *regexp.Regexp) (value, units int) {
	units = max(re.SubexpIndex("unit"), 0)
	if value = re.SubexpIndex("value"); value > 0 {
		return value, units
	}
	for i := 1; i <= re.NumSubexp(); i++ {
		if i != units {
			return i, units
		}
	}
	return 0, units
}

// Append appends the samples in line to dst, and returns how many matches were
// of text that is no number. Samples have a name, a value, a unit, and in Sub
// their place among those of the line: by metric, and from left to right.
func (p *Patterns) Append(dst []event.Sample, line string) (samples []event.Sample, bad int) {
	begin, text := len(dst), folded{text: line}
	for i := range p.patterns {
		pat := &p.patterns[i]
		if !pat.literal.in(&text) {
			continue
		}
		for _, at := range pat.re.FindAllStringSubmatchIndex(line, -1) {
			s, found, ok := pat.sample(line, at)
			if !ok {
				if found {
					bad++
				}
				continue
			}
			s.Sub = len(dst) - begin
			dst = append(dst, s)
		}
	}
	return dst, bad
}

// sample returns the sample of the match at at, whether the match holds text
// where the number is to be, and whether that is a number.
func (p *pattern) sample(line string, at []int) (s event.Sample, found, ok bool) {
	from, to := at[2*p.value], at[2*p.value+1]
	if from < 0 || from == to { // the group took no part
		return s, false, false
	}
	v, ok := Number(line[from:to])
	if !ok {
		return s, true, false
	}
	s.Name, s.Unit = p.name, p.unit
	if p.units > 0 && at[2*p.units] >= 0 {
		v, s.Unit = Convert(v, line[at[2*p.units]:at[2*p.units+1]], p.unit)
	}
	s.Set(v)
	return s, true, true
}

// Number reads a decimal number with sign, fraction and exponent as it likes,
// NaN, or an infinity. What is beyond the range of float64 is infinite.
func Number(text string) (v float64, ok bool) {
	text = strings.TrimSpace(text)
	if strings.ContainsAny(text, "_xXpP") { // of Go's own notation
		return 0, false
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(v, 0) {
		return 0, false
	}
	return v, true
}
