package extract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// Bounds of one line.
const (
	maxSamples = 1000
	maxName    = pod.MaxMetricName
	maxLabels  = pod.MaxLabels
	maxLabel   = pod.MaxLabel
)

// Keys of an emitted line that are no metrics, and their values.
const (
	KeyTime   = "@time"   // when: seconds since 1970 as a number, or a text as of RFC 3339
	KeyStep   = "@step"   // the benchmark's own count: a whole number
	KeyUnit   = "@unit"   // a text for all metrics of the line, or an object: metric → text
	KeyLabels = "@labels" // an object: label → text, number or true or false

	KeyDirection = "@direction" // "higher" or "lower": which of two numbers of the metrics is the better one
)

// Emitted reads a line that a client library wrote: one JSON object whose keys are metrics and whose values are numbers:
//
//	{"loss": 0.25, "accuracy": 0.9}
//
// A number may also be one that is not valid JSON but that parseNumber reads (.5 as bc, NaN and -Infinity as Python write them), a string
// that reads as a number, true (1) or false (0). Keys that begin with @ set values for all metrics of the line (KeyTime and its siblings);
// unknown ones are ignored:
//
//	{"loss": 0.25, "@step": 7, "@time": 1767323045.25, "@unit": "1", "@labels": {"gpu": "0"}, "@direction": "lower"}
//
// Samples come in the order of their keys, with their ordinal in Sub; their time is zero if the line has none. The error names every member
// of the line that is no sample; the other members are returned as samples beside it. If a value for all metrics is invalid, none of them
// is a sample: without a label it would be in another series. A line of nothing but space holds no samples and is no error.
func Emitted(line []byte) ([]event.Sample, error) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return nil, nil
	}
	r := reader{rest: line}
	if !r.take('{') {
		return nil, fmt.Errorf("want a JSON object, as {\"metric\": 0.1}, got %s", short(line))
	}
	e := emission{}
	if err := e.members(&r); err != nil {
		return nil, err
	}
	if !r.atEnd() {
		return nil, fmt.Errorf("after the object: %s", short(r.rest))
	}
	return e.finish()
}

// emission collects the samples of a line.
type emission struct {
	samples []event.Sample
	time    int64
	step    *int64
	unit    string
	units   map[string]string
	labels  map[string]string
	better  string // direction
	errs    []error
	bad     int // of these, how many are about a metric
	refused bool
}

// A lineError lists the members of a line that are no samples.
type lineError struct {
	error

	metrics int // how many of these are metrics
}

// Unwrap returns the cause.
func (e *lineError) Unwrap() error { return e.error }

// Refused returns how many metrics of a line are no samples for an error that
// Emitted returned, at least one.
func Refused(err error) int64 {
	if of, ok := errors.AsType[*lineError](err); ok {
		return max(1, int64(of.metrics))
	}
	return 1
}

// members reads the object up to its end. It returns an error in the line's form; errors in members are collected in e.
func (e *emission) members(r *reader) error {
	if r.take('}') {
		return nil
	}
	for {
		key, err := r.text()
		if err != nil {
			return err
		}
		if !r.take(':') {
			return fmt.Errorf("after %q: want a colon, got %s", key, short(r.rest))
		}
		value, err := r.value()
		if err != nil {
			return fmt.Errorf("%q: %w", key, err)
		}
		if err := e.member(key, value); err != nil {
			e.addError(key, err)
		}
		if r.take('}') {
			return nil
		}
		if !r.take(',') {
			return fmt.Errorf("after %q: want a comma or the end of the object, got %s", key, short(r.rest))
		}
	}
}

func (e *emission) addError(key string, err error) {
	e.errs = append(e.errs, fmt.Errorf("%q: %w", key, err))
	if strings.HasPrefix(key, "@") {
		e.refused = true
		return
	}
	e.bad++
}

func (e *emission) member(key string, value []byte) (err error) {
	switch key {
	case KeyTime:
		e.time, err = parseJSONTime(value)
		return err
	case KeyStep:
		step, err := strconv.ParseInt(string(value), 10, 64)
		if err != nil {
			return fmt.Errorf("%s is not a whole number", short(value))
		}
		e.step = &step
		return nil
	case KeyUnit:
		return e.unitsOf(value)
	case KeyLabels:
		e.labels, err = texts(value)
		return err
	case KeyDirection:
		e.better, err = direction(value)
		return err
	}
	if strings.HasPrefix(key, "@") {
		return nil
	}
	return e.sample(key, value)
}

