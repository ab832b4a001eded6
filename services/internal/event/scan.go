package event

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"
)

// parse reads JSON as encoding/json does. A batch in the very form that render writes is
// read without encoding/json, in a tenth of the time.
func parse(b []byte, ev any) error {
	switch ev := ev.(type) {
	case *Metrics:
		if m, ok := scanMetrics(b); ok {
			*ev = m
			return nil
		}
	case *Logs:
		if l, ok := scanLogs(b); ok {
			*ev = l
			return nil
		}
	}
	return json.Unmarshal(b, ev)
}

func scanMetrics(b []byte) (Metrics, bool) {
	var m Metrics
	head, items, tail, ok := splitList(b, `,"samples":[`)
	if !ok || json.Unmarshal(head, &m) != nil || m.Samples != nil || m.End != nil || !scanEnd(tail, &m.End) {
		return Metrics{}, false
	}
	s := scanner{rest: items, texts: make(map[string]string)}
	n := bytes.Count(items, []byte(`{"seq":`))
	m.Samples, s.values = make([]Sample, 0, n), make([]float64, 0, n)
	for len(s.rest) > 0 {
		if len(m.Samples) > 0 && !s.take(",") {
			return Metrics{}, false
		}
		m.Samples = append(m.Samples, Sample{})
		if !s.sample(&m.Samples[len(m.Samples)-1]) {
			return Metrics{}, false
		}
	}
	return m, true
}

func scanLogs(b []byte) (Logs, bool) {
	var l Logs
	head, items, tail, ok := splitList(b, `,"lines":[`)
	if !ok || json.Unmarshal(head, &l) != nil || l.Lines != nil || l.End != nil || !scanEnd(tail, &l.End) {
		return Logs{}, false
	}
	s := scanner{rest: items}
	l.Lines = make([]Line, 0, bytes.Count(items, []byte(`{"seq":`)))
	for len(s.rest) > 0 {
		if len(l.Lines) > 0 && !s.take(",") {
			return Logs{}, false
		}
		line, ok := s.line()
		if !ok {
			return Logs{}, false
		}
		l.Lines = append(l.Lines, line)
	}
	return l, true
}

// splitList returns the parts before, in and after the list that follows key: the first
// as an object of its own.
func splitList(b []byte, key string) (head, items, tail []byte, ok bool) {
	from := bytes.Index(b, []byte(key))
	if from < 0 || depth(b[:from]) != 1 {
		return nil, nil, nil, false
	}
	items = b[from+len(key):]
	to := bytes.LastIndexByte(items, ']') // an End has no list
	if to < 0 {
		return nil, nil, nil, false
	}
	return append(append(make([]byte, 0, from+1), b[:from]...), '}'), items[:to], items[to+1:], true
}

// depth returns how many objects and lists are open after b.
func depth(b []byte) (n int) {
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			n++
		case '}', ']':
			n--
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		}
	}
	return n
}

// scanEnd reads the part after the list.
func scanEnd(tail []byte, end **End) bool {
	if string(tail) == "}" {
		return true
	}
	object, ok := bytes.CutPrefix(tail, []byte(`,"end":`))
	if !ok || !bytes.HasPrefix(object, []byte("{")) || !bytes.HasSuffix(object, []byte("}}")) {
		return false
	}
	*end = new(End)
	return json.Unmarshal(object[:len(object)-1], *end) == nil
}

// scanner reads items of a list.
type scanner struct {
	rest   []byte
	texts  map[string]string // that were read before: few differ
	last   string            // of these, the last that needed no escapes
	values []float64         // as many as there will be
}

func (s *scanner) take(text string) bool {
	if len(s.rest) < len(text) || string(s.rest[:len(text)]) != text {
		return false
	}
	s.rest = s.rest[len(text):]
	return true
}

