// Package extract finds samples in the output of a benchmark, by the patterns of its descriptor, and in the lines that client libraries
// emit. It does no I/O and reads no clock.
package extract

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/benchmark-ai/bai/descriptors/units"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/metrics-pusher/extract/prefilter"
)

// Patterns finds samples in lines of output. Several goroutines may use it.
type Patterns struct {
	patterns []pattern    // matched with lines
	members  []pattern    // matched with members of lines that are JSON objects
	blocks   []*blockRule // matched with several lines together
}

type pattern struct {
	name      string
	unit      string
	direction string // direction
	re        *regexp.Regexp
	filter    prefilter.Filter // of texts that may match
	value     int              // group whose text is the number; 0 is the whole match
	units     int              // group whose text is the unit; 0 is none
	step      int              // group whose text is the step; 0 is none
	time      int              // group whose text is the time; 0 is none
	labels    []int            // groups whose texts are labels, with the names of the groups
}

// Compile returns Patterns that find the samples of metrics. A metric without a pattern has none in lines.
//
// The number is the group called "value", else the first group without a name, else the first group that has none of the following names,
// else the whole match. The group "unit" is its unit, "step" the benchmark's own count, and "time" the time of measurement: seconds since
// 1970, a text as in RFC 3339, or a text without a zone, such as "2006-01-02 15:04:05.000" and "2006-01-02T15:04:05.000", which is taken as
// UTC. Every other named group is a label.
//
// With the parser "json" a pattern is matched with each member of a line that is a JSON object, written as "path=value". The path is made
// of the names on the way to the value, and the indices in arrays, joined by dots. Members "step", "time" and "timestamp" of the object
// itself are the step and time of all its samples.
//
// With the parser "blocks" a pattern is matched with several lines together, with line feeds between them: see Blocks.
func Compile(metrics []pod.Metric) (*Patterns, error) {
	p := &Patterns{}
	for _, m := range metrics {
		if m.Pattern == "" {
			continue
		}
		re, err := regexp.Compile(m.Pattern)
		if err != nil {
			return nil, fmt.Errorf("pattern of metric %q: %w", m.Name, err)
		}
		c := pattern{name: m.Name, unit: m.Unit, direction: m.Direction, re: re, filter: prefilter.New(m.Pattern)}
		c.groups()
		switch m.Parser {
		case "", ParserLines:
			p.patterns = append(p.patterns, c)
		case ParserJSON:
			p.members = append(p.members, c)
		case ParserBlocks:
			if err := p.add(m.Block, c); err != nil {
				return nil, fmt.Errorf("beginning of the blocks of metric %q: %w", m.Name, err)
			}
		default:
			return nil, fmt.Errorf("parser of metric %q: there is no %q", m.Name, m.Parser)
		}
	}
	return p, nil
}

// Parsers, which decide on the text that a pattern is matched with.
const (
	ParserLines  = "lines"  // each line by itself
	ParserJSON   = "json"   // each member of lines that are JSON objects
	ParserBlocks = "blocks" // several lines that belong together
)

// groups finds the group for each purpose.
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

// Append appends the samples in line to dst, and returns the matches that are no samples. Samples have a name, a value, a unit, and in Sub
// their position among those of the line: by metric, and from left to right. Only Text and Cut of line matter. A match that ends where the
// line is cut is no sample, because the number may go on behind the cut. A carriage return at the end of a line is not part of it.
func (p *Patterns) Append(dst []event.Sample, line Line) (samples []event.Sample, missed Misses) {
	line.trimCR()
	begin, text, cuts := len(dst), prefilter.Text{Original: line.Text}, line.cuts()
	for i := range p.patterns {
		pat := &p.patterns[i]
		if !pat.filter.MayMatch(&text) {
			continue
		}
		dst = pat.matches(dst, begin, line.Text, cuts, &missed)
	}
	if len(p.members) > 0 {
		dst = p.appendMembers(dst, begin, line, &missed)
	}
	return dst, missed
}

// matches appends the samples of every match in text; the samples of the line begin at index begin of dst. No match reaches to one of the
// offsets in cuts, where lines of the text are cut off, or across it.
func (p *pattern) matches(dst []event.Sample, begin int, text string, cuts []int, missed *Misses) []event.Sample {
	end := 0
	for _, at := range p.re.FindAllStringSubmatchIndex(text, -1) {
		if at[0] < end { // in the exponent of the number before
			continue
		}
		p.extendExponent(text, at)
		end = at[1]
		s, found := p.sample(text, at)
		if found != noText && touchesCut(at, cuts) {
			missed.Cut++
			continue
		}
		if missed.count(found) {
			s.Sub = len(dst) - begin
			dst = append(dst, s)
		}
	}
	return dst
}

