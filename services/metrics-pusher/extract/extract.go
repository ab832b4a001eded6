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
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// Patterns finds samples in lines of output. It may be used by several
// goroutines.
type Patterns struct {
	patterns []pattern // held against lines
	members  []pattern // held against members of lines that are JSON objects
}

type pattern struct {
	name    string
	unit    string
	re      *regexp.Regexp
	literal needle // in every line that matches; empty where there is none
	value   int    // group whose text is the number; 0 is the whole match
	units   int    // group whose text is the unit; 0 is none
	step    int    // group whose text is the step; 0 is none
	time    int    // group whose text is the time; 0 is none
	labels  []int  // groups whose texts are labels, named as they are
}

// Compile returns Patterns that look for metrics.
//
// The number is the group called "value", else the first group without a name,
// else the first that has none of the names that follow, else the whole match.
// The group "unit" is its unit, "step" the benchmark's own count, and "time" when
// it was measured: seconds since 1970, a text as of RFC 3339, or one as
// "2006-01-02 15:04:05.000", in UTC. Every other group with a name is a label.
//
// With the parser "json" a pattern is held against each member of a line that is
// a JSON object, written as "path=value" with the names on the way to the value,
// and the numbers of places in arrays, joined by dots. Members "step", "time" and
// "timestamp" of the object itself are the step and time of all that is found.
func Compile(metrics []pod.Metric) (*Patterns, error) {
	p := &Patterns{}
	for _, m := range metrics {
		re, err := regexp.Compile(m.Pattern)
		if err != nil {
			return nil, fmt.Errorf("pattern of metric %q: %w", m.Name, err)
		}
		c := pattern{name: m.Name, unit: m.Unit, re: re, literal: newNeedle(required(m.Pattern))}
		c.groups()
		switch m.Parser {
		case "", ParserLines:
			p.patterns = append(p.patterns, c)
		case ParserJSON:
			p.members = append(p.members, c)
		default:
			return nil, fmt.Errorf("parser of metric %q: there is no %q", m.Name, m.Parser)
		}
	}
	return p, nil
}

// Parsers: what patterns are held against.
const (
	ParserLines = "lines" // each line by itself
	ParserJSON  = "json"  // each member of lines that are JSON objects
)

// groups finds out what the groups are for.
func (p *pattern) groups() {
	unnamed, other := 0, 0
	for i, name := range p.re.SubexpNames()[1:] {
		i++
		switch name {
		case "unit":
			p.units = i
		case "step":
			p.step = i
		case "time":
			p.time = i
		case "value":
			p.value = i
		case "":
			if unnamed == 0 {
				unnamed = i
			}
		default:
			if p.labels = append(p.labels, i); other == 0 {
				other = i
			}
		}
	}
	if p.value == 0 {
		p.value = unnamed
	}
	if p.value == 0 && other > 0 {
		p.value, p.labels = other, p.labels[1:]
	}
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
	if len(p.members) == 0 {
		return dst, bad
	}
	dst, more := p.appendMembers(dst, begin, line)
	return dst, bad + more
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
	p.about(&s, line, at)
	return s, true, true
}

// about gives a sample what other groups say. What they say wrongly is left out.
func (p *pattern) about(s *event.Sample, line string, at []int) {
	text := func(group int) string {
		if group == 0 || at[2*group] < 0 {
			return ""
		}
		return line[at[2*group]:at[2*group+1]]
	}
	if n, err := strconv.ParseInt(text(p.step), 10, 64); err == nil {
		s.Step = &n
	}
	if t, ok := moment(text(p.time)); ok {
		s.Time = t
	}
	for _, group := range p.labels {
		if v := text(group); v != "" {
			if s.Labels == nil {
				s.Labels = make(map[string]string, len(p.labels))
			}
			s.Labels[p.re.SubexpNames()[group]] = strings.ToValidUTF8(v[:min(len(v), maxLabel)], "")
		}
	}
}

// moment reads a time as ns since 1970.
func moment(text string) (int64, bool) {
	if text == "" {
		return 0, false
	}
	if t, err := instant([]byte(text)); err == nil && t > 0 {
		return t, true
	}
	for _, form := range []string{time.RFC3339Nano, "2006-01-02 15:04:05", "2006/01/02 15:04:05"} { // fractions are read where none are named
		if t, err := time.Parse(form, strings.Replace(text, ",", ".", 1)); err == nil {
			ns, err := inRange(t, []byte(text))
			return ns, err == nil
		}
	}
	return 0, false
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