// sample reads a sample into v, which is empty.
func (s *scanner) sample(v *Sample) (ok bool) {
	if v.Seq, ok = s.integer(`{"seq":`); !ok {
		return false
	}
	if v.Sub, ok = s.sub(); !ok {
		return false
	}
	if v.Name, ok = s.text(`,"name":`); !ok || !s.take(`,"value":`) {
		return false
	}
	if v.Value, ok = s.value(); !ok {
		return false
	}
	if v.Special, ok = s.optionalText(`,"special":`); !ok {
		return false
	}
	if v.Unit, ok = s.optionalText(`,"unit":`); !ok {
		return false
	}
	if v.Time, ok = s.integer(`,"time":"`); !ok || !s.take(`"`) {
		return false
	}
	if v.Step, ok = s.step(); !ok {
		return false
	}
	if v.Labels, ok = s.labels(); !ok {
		return false
	}
	v.Direction, ok = s.optionalText(`,"direction":`)
	return ok && s.take("}")
}

func (s *scanner) line() (l Line, ok bool) {
	if l.Seq, ok = s.integer(`{"seq":`); !ok {
		return l, false
	}
	l.Stderr = s.take(`,"err":true`)
	if l.Time, ok = s.integer(`,"time":"`); !ok || !s.take(`","text":`) {
		return l, false
	}
	if l.Text, ok = s.uniqueText(); !ok {
		return l, false
	}
	if bytes.HasPrefix(s.rest, []byte(`,"raw":`)) {
		if l.Raw, ok = s.integer(`,"raw":`); !ok {
			return l, false
		}
	}
	l.Truncated = s.take(`,"cut":true`)
	l.Unterminated = s.take(`,"open":true`)
	return l, s.take("}")
}

// integer reads key and the whole number after it.
func (s *scanner) integer(key string) (int64, bool) {
	if !s.take(key) {
		return 0, false
	}
	if v, n := leading(s.rest); n > 0 && n < len(s.rest) && (s.rest[n] == ',' || s.rest[n] == '"') {
		s.rest = s.rest[n:]
		return v, true
	}
	n := 0
	for n < len(s.rest) && (s.rest[n] >= '0' && s.rest[n] <= '9' || n == 0 && s.rest[n] == '-') {
		n++
	}
	digits := s.rest[:n]
	s.rest = s.rest[n:]
	if !number(digits) {
		return 0, false
	}
	v, err := strconv.ParseInt(string(digits), 10, 64)
	return v, err == nil
}

// leading reads the whole number without a sign that b begins with, and returns
// how many digits it has: 0 where b begins with none, with one that JSON does not
// let begin so, or with one that an int64 may not hold.
func leading(b []byte) (v int64, n int) {
	for n < len(b) && b[n] >= '0' && b[n] <= '9' {
		if v >= math.MaxInt64/10 {
			return 0, 0
		}
		v = 10*v + int64(b[n]-'0')
		n++
	}
	if n > 1 && b[0] == '0' {
		return 0, 0
	}
	return v, n
}

// number reports whether JSON lets a number begin as b does, which ends with its
// last digit.
func number(b []byte) bool {
	b = bytes.TrimPrefix(b, []byte("-"))
	return len(b) > 0 && b[0] >= '0' && b[0] <= '9' && (b[0] != '0' || len(b) == 1 || b[1] < '0' || b[1] > '9')
}

func (s *scanner) sub() (int, bool) {
	if !bytes.HasPrefix(s.rest, []byte(`,"sub":`)) {
		return 0, true
	}
	v, ok := s.integer(`,"sub":`)
	return int(v), ok && v >= math.MinInt && v <= math.MaxInt
}

func (s *scanner) step() (*int64, bool) {
	if !bytes.HasPrefix(s.rest, []byte(`,"step":`)) {
		return nil, true
	}
	v, ok := s.integer(`,"step":`)
	return &v, ok
}

