// Package points reads series of results from CSV.
package points

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxRow is the most bytes of a row. It bounds the memory that quotes without an end take.
const MaxRow = 1 << 20

// A Direction says which values of a series are better.
type Direction string

// Directions of series.
const (
	Unknown Direction = ""
	Higher  Direction = "higher"
	Lower   Direction = "lower"
)

// A TimeSeries is the rows of one series, in the order of the file. Its slices have an
// element for each row.
type TimeSeries struct {
	Name    string
	Better  Direction
	Times   []int64   // Unix nanoseconds; no time is before the one above it
	Values  []float64 // NaN in a row without a result; never infinite
	Missing int       // rows without a result
}

// Time returns the time of a row, in UTC.
func (s *TimeSeries) Time(row int) time.Time { return time.Unix(0, s.Times[row]).UTC() }

// A FaultError is a fault of the text, with its place and a remedy. Lines and columns count
// from 1, and columns are bytes.
type FaultError struct {
	Line, Column int
	Message      string
	Remedy       string
}

// Error has all of it on one line.
func (e *FaultError) Error() string {
	return fmt.Sprintf("%d:%d: %s (%s)", e.Line, e.Column, e.Message, e.Remedy)
}

// Read reads CSV with the columns series, time and value, and, if there is one,
// higher_is_better, in any order, under a header. It returns the series in order of their
// first rows. Rows of several series may alternate. The first fault of the text is returned
// as a FaultError; other errors are those of the reader.
//
// Read keeps 16 bytes for each row, and never more than a row of the text.
func Read(r io.Reader) ([]*TimeSeries, error) {
	limit := &rowLimit{in: r}
	limit.allow(0)
	buffered := bufio.NewReaderSize(limit, bufferSize)
	if err := skipMark(buffered); err != nil {
		return nil, err
	}
	rows := csv.NewReader(buffered) // it takes the buffer as its own
	rows.ReuseRecord = true
	rows.FieldsPerRecord = -1
	t := &table{rows: rows, byName: make(map[string]*TimeSeries)}
	for read := t.header; ; read = t.row {
		record, err := rows.Read()
		switch {
		case errors.Is(err, io.EOF) && t.fields == 0:
			return nil, &FaultError{1, 1, "the file is empty", "begin with the line series,time,value"}
		case errors.Is(err, io.EOF):
			return t.all, nil
		case err != nil:
			return nil, t.fault(err)
		}
		if err := read(record); err != nil {
			return nil, err
		}
		t.last, _ = rows.FieldPos(len(record) - 1)
		t.last += strings.Count(record[len(record)-1], "\n")
		limit.allow(rows.InputOffset())
	}
}

const bufferSize = 64 << 10

var errLongRow = errors.New("the row is too long")

// rowLimit ends a text at a row that is too long.
type rowLimit struct {
	in         io.Reader
	read, most int64 // bytes
}

// allow permits one more row after an offset.
func (l *rowLimit) allow(offset int64) { l.most = offset + MaxRow + bufferSize }

// Read reads up to the end of what is permitted.
func (l *rowLimit) Read(p []byte) (int, error) {
	if l.read >= l.most {
		return 0, errLongRow
	}
	n, err := l.in.Read(p[:min(int64(len(p)), l.most-l.read)])
	l.read += int64(n)
	return n, err
}

// skipMark skips the mark of UTF-8 at the beginning of a text.
func skipMark(r *bufio.Reader) error {
	begin, err := r.Peek(3)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch {
	case bytes.Equal(begin, []byte("\xef\xbb\xbf")):
		_, err := r.Discard(len(begin))
		return err
	case bytes.HasPrefix(begin, []byte("\xff\xfe")) || bytes.HasPrefix(begin, []byte("\xfe\xff")):
		return &FaultError{1, 1, "the text is UTF-16", "save the file as UTF-8"}
	}
	return nil
}

// A table is CSV being read.
type table struct {
	rows *csv.Reader
	last int // line on which the last row ended

	fields                      int // columns; 0 before the header
	series, time, value, better int // places of the columns; -1 for none

	all    []*TimeSeries
	byName map[string]*TimeSeries
	newest *TimeSeries // series of the last row
}

// fault returns the error of a row that cannot be split into fields.
func (t *table) fault(err error) error {
	if errors.Is(err, errLongRow) {
		return &FaultError{t.last + 1, 1, fmt.Sprintf("the row is longer than %d MiB", MaxRow>>20), "close the quotes of its fields"}
	}
	wrong, ok := errors.AsType[*csv.ParseError](err)
	if !ok {
		return err
	}
	message := "a quote is wrong"
	if wrong.StartLine < wrong.Line {
		message += fmt.Sprintf(" in the row that begins on line %d", wrong.StartLine)
	}
	return &FaultError{
		wrong.Line, max(1, wrong.Column), message,
		`put the whole field in quotes, write each quote in it twice, and close it`,
	}
}

