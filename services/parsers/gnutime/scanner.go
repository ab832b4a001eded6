package gnutime

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/parsers/report"
)

// Scanner finds the output of time between other lines. Parsers of tools that are run under time use it. Its zero value is ready for use.
type Scanner struct {
	now  block
	last block // the last complete one
}

// Result is what time has said.
type Result struct {
	Metrics []report.Metric // none if there is no output of time
	Missing string          // what the output lacks, or empty
	Failure string          // what time says of a command that failed, or empty
}

// form is one of the formats of time.
type form int

const (
	none  form = iota
	short      // real, user, sys
	long       // -v
	plain      // the default one of GNU time
)

// block is one output of time. Its failure is printed before it.
type block struct {
	form    form
	values  [fields]float64
	have    [fields]bool
	ended   bool   // its last line was read
	bad     string // its first line that cannot be read
	failure string
}

// See reads a line.
func (s *Scanner) See(line []byte) { s.see(line) }

// see reads a line, and reports whether it is one of time.
func (s *Scanner) see(line []byte) bool {
	if len(line) < 5 {
		return false
	}
	switch c := line[0]; {
	case c == '\t':
		return s.long(line[1:])
	case c == 'r' || c == 'u' || c == 's':
		return s.short(line)
	case c == 'C':
		return s.failed(line)
	case c >= '0' && c <= '9':
		return s.plain(line)
	case c == '/' || bytes.HasPrefix(line, []byte("time: ")):
		return s.cannotRun(line)
	}
	return false
}

// begin begins an output. A failure that was read since the last one belongs to it.
func (s *Scanner) begin(f form) {
	failure := ""
	if s.now.form == none {
		failure = s.now.failure
	}
	s.keep()
	s.now = block{form: f, failure: failure}
}

// keep keeps the output read if it is complete.
func (s *Scanner) keep() {
	if s.now.form != none && s.now.missing() == "" {
		s.last = s.now
	}
}

// failed reads the line that GNU time prints before its output where a command failed.
func (s *Scanner) failed(line []byte) bool {
	if !bytes.HasPrefix(line, []byte("Command terminated by signal ")) && !bytes.HasPrefix(line, []byte("Command stopped by signal ")) &&
		!bytes.HasPrefix(line, []byte("Command exited with non-zero status ")) {
		return false
	}
	s.fail(line)
	return true
}

// cannotRun reads the line about a command that is not there: with -p it is the only one that tells of a failure.
func (s *Scanner) cannotRun(line []byte) bool {
	i := bytes.Index(line, []byte("time: cannot run "))
	if i < 0 || bytes.IndexByte(line[:i], ' ') >= 0 {
		return false
	}
	s.fail(line[i:])
	return true
}

// fail notes a failure. If two lines tell of it, the first one, which says why, counts.
func (s *Scanner) fail(line []byte) {
	if s.now.form != none {
		s.keep()
		s.now = block{}
	}
	if s.now.failure == "" {
		s.now.failure = report.Clip(string(line))
	}
}

// short reads a line of -p or of the time of a shell.
func (s *Scanner) short(line []byte) bool {
	for i, word := range [...]string{wall: "real", user: "user", system: "sys"} {
		rest, ok := bytes.CutPrefix(line, []byte(word))
		if !ok || len(rest) == 0 || rest[0] != ' ' && rest[0] != '\t' {
			continue
		}
		v, ok := seconds(string(bytes.TrimSpace(rest)))
		if !ok || i != wall && (s.now.form != short || s.now.have[i]) {
			return false
		}
		if i == wall {
			s.begin(short)
		}
		s.now.set(i, v)
		s.now.ended = i == system
		return true
	}
	return false
}

// long reads a line of -v, without its tab.
func (s *Scanner) long(line []byte) bool {
	if bytes.HasPrefix(line, []byte("Command being timed: ")) {
		s.begin(long)
		return true
	}
	if s.now.form != long {
		return false
	}
	for i, f := range table() {
		if rest, ok := bytes.CutPrefix(line, []byte(f.label)); ok && f.label != "" {
			s.now.read(i, f, string(bytes.TrimSpace(rest)))
			s.now.ended = i == exitStatus
			return true
		}
	}
	return unread(line)
}

// unread reports whether a line of -v is one that is no metric.
func unread(line []byte) bool {
	for _, label := range [...]string{"Average ", "Socket messages ", "Signals delivered: ", "Page size (bytes): "} {
		if bytes.HasPrefix(line, []byte(label)) {
			return true
		}
	}
	return false
}

// plain reads one of the two lines of the default format:
// "0.00user 0.01system 0:00.10elapsed 9%CPU (0avgtext+0avgdata 1628maxresident)k", "0inputs+0outputs (0major+100minor)pagefaults 0swaps".
func (s *Scanner) plain(line []byte) bool {
	first := bytes.Contains(line, []byte("elapsed "))
	if !first && (s.now.form != plain || !bytes.HasSuffix(line, []byte("swaps"))) {
		return false
	}
	before := s.now
	if first {
		s.begin(plain)
	}
	for _, word := range strings.FieldsFunc(string(line), func(r rune) bool { return strings.ContainsRune(" +()", r) }) {
		s.now.word(word)
	}
	if first && !s.now.timed() {
		s.now = before
		return false
	}
	s.now.ended = !first
	return true
}

// word reads a number with its name behind it.
func (b *block) word(word string) {
	for i, f := range table() {
		if value, ok := strings.CutSuffix(word, f.suffix); ok && f.suffix != "" {
			b.read(i, f, value)
			return
		}
	}
}

// read reads the value of a field. GNU time prints a question mark for the share of a time of 0.
func (b *block) read(i int, f field, text string) {
	if i == cpu && strings.TrimSuffix(text, "%") == "?" {
		return
	}
	if v, ok := f.parse(text); ok {
		b.set(i, v)
	} else if b.bad == "" {
		b.bad = fmt.Sprintf("cannot read %q of time", report.Clip(f.name+" "+text))
	}
}

func (b *block) set(i int, v float64) { b.values[i], b.have[i] = v, true }

func (b *block) timed() bool { return b.have[wall] && b.have[user] && b.have[system] }

// missing says what an output lacks.
func (b *block) missing() string {
	switch {
	case b.bad != "":
		return b.bad
	case !b.timed() || !b.ended:
		return "the output of time is cut off"
	}
	return ""
}

// Result returns what the last complete output says. Call it after the last line.
func (s *Scanner) Result() Result {
	now := s.now
	if now.form == none && now.failure == "" {
		now = s.last
	}
	if now.failure == "" && now.have[exitStatus] && now.values[exitStatus] != 0 {
		now.failure = fmt.Sprintf("Exit status: %.0f", now.values[exitStatus])
	}
	switch {
	case now.form == none && now.failure == "":
		return Result{}
	case now.failure != "":
		return Result{Metrics: now.metrics(), Failure: now.failure}
	case now.missing() != "" && s.last.form != none:
		return Result{Metrics: s.last.metrics(), Missing: now.missing() + "; the values are those of the one before"}
	}
	return Result{Metrics: now.metrics(), Missing: now.missing()}
}

// metrics returns the metrics of an output. Nothing can come of a cut off one but what it has.
func (b *block) metrics() []report.Metric {
	var metrics []report.Metric
	for i, f := range table() {
		if b.have[i] {
			metrics = append(metrics, report.Metric{
				Name: f.name, Value: b.values[i], Unit: f.unit, Direction: f.direction, Labels: map[string]string{}, Headline: i == wall,
			})
		}
	}
	return slices.Clip(metrics)
}
