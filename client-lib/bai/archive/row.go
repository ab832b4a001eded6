package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Origin is where a sample or a line was read from.
type Origin struct {
	Attempt   int    `json:"attempt"`
	Role      string `json:"role"`
	Index     int    `json:"index"`
	Pod       string `json:"pod"`
	Container string `json:"container"`
	Stream    string `json:"stream"`
}

// Sample is a line of metrics/samples.jsonl.
type Sample struct {
	Origin

	Seq     int64             `json:"seq"`
	Sub     int               `json:"sub"`
	Name    string            `json:"name"`
	Value   *float64          `json:"value"`   // null where Special is set
	Special string            `json:"special"` // NaN, +Inf or -Inf
	Unit    string            `json:"unit"`
	Time    int64             `json:"time,string"` // ns since 1970, UTC
	Step    *int64            `json:"step"`
	Labels  map[string]string `json:"labels"`

	Direction string `json:"direction"` // which values are better: higher or lower; empty where the descriptor says nothing
}

// Float is the sample's value.
func (s Sample) Float() float64 {
	switch {
	case s.Value != nil:
		return *s.Value
	case s.Special == "+Inf":
		return math.Inf(1)
	case s.Special == "-Inf":
		return math.Inf(-1)
	}
	return math.NaN()
}

// Line is a line of logs/lines.jsonl.
type Line struct {
	Origin

	Seq  int64  `json:"seq"`
	Err  bool   `json:"err"`         // standard error
	Time int64  `json:"time,string"` // ns since 1970, UTC
	Text string `json:"text"`
	Raw  int64  `json:"raw"`  // bytes that were written, where Text is not all of them
	Cut  bool   `json:"cut"`  // Text ends early
	Open bool   `json:"open"` // it ended without a line feed
}

// decodeLine reads one line of a file into v, and refuses unknown fields.
func decodeLine(file string, n int, text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fault(file, n, "%s", jsonMessage(err))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fault(file, n, "more than one JSON value in a line")
	}
	return nil
}

// splitter splits its input into lines.
type splitter struct {
	file string
	use  func(n int, line []byte) error
	n    int
	part []byte // of the line that has not ended
}

// Write implements io.Writer.
func (s *splitter) Write(p []byte) (int, error) {
	size := len(p)
	for {
		line, rest, ended := bytes.Cut(p, []byte("\n"))
		if len(s.part)+len(line) > maxLine {
			return 0, fault(s.file, s.n+1, "has more than %d bytes", maxLine)
		}
		if !ended {
			s.part = append(s.part, line...)
			return size, nil
		}
		if len(s.part) > 0 {
			s.part = append(s.part, line...)
			line = s.part
		}
		s.n++
		if err := s.use(s.n, line); err != nil {
			return 0, err
		}
		s.part, p = s.part[:0], rest
	}
}

// end returns an error if the last line is incomplete.
func (s *splitter) end() error {
	if len(s.part) > 0 {
		return fault(s.file, s.n+1, "the last line does not end")
	}
	return nil
}

// header is that of baictl metrics -o csv.
const header = "time metric value unit step labels attempt role index container stream sequence sub run direction"

// table writes samples as CSV.
type table struct {
	run string
	csv *csv.Writer
}

func newTable(run string, w io.Writer) (*table, error) {
	t := &table{run: run, csv: csv.NewWriter(w)}
	return t, t.csv.Write(strings.Fields(header))
}

func (t *table) add(s Sample) error {
	step := ""
	if s.Step != nil {
		step = strconv.FormatInt(*s.Step, 10)
	}
	return t.csv.Write([]string{
		time.Unix(0, s.Time).UTC().Format(time.RFC3339Nano), s.Name, formatFloat(s.Float()), s.Unit, step, labels(s.Labels),
		strconv.Itoa(s.Attempt), s.Role, strconv.Itoa(s.Index), s.Container, s.Stream,
		strconv.FormatInt(s.Seq, 10), strconv.Itoa(s.Sub), t.run, s.Direction,
	})
}

func (t *table) end() error {
	t.csv.Flush()
	return t.csv.Error()
}

// formatFloat is a value that is read back as the same.
func formatFloat(x float64) string {
	if size := math.Abs(x); size != 0 && (size < 1e-6 || size >= 1e21) {
		return strconv.FormatFloat(x, 'e', -1, 64)
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}

func labels(all map[string]string) string {
	var texts []string
	for _, k := range slices.Sorted(maps.Keys(all)) {
		texts = append(texts, k+"="+all[k])
	}
	return strings.Join(texts, ",")
}

// textName returns the name of the file with the text of a source's lines.
func (l Line) textName() string {
	output := "log"
	switch {
	case l.Stream != "output":
	case l.Err:
		output = "stderr"
	default:
		output = "stdout"
	}
	return fmt.Sprintf("%s%d/%s-%d/%s/%s.%s.txt", logs, l.Attempt, safePart(l.Role), l.Index, safePart(l.Pod),
		safePart(l.Container), output)
}

// safePart returns a word as it may be part of a file's name: itself, or a digest of
// it where it could deceive or lead elsewhere.
func safePart(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	if word != "" && len(word) <= 100 && strings.Trim(word, plain) == "" && strings.Trim(word, ".") != "" {
		return word
	}
	sum := sha256.Sum256([]byte(word))
	return "x-" + hex.EncodeToString(sum[:8])
}