// at returns a fault of a field of the row.
func (t *table) at(field int, remedy, format string, args ...any) error {
	line, column := t.rows.FieldPos(field)
	return &FaultError{line, column, fmt.Sprintf(format, args...), remedy}
}

const columns = "series, time, value and, if you want, higher_is_better"

// header takes the names of the columns.
func (t *table) header(record []string) error {
	if len(record) == 1 && strings.ContainsAny(record[0], ";\t") {
		return t.at(0, "put commas between the columns", "the header is one column, %s", quote(record[0]))
	}
	for i, name := range record {
		switch {
		case !slices.Contains([]string{"series", "time", "value", "higher_is_better"}, name):
			return t.at(i, "the columns are "+columns, "unknown column %s", quote(name))
		case slices.Index(record, name) < i:
			return t.at(i, "keep one of them", "column %s is there twice", quote(name))
		}
	}
	for _, name := range []string{"series", "time", "value"} {
		if !slices.Contains(record, name) {
			return t.at(0, "begin with the line series,time,value", "the header has no column %s", quote(name))
		}
	}
	t.fields = len(record)
	t.series, t.time, t.value = slices.Index(record, "series"), slices.Index(record, "time"), slices.Index(record, "value")
	t.better = slices.Index(record, "higher_is_better")
	return nil
}

// row takes a row of a series.
func (t *table) row(record []string) error {
	if len(record) != t.fields {
		return t.at(0, "write a field for each column", "the row has %d fields, and the header has %d", len(record), t.fields)
	}
	if record[t.time] == "time" && record[t.value] == "value" {
		return t.at(0, "remove the line", "the header is there again")
	}
	s, err := t.seriesOf(record[t.series])
	if err != nil {
		return err
	}
	at, err := t.parseTime(s, record[t.time])
	if err != nil {
		return err
	}
	value, err := t.parseValue(record[t.value])
	if err != nil {
		return err
	}
	if t.better >= 0 {
		if err := t.direct(s, record[t.better]); err != nil {
			return err
		}
	}
	if math.IsNaN(value) {
		s.Missing++
	}
	s.Times, s.Values = append(s.Times, at), append(s.Values, value)
	return nil
}

// seriesOf returns the series with a name.
func (t *table) seriesOf(name string) (*TimeSeries, error) {
	if t.newest != nil && t.newest.Name == name {
		return t.newest, nil
	}
	s, ok := t.byName[name]
	switch {
	case ok:
	case name == "":
		return nil, t.at(t.series, "name it", "the series has no name")
	case !utf8.ValidString(name):
		return nil, t.at(t.series, "save the file as UTF-8", "the name of the series is not UTF-8")
	default:
		s = &TimeSeries{Name: strings.Clone(name)} // its record is used again
		t.byName[s.Name] = s
		t.all = append(t.all, s)
	}
	t.newest = s
	return s, nil
}

// Years whose times are a number of nanoseconds.
const (
	firstYear = 1678
	lastYear  = 2261
)

func (t *table) parseTime(s *TimeSeries, text string) (int64, error) {
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return 0, t.at(t.time, "write it as 2026-01-31T15:04:05Z", "time %s is not RFC 3339", quote(text))
	}
	if year := parsed.UTC().Year(); year < firstYear || year > lastYear {
		return 0, t.at(t.time, fmt.Sprintf("use years from %d to %d", firstYear, lastYear), "time %s is out of range", quote(text))
	}
	at := parsed.UnixNano()
	if n := len(s.Times); n > 0 && at < s.Times[n-1] {
		return 0, t.at(t.time, "sort the rows of a series by time", "time %s is before %s, the time of the row above it in series %s",
			quote(text), s.Time(n-1).Format(time.RFC3339Nano), quote(s.Name))
	}
	return at, nil
}

// parseValue returns NaN for a row without a result.
func (t *table) parseValue(text string) (float64, error) {
	if text == "" {
		return math.NaN(), nil
	}
	value, err := strconv.ParseFloat(text, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, t.at(t.value, "use a larger unit", "value %s is too large", quote(text))
	case err != nil:
		return 0, t.at(t.value, "write it as 1234.5, or leave it empty in a row without a result", "value %s is not a number", quote(text))
	case math.IsInf(value, 0):
		return math.NaN(), nil
	}
	return value, nil
}

// direct takes the direction of a series. A row without one leaves it as it is.
func (t *table) direct(s *TimeSeries, text string) error {
	var better Direction
	switch text {
	case "":
		return nil
	case "true":
		better = Higher
	case "false":
		better = Lower
	default:
		return t.at(t.better, "use true or false, or leave it empty", "unknown word %s in higher_is_better", quote(text))
	}
	if s.Better != Unknown && s.Better != better {
		return t.at(t.better, "give all rows of a series the same", "higher_is_better changes to %s within series %s", text, quote(s.Name))
	}
	s.Better = better
	return nil
}

// quote returns the beginning of a text in quotes.
func quote(text string) string {
	const most = 60
	if len(text) <= most {
		return strconv.Quote(text)
	}
	return strconv.Quote(strings.ToValidUTF8(text[:most], "")) + "…"
}