func (e *emission) sample(name string, value []byte) error {
	v, err := number(value)
	if err != nil {
		return err
	}
	if name == "" || len(name) > maxName {
		return fmt.Errorf("the name of a metric has %d bytes, want 1 to %d", len(name), maxName)
	}
	if len(e.samples) == maxSamples {
		return fmt.Errorf("a line holds %d metrics at most", maxSamples)
	}
	s := event.Sample{Name: name, Sub: len(e.samples)}
	s.Set(v)
	e.samples = append(e.samples, s)
	return nil
}

func (e *emission) unitsOf(value []byte) (err error) {
	if value[0] != '"' {
		e.units, err = texts(value)
		return err
	}
	if err := json.Unmarshal(value, &e.unit); err != nil {
		return err
	}
	if len(e.unit) > maxLabel {
		e.unit = ""
		return fmt.Errorf("has more than %d bytes", maxLabel)
	}
	return nil
}

// finish sets the values for all samples of the line.
func (e *emission) finish() ([]event.Sample, error) {
	if e.refused {
		e.bad, e.samples = e.bad+len(e.samples), nil
	}
	for i := range e.samples {
		s := &e.samples[i]
		s.Time, s.Step, s.Labels, s.Unit, s.Direction = e.time, e.step, e.labels, e.unit, e.better
		if u, ok := e.units[s.Name]; ok {
			s.Unit = u
		}
	}
	if len(e.errs) > 10 {
		e.errs = append(e.errs[:10], fmt.Errorf("and %d more", len(e.errs)-10))
	}
	if len(e.errs) == 0 {
		return e.samples, nil
	}
	return e.samples, &lineError{error: errors.Join(e.errs...), metrics: e.bad}
}

// number reads a metric's value.
func number(value []byte) (float64, error) {
	switch string(value) {
	case "true":
		return 1, nil
	case "false":
		return 0, nil
	}
	text := string(value)
	if value[0] == '"' {
		if err := json.Unmarshal(value, &text); err != nil {
			return 0, err
		}
	}
	v, ok := parseNumber(text)
	if !ok {
		return 0, fmt.Errorf("%s is not a number", short(value))
	}
	return v, nil
}

// parseJSONTime reads a time as ns since 1970. It reads a number of seconds digit by digit: a float64 cannot represent today's nanoseconds.
func parseJSONTime(value []byte) (int64, error) {
	if value[0] == '"' {
		var text string
		if err := json.Unmarshal(value, &text); err != nil {
			return 0, err
		}
		t, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return 0, fmt.Errorf("%s is not a time as of RFC 3339", short(value))
		}
		return inRange(t, value)
	}
	whole, fraction, ok := decimal(string(value))
	if !ok {
		return 0, fmt.Errorf("%s is not a time in seconds", short(value))
	}
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || seconds < 0 {
		return 0, fmt.Errorf("%s is not a time in seconds since 1970", short(value))
	}
	fraction = (fraction + "000000000")[:9]
	ns, err := strconv.ParseUint(fraction, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%s is not a time in seconds since 1970", short(value))
	}
	return inRange(time.Unix(seconds, int64(ns)), value) //nolint:gosec // below 1e9
}

// maxExponent is the largest exponent of a time, without its sign.
const maxExponent = 400

// decimal returns the digits before and after the point of a number that may have an exponent. It does not check the digits.
func decimal(number string) (whole, fraction string, ok bool) {
	mantissa, power := number, ""
	if i := strings.IndexAny(number, "eE"); i >= 0 {
		mantissa, power = number[:i], number[i+1:]
	}
	whole, fraction, _ = strings.Cut(mantissa, ".")
	if len(mantissa) == len(number) {
		return whole, fraction, true
	}
	n, err := strconv.Atoi(power)
	switch {
	case err != nil || n > maxExponent || n < -maxExponent:
		return "", "", false
	case n >= 0:
		fraction += strings.Repeat("0", max(0, n-len(fraction)))
		return whole + fraction[:n], fraction[n:], true
	}
	whole = strings.Repeat("0", max(0, 1-n-len(whole))) + whole
	point := len(whole) + n
	return whole[:point], whole[point:] + fraction, true
}

