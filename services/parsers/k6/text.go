package k6

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/parsers/report"
)

// textReader reads what k6 prints.
type textReader struct {
	current  summary
	complete *summary // the last test whose summary was complete
	parent   string   // of a metric that was narrowed down, whose name is not repeated
	part     string   // the part of a summary of 1.x: THRESHOLDS, TOTAL RESULTS, GROUP, SCENARIO
	failure  string   // the last error
	aborted  string
}

// uncolored returns a line without the escape sequences of a terminal: ESC [ 36 m.
func uncolored(line []byte) []byte {
	var plain []byte
	for {
		before, after, found := bytes.Cut(line, []byte("\x1b["))
		plain = append(plain, before...)
		if !found {
			return plain
		}
		line = bytes.TrimPrefix(bytes.TrimLeft(after, "0123456789;"), []byte("m"))
	}
}

func (t *textReader) line(line []byte) {
	if len(line) == 0 || line[len(line)-1] != '\n' { // a line without an end may lack a part of its last number
		return
	}
	if bytes.IndexByte(line, '\x1b') >= 0 {
		line = uncolored(line)
	}
	if isJSON(line) {
		return
	}
	switch {
	case bytes.Contains(line, []byte(".: ")):
		t.metric(string(line))
	case bytes.Contains(line, []byte("█ ")):
		t.begin(string(line))
	case strings.HasPrefix(t.part, "THRESHOLDS") && bytes.Contains(line, []byte(" '")):
		t.threshold(string(bytes.TrimSpace(line)))
	case bytes.Contains(line, []byte("  execution: local")), bytes.Contains(line, []byte("  execution: cloud")):
		t.keep()
		*t = textReader{complete: t.complete}
	case bytes.Contains(line, []byte("level=error")), bytes.HasPrefix(line, []byte("ERRO[")):
		t.error(string(line))
	}
}

// isJSON reports whether a line begins as those of a document do, which are many.
func isJSON(line []byte) bool {
	for _, c := range line {
		if c != ' ' && c != '\t' {
			return c == '"' || c == '}'
		}
	}
	return false
}

// begin begins a part of a summary.
func (t *textReader) begin(line string) {
	_, t.part, _ = strings.Cut(strings.TrimSpace(line), "█ ")
	if len(t.current.values) > 0 && (strings.HasPrefix(t.part, "THRESHOLDS") || strings.HasPrefix(t.part, "TOTAL RESULTS")) {
		t.next()
	}
}

// next begins the summary of another test.
func (t *textReader) next() {
	t.keep()
	t.current = summary{}
}

// threshold reads a line of 1.x: ✗ 'p(95)<500' p(95)=612ms.
func (t *textReader) threshold(line string) {
	crossed := strings.HasPrefix(line, "✗ '")
	if !crossed && !strings.HasPrefix(line, "✓ '") {
		return
	}
	t.current.thresholds++
	if crossed {
		t.current.crossed++
	}
}

// error notes an error. Thresholds that were crossed are a result.
func (t *textReader) error(line string) {
	if strings.Contains(line, "thresholds on metrics") {
		return
	}
	if _, msg, ok := strings.Cut(line, "msg="); ok {
		if quoted, err := strconv.QuotedPrefix(msg); err == nil {
			msg, _ = strconv.Unquote(quoted)
		}
		line = msg
	} else if _, msg, ok := strings.Cut(line, "] "); ok {
		line = msg
	}
	t.failure = report.Clip(line)
	if strings.Contains(line, "test run was aborted") || strings.Contains(line, "stopping test prematurely") {
		t.aborted = t.failure
	}
}

// keep keeps a summary that is complete.
func (t *textReader) keep() {
	if len(t.current.values) > 0 && t.current.lacks() == "" {
		s := t.current
		t.complete = &s
	}
}

// best returns the last summary that is complete, or else what the last one has.
func (t *textReader) best() summary {
	t.keep()
	if t.complete != nil {
		s := *t.complete
		if t.current.lacks() != "" {
			s.missing = "the last test has no complete summary, the one before counts"
		}
		return s
	}
	if len(t.current.values) > 0 {
		t.current.missing = t.current.lacks()
		t.current.unsure = t.current.missing != ""
	}
	return t.current
}

// lacks names what every summary has, and this one does not. They are among its last lines.
func (s *summary) lacks() string {
	for _, want := range []string{"iterations", "data_sent"} {
		if !s.has(value{name: want}) {
			return "the summary has no " + want
		}
	}
	return ""
}