// value reads a number that render wrote, or null.
func (s *scanner) value() (*float64, bool) {
	if s.take("null") {
		return nil, true
	}
	if v, n := leading(s.rest); n > 0 && n <= 15 && n < len(s.rest) && s.rest[n] == ',' { // a float64 holds it
		s.rest = s.rest[n:]
		return s.keep(float64(v)), true
	}
	n := bytes.IndexByte(s.rest, ',')
	if n < 0 || !decimal(s.rest[:n]) {
		return nil, false
	}
	v, err := strconv.ParseFloat(string(s.rest[:n]), 64)
	s.rest = s.rest[n:]
	return s.keep(v), err == nil
}

// keep returns where v is kept.
func (s *scanner) keep(v float64) *float64 {
	s.values = append(s.values, v)
	return &s.values[len(s.values)-1]
}

// decimal reports whether b is a number of JSON.
func decimal(b []byte) bool {
	if !number(b) {
		return false
	}
	b = bytes.TrimPrefix(b, []byte("-"))
	b = bytes.TrimLeft(b, "0123456789")
	if len(b) > 0 && b[0] == '.' {
		fraction := bytes.TrimLeft(b[1:], "0123456789")
		if len(fraction) == len(b)-1 {
			return false
		}
		b = fraction
	}
	if len(b) > 0 && (b[0] == 'e' || b[0] == 'E') {
		b = b[1:]
		if len(b) > 0 && (b[0] == '+' || b[0] == '-') {
			b = b[1:]
		}
		return len(b) > 0 && len(bytes.TrimLeft(b, "0123456789")) == 0
	}
	return len(b) == 0
}

// text reads key and the text after it; few of these texts differ.
func (s *scanner) text(key string) (string, bool) {
	if !s.take(key) {
		return "", false
	}
	raw, ok := s.quoted()
	if !ok {
		return "", false
	}
	inner := raw[1 : len(raw)-1]
	if string(inner) == s.last && s.last != "" {
		return s.last, true
	}
	t, ok := s.texts[string(raw)]
	if !ok {
		if t, ok = unquote(raw); !ok {
			return "", false
		}
		s.texts[string(raw)] = t
	}
	if t == string(inner) { // written without escapes
		s.last = t
	}
	return t, ok
}

func (s *scanner) optionalText(key string) (string, bool) {
	if !bytes.HasPrefix(s.rest, []byte(key)) {
		return "", true
	}
	return s.text(key)
}

// uniqueText reads a text; most of these differ.
func (s *scanner) uniqueText() (string, bool) {
	raw, ok := s.quoted()
	if !ok {
		return "", false
	}
	return unquote(raw)
}

// quoted returns the text that is next, with its quotes, as it is written.
func (s *scanner) quoted() ([]byte, bool) {
	if len(s.rest) == 0 || s.rest[0] != '"' {
		return nil, false
	}
	for i := 1; ; i++ {
		n := bytes.IndexByte(s.rest[i:], '"')
		if n < 0 {
			return nil, false
		}
		i += n
		escapes := 0
		for s.rest[i-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			raw := s.rest[:i+1]
			s.rest = s.rest[i+1:]
			return raw, true
		}
	}
}

// unquote reads a text of JSON.
func unquote(raw []byte) (string, bool) {
	for _, c := range raw[1 : len(raw)-1] {
		if c < ' ' || c == '\\' {
			var t string
			err := json.Unmarshal(raw, &t)
			return t, err == nil
		}
	}
	if !utf8.Valid(raw) {
		return "", false
	}
	return string(raw[1 : len(raw)-1]), true
}

func (s *scanner) labels() (map[string]string, bool) {
	if !s.take(`,"labels":`) {
		return nil, true
	}
	dec := json.NewDecoder(bytes.NewReader(s.rest))
	var m map[string]string
	if dec.Decode(&m) != nil {
		return nil, false
	}
	s.rest = s.rest[dec.InputOffset():]
	return m, true
}