// inRange returns t in ns since 1970, if a sample can have that time.
func inRange(t time.Time, value []byte) (int64, error) {
	if y := t.UTC().Year(); y < 1970 || y > 2200 {
		return 0, fmt.Errorf("%s is not a time in seconds from 1970 to 2200", short(value))
	}
	return t.UnixNano(), nil
}

// direction reads a direction.
func direction(value []byte) (string, error) {
	switch string(value) {
	case `"` + event.Higher + `"`:
		return event.Higher, nil
	case `"` + event.Lower + `"`:
		return event.Lower, nil
	}
	return "", fmt.Errorf("%s is neither %q nor %q", short(value), event.Higher, event.Lower)
}

// texts reads an object of texts.
func texts(value []byte) (map[string]string, error) {
	var m map[string]any
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.UseNumber()
	if err := dec.Decode(&m); err != nil {
		return nil, fmt.Errorf("%s is not an object of texts", short(value))
	}
	if len(m) > maxLabels {
		return nil, fmt.Errorf("has %d entries, %d at most", len(m), maxLabels)
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		switch v.(type) {
		case string, json.Number, bool:
		default:
			return nil, fmt.Errorf("%q is not a text", k)
		}
		if out[k] = fmt.Sprint(v); k == "" || len(k) > maxLabel || len(out[k]) > maxLabel {
			return nil, fmt.Errorf("%q: name and text have 1 to %d bytes", shorten(k), maxLabel)
		}
	}
	return out, nil
}

// reader reads the tokens of a JSON text, and the numbers of Python that are not valid JSON.
type reader struct{ rest []byte }

func (r *reader) space() { r.rest = bytes.TrimLeft(r.rest, " \t\r\n") }

// next reports whether c is next.
func (r *reader) next(c byte) bool {
	r.space()
	return len(r.rest) > 0 && r.rest[0] == c
}

// take skips c if it is next.
func (r *reader) take(c byte) bool {
	if !r.next(c) {
		return false
	}
	r.rest = r.rest[1:]
	return true
}

// atEnd reports whether only space is left.
func (r *reader) atEnd() bool {
	r.space()
	return len(r.rest) == 0
}

// text reads a JSON string.
func (r *reader) text() (string, error) {
	r.space()
	b, err := r.quoted()
	if err != nil {
		return "", err
	}
	if bytes.IndexByte(b, '\\') < 0 && utf8.Valid(b) && !slices.ContainsFunc(b, func(c byte) bool { return c < ' ' }) {
		return string(b[1 : len(b)-1]), nil
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return "", fmt.Errorf("%s: %w", short(b), err)
	}
	return s, nil
}

// quoted returns the next JSON string, with its quotes.
func (r *reader) quoted() ([]byte, error) {
	if len(r.rest) == 0 || r.rest[0] != '"' {
		return nil, fmt.Errorf("want a text in quotes, got %s", short(r.rest))
	}
	for i := 1; i < len(r.rest); i++ {
		switch r.rest[i] {
		case '\\':
			i++
		case '"':
			b := r.rest[:i+1]
			r.rest = r.rest[i+1:]
			return b, nil
		}
	}
	return nil, errors.New("a text without its closing quote")
}

// value returns the next value as written. It may be invalid JSON.
func (r *reader) value() ([]byte, error) {
	r.space()
	if len(r.rest) == 0 {
		return nil, errors.New("the line ends where a value is wanted")
	}
	switch r.rest[0] {
	case '"':
		return r.quoted()
	case '{', '[':
		return r.nested()
	}
	n := bytes.IndexAny(r.rest, ",}] \t\r\n")
	if n < 0 {
		n = len(r.rest)
	}
	if n == 0 {
		return nil, fmt.Errorf("want a value, got %s", short(r.rest))
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b, nil
}

// nested returns the next object or array.
func (r *reader) nested() ([]byte, error) {
	all, depth := r.rest, 0
	for len(r.rest) > 0 {
		switch r.rest[0] {
		case '"':
			if _, err := r.quoted(); err != nil {
				return nil, err
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		r.rest = r.rest[1:]
		if depth == 0 {
			return all[:len(all)-len(r.rest)], nil
		}
	}
	return nil, errors.New("an object or array without its end")
}

// short returns the beginning of b, quoted.
func short(b []byte) string { return strconv.Quote(shorten(string(b))) }

func shorten(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}