// metric reads a line of a metric: its name, dots, and its numbers. Before 1.0 a metric with thresholds had a mark, and so have checks.
func (t *textReader) metric(line string) {
	if strings.HasPrefix(t.part, "GROUP") || strings.HasPrefix(t.part, "SCENARIO") {
		return
	}
	head, rest, _ := strings.Cut(line, ".: ")
	head = strings.TrimRight(strings.TrimSpace(head), ".")
	unmarked, crossed := strings.CutPrefix(head, "✗ ")
	unmarked, kept := strings.CutPrefix(unmarked, "✓ ")
	v := value{name: unmarked}
	if inner, ok := strings.CutPrefix(unmarked, "{ "); ok {
		v.name, v.tags = t.parent, strings.TrimSuffix(inner, " }")
	}
	if v.name == "" || strings.ContainsAny(v.name, " \t\"'[]=") || !v.read(strings.Fields(rest)) {
		return
	}
	if v.tags == "" {
		t.parent = v.name
	}
	if t.current.has(v) {
		t.next()
	}
	if crossed || kept {
		t.current.thresholds++
	}
	if crossed {
		t.current.crossed++
	}
	t.current.set(v)
}

func (s *summary) has(v value) bool {
	return slices.ContainsFunc(s.values, func(w value) bool { return w.name == v.name && w.tags == v.tags })
}

// set adds a metric. The checks of 1.x are three, and one in JSON.
func (s *summary) set(v value) {
	switch v.name {
	case "checks_succeeded":
		v.name = "checks"
	case "checks_failed":
		return
	}
	s.values = append(s.values, v)
}

// read reads the numbers of a metric; it is false if the words are none.
func (v *value) read(words []string) bool {
	if len(words) == 0 {
		return false
	}
	if strings.HasPrefix(words[0], "avg=") || strings.Contains(words[0], "=") {
		v.kind = trend
		return v.stats(words)
	}
	if percent, ok := strings.CutSuffix(words[0], "%"); ok {
		v.kind = rate
		return v.rate(percent, words[1:])
	}
	n, contains, used := quantity(words)
	if used == 0 {
		return false
	}
	v.contains = contains
	rest := words[used:]
	if len(rest) > 0 && strings.HasPrefix(rest[0], "min=") {
		v.kind = gauge
		v.set("value", n)
		return v.stats(rest)
	}
	v.kind = counter
	v.set("count", n)
	if len(rest) == 0 || !strings.HasSuffix(rest[len(rest)-1], "/s") {
		return false
	}
	rest[len(rest)-1] = strings.TrimSuffix(rest[len(rest)-1], "/s")
	perSecond, _, used := quantity(rest)
	v.set("rate", perSecond)
	return used == len(rest)
}

// stats reads avg=1.2ms, min=3 kB and the like.
func (v *value) stats(words []string) bool {
	for len(words) > 0 {
		key, first, ok := strings.Cut(words[0], "=")
		if !ok {
			return false
		}
		n, contains, used := quantity(append([]string{first}, words[1:min(2, len(words))]...))
		if used == 0 {
			return false
		}
		if contains != anyValues {
			v.contains = contains
		}
		v.set(strings.ToValidUTF8(key, "\uFFFD"), n)
		words = words[used:]
	}
	return true
}

// rate reads what follows a part in percent: ✓ 10 ✗ 5 before 1.0, and then 10 out of 15.
func (v *value) rate(percent string, words []string) bool {
	part, ok := report.Number(percent)
	if !ok {
		return false
	}
	v.set("rate", part/100)
	if len(words) != 4 {
		return false
	}
	first, second := words[1], words[3] // before 1.0
	outOf := words[1] == "out"
	if outOf {
		first = words[0]
	}
	passes, ok := report.Number(first)
	other, ok2 := report.Number(second)
	if outOf {
		other -= passes
	}
	v.set("passes", passes)
	v.set("fails", other)
	if all := passes + other; ok && ok2 && all > 0 {
		v.set("rate", passes/all) // which is not rounded
	}
	return ok && ok2
}

// quantity reads a number at the beginning of words: a time, in milliseconds; bytes, whose unit is a word of its own; or neither.
func quantity(words []string) (n float64, contains string, used int) {
	if len(words) == 0 {
		return 0, "", 0
	}
	if n, ok := report.Number(words[0]); ok {
		if len(words) > 1 {
			if times := bytesIn(words[1]); times > 0 {
				return n * times, dataValues, 2
			}
		}
		return n, anyValues, 1
	}
	d, err := time.ParseDuration(words[0])
	if err != nil {
		return 0, "", 0
	}
	return float64(d) / float64(time.Millisecond), timeValues, 1
}

// bytesIn returns the bytes of a unit, or 0. Here k is 1000, M its square.
func bytesIn(unit string) float64 {
	times := 1.0
	for _, u := range []string{"B", "kB", "MB", "GB", "TB", "PB", "EB"} {
		if u == unit {
			return times
		}
		times *= 1000
	}
	return 0
}