// extendExponent adds the exponent that follows a number to the match, if the pattern ends with the number: many patterns do not match
// exponents, and 1 is not 1e-3.
func (p *pattern) extendExponent(text string, at []int) {
	from, to := at[2*p.value], at[2*p.value+1]
	if from < 0 || from == to || to != at[1] {
		return
	}
	n := exponent(text[to:])
	if last := text[to-1]; n == 0 || last != '.' && (last < '0' || last > '9') || strings.ContainsAny(text[from:to], "eE") {
		return
	}
	if _, ok := parseNumber(text[from:to]); ok {
		at[1], at[2*p.value+1] = to+n, to+n
	}
}

// exponent returns the length of the exponent at the beginning of text, 0 if there is none. An exponent without a sign ends a word: 12e4f
// is no number.
func exponent(text string) int {
	if text == "" || text[0] != 'e' && text[0] != 'E' {
		return 0
	}
	signed := len(text) > 1 && (text[1] == '-' || text[1] == '+')
	begin := 1
	if signed {
		begin = 2
	}
	rest := strings.TrimLeft(text[begin:], "0123456789")
	if len(rest) == len(text)-begin {
		return 0
	}
	if r, _ := utf8.DecodeRuneInString(rest); !signed && (r == '_' || unicode.IsLetter(r)) {
		return 0
	}
	return len(text) - len(rest)
}

// touchesCut reports whether a match reaches to an offset at which a line is cut.
func touchesCut(at, cuts []int) bool {
	return slices.ContainsFunc(cuts, func(cut int) bool { return at[0] < cut && cut <= at[1] })
}

// matchResult says whether a match is a sample, and if not, why.
type matchResult int

const (
	noText matchResult = iota // no text in place of the number
	noNumber
	labelTooLong // a label
	badTime      // a number with an invalid time
	validSample
)

// count counts a match, and reports whether it is a sample.
func (m *Misses) count(found matchResult) bool {
	switch found {
	case noNumber:
		m.Numbers++
	case labelTooLong:
		m.Labels++
	case badTime:
		m.Times++
	case noText, validSample:
	}
	return found >= badTime
}

// sample returns the sample of the match at at.
func (p *pattern) sample(line string, at []int) (s event.Sample, found matchResult) {
	from, to := at[2*p.value], at[2*p.value+1]
	if from < 0 || from == to { // the group took no part
		return s, noText
	}
	v, ok := parseNumber(line[from:to])
	if !ok {
		return s, noNumber
	}
	s.Name, s.Unit, s.Direction = p.name, p.unit, p.direction
	if p.units > 0 && at[2*p.units] >= 0 {
		v, s.Unit = units.Convert(v, line[at[2*p.units]:at[2*p.units+1]], p.unit)
	}
	s.Set(v)
	return s, p.applyGroups(&s, line, at)
}

// applyGroups sets the fields of a sample from the other groups. An invalid step or time is left out; with a label that is too long the
// match is no sample.
func (p *pattern) applyGroups(s *event.Sample, line string, at []int) matchResult {
	text := func(group int) string {
		if group == 0 || at[2*group] < 0 {
			return ""
		}
		return line[at[2*group]:at[2*group+1]]
	}
	if n, err := strconv.ParseInt(text(p.step), 10, 64); err == nil {
		s.Step = &n
	}
	found := validSample
	if at := text(p.time); at != "" {
		t, ok := parseTime(at)
		if s.Time = t; !ok {
			found = badTime
		}
	}
	if !p.label(s, text) {
		return labelTooLong
	}
	return found
}

// label sets the labels of a sample. It is false if one is too long.
func (p *pattern) label(s *event.Sample, text func(group int) string) bool {
	for _, group := range p.labels {
		v := text(group)
		if v == "" {
			continue
		}
		if len(v) > maxLabel {
			return false
		}
		if s.Labels == nil {
			s.Labels = make(map[string]string, len(p.labels))
		}
		s.Labels[p.re.SubexpNames()[group]] = strings.ToValidUTF8(v, "\uFFFD")
	}
	return true
}

// parseTime reads a time as ns since 1970.
func parseTime(text string) (int64, bool) {
	if text == "" {
		return 0, false
	}
	if t, err := parseJSONTime([]byte(text)); err == nil && t > 0 {
		return t, true
	}
	// Fractions are parsed without being named.
	for _, form := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006/01/02 15:04:05"} {
		if t, err := time.Parse(form, strings.Replace(text, ",", ".", 1)); err == nil {
			ns, err := inRange(t, []byte(text))
			return ns, err == nil
		}
	}
	return 0, false
}

// parseNumber reads a decimal number with an optional sign, fraction and exponent, NaN, or an infinity, as C writes them. A number beyond
// the range of float64 is infinite.
func parseNumber(text string) (v float64, ok bool) {
	text = strings.TrimSpace(text)
	if strings.ContainsAny(text, "_xXpP") { // of Go's own notation
		return 0, false
	}
	if len(text) == len("-nan") && (text[0] == '-' || text[0] == '+') && strings.EqualFold(text[1:], "nan") {
		return math.NaN(), true
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(v, 0) {
		return 0, false
	}
	return v, true
}
