package extract

import (
	"slices"
	"strconv"
	"unsafe"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// Emissions reads lines that client libraries wrote, one after the other, and shares names between them. The zero value is ready. Only one
// goroutine may use it.
type Emissions struct {
	names  map[string]string // of metrics, that were read before
	last   string            // name, of the metric that was read last
	values []float64         // room for those of samples to come
	steps  []int64
}

// Bounds of the name cache and of allocations ahead.
const (
	maxNames = 4096
	slab     = 1024
)

// Append appends the samples of a line to dst, as Emitted returns them. The samples do not share memory with line.
func (e *Emissions) Append(dst []event.Sample, line []byte) ([]event.Sample, error) {
	begin := len(dst)
	if all, ok := e.plain(dst, line); ok {
		return all, nil
	}
	samples, err := Emitted(line)
	return append(dst[:begin], samples...), err
}

// plain reads the most common lines of client libraries: an object of numbers in JSON's notation, whose names need no escapes, with at most
// a step and a time as a number beside them. It is false for any other line.
func (e *Emissions) plain(dst []event.Sample, line []byte) ([]event.Sample, bool) {
	begin := len(dst)
	var about event.Sample // values that the line sets for all samples
	r := fastReader{rest: line}
	if !r.take('{') {
		return nil, false
	}
	for more := true; more; more = r.take(',') {
		name, value, ok := r.member()
		if !ok || len(dst)-begin == maxSamples {
			return nil, false
		}
		if dst, ok = e.take(dst, begin, &about, name, value); !ok {
			return nil, false
		}
	}
	if !r.take('}') || !r.atEnd() {
		return nil, false
	}
	for i := begin; i < len(dst); i++ {
		dst[i].Time, dst[i].Step = about.Time, about.Step
	}
	return dst, true
}

// take appends the sample of a member, or sets a value for all samples if the name begins with @.
func (e *Emissions) take(dst []event.Sample, begin int, about *event.Sample, name, value []byte) ([]event.Sample, bool) {
	if len(name) == 0 || len(name) > maxName {
		return nil, false
	}
	if name[0] == '@' {
		return dst, e.setMeta(about, name, value)
	}
	v, ok := e.number(value)
	return append(dst, event.Sample{Sub: len(dst) - begin, Name: e.name(name), Value: v}), ok
}

// setMeta reads a member that is no metric.
func (e *Emissions) setMeta(s *event.Sample, name, value []byte) (ok bool) {
	switch string(name) {
	case KeyTime:
		s.Time, ok = seconds(value)
	case KeyStep:
		s.Step, ok = e.step(value)
	}
	return ok
}

// name returns b as a text that lines share.
func (e *Emissions) name(b []byte) string {
	if string(b) == e.last {
		return e.last
	}
	name, ok := e.names[string(b)]
	if !ok {
		if e.names == nil || len(e.names) == maxNames {
			e.names = make(map[string]string)
		}
		name = string(b)
		e.names[name] = name
	}
	e.last = name
	return name
}

// number reads a finite number that has the notation of JSON.
func (e *Emissions) number(b []byte) (*float64, bool) {
	v, ok := whole(b)
	if !ok {
		if b[len(b)-1] == '.' || b[0] == '.' {
			return nil, false
		}
		var err error
		if v, err = strconv.ParseFloat(unsafe.String(&b[0], len(b)), 64); err != nil {
			return nil, false
		}
	}
	if len(e.values) == cap(e.values) {
		e.values = make([]float64, 0, slab)
	}
	e.values = append(e.values, v)
	return &e.values[len(e.values)-1], true
}

func (e *Emissions) step(b []byte) (*int64, bool) {
	n, ok := integer(b)
	if !ok {
		return nil, false
	}
	if len(e.steps) == cap(e.steps) {
		e.steps = make([]int64, 0, slab)
	}
	e.steps = append(e.steps, n)
	return &e.steps[len(e.steps)-1], true
}

// whole reads an integer that a float64 represents exactly.
func whole(b []byte) (float64, bool) {
	n, ok := integer(b)
	if !ok || n == 0 && b[0] == '-' { // -0 is another number
		return 0, false
	}
	return float64(n), ok
}

// integer reads a whole number of at most 15 digits.
func integer(b []byte) (n int64, ok bool) {
	digits := b
	if b[0] == '-' {
		digits = b[1:]
	}
	if len(digits) == 0 || len(digits) > 15 {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	if b[0] == '-' {
		n = -n
	}
	return n, true
}

// seconds reads a time as ns since 1970 from seconds with at most nine decimals.
func seconds(b []byte) (ns int64, ok bool) {
	dot := slices.Index(b, '.')
	if dot < 0 {
		dot = len(b)
	}
	n, ok := integer(b[:max(dot, 1)])
	if !ok || dot == 0 || n <= 0 || n > 7e9 { // the year 2191
		return 0, false
	}
	scale := int64(1e9)
	for _, c := range b[min(dot+1, len(b)):] {
		if scale /= 10; c < '0' || c > '9' || scale == 0 {
			return 0, false
		}
		ns += int64(c-'0') * scale
	}
	return n*1e9 + ns, true
}

// fastReader reads tokens of a line.
type fastReader struct{ rest []byte }

func (q *fastReader) space() {
	for len(q.rest) > 0 && (q.rest[0] == ' ' || q.rest[0] == '\t' || q.rest[0] == '\r' || q.rest[0] == '\n') {
		q.rest = q.rest[1:]
	}
}

func (q *fastReader) take(c byte) bool {
	if q.space(); len(q.rest) == 0 || q.rest[0] != c {
		return false
	}
	q.rest = q.rest[1:]
	return true
}

// atEnd reports whether only space is left.
func (q *fastReader) atEnd() bool {
	q.space()
	return len(q.rest) == 0
}

// member reads a name of plain ASCII, a colon, and the characters of a number.
func (q *fastReader) member() (name, value []byte, ok bool) {
	if !q.take('"') {
		return nil, nil, false
	}
	n := 0
	for n < len(q.rest) && q.rest[n] >= ' ' && q.rest[n] <= '~' && q.rest[n] != '"' && q.rest[n] != '\\' {
		n++
	}
	name, q.rest = q.rest[:n], q.rest[n:]
	if !q.take('"') || !q.take(':') {
		return nil, nil, false
	}
	q.space()
	n = 0
	for n < len(q.rest) && numeric(q.rest[n]) {
		n++
	}
	value, q.rest = q.rest[:n], q.rest[n:]
	return name, value, n > 0 && value[0] != '+' && value[0] != 'e' && value[0] != 'E'
}

func numeric(c byte) bool {
	return c >= '0' && c <= '9' || c == '.' || c == '-' || c == '+' || c == 'e' || c == 'E'
}
