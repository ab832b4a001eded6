// Package comparison compares results in files, and says for people and programs how two
// sides differ, whether the platform has compared them or this package.
package comparison

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/points"
	"github.com/benchmark-ai/bai/client-lib/internal/benchstat"
	"github.com/benchmark-ai/bai/services/parsers"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

// A Side is the results of one file.
type Side struct {
	Operand string
	Series  []FileSeries // in the order of the file
}

// FileSeries are the values of one metric, with one unit and one set of labels. Each value is one
// run.
type FileSeries struct {
	Metric    string
	Unit      string
	Labels    map[string]string
	Direction string // "higher", "lower" or empty
	Values    []float64
}

// Labels of series of go test -bench.
const (
	labelBenchmark = "benchmark" // full name, without Benchmark in front
	labelPackage   = "package"
)

// peek is how much of a file says of which kind it is.
const peek = 4096

// Read reads the results of a file, whose kind it finds out:
//
//   - The Bencher Metric Format: a metric for each measure of a benchmark, with one value.
//   - CSV with the columns series, time and value, as package points reads it: the rows of a series
//     that have a value.
//   - Output of go test -bench, which is what is neither of them: a metric for each unit of a
//     benchmark, whose lines are its values. Lines that cannot be read are left out, with a
//     warning.
//
// The error is *points.FaultError for CSV with a fault, and else that of the reader, or says what
// is wrong with the text.
func Read(operand string, r io.Reader, warnings io.Writer) (Side, error) {
	text := bufio.NewReaderSize(r, peek)
	head, err := text.Peek(peek)
	if err != nil && !errors.Is(err, io.EOF) {
		return Side{}, err
	}
	s := Side{Operand: operand}
	switch head = bytes.TrimPrefix(head, []byte("\uFEFF")); {
	case bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{")):
		s.Series, err = readBMF(text)
	case isCSV(head):
		s.Series, err = readCSV(text)
	default:
		s.Series, err = readGo(operand, text, warnings)
	}
	return s, err
}

// isCSV reports whether the first line of a text has the columns of series.
func isCSV(head []byte) bool {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	columns := strings.Split(strings.ReplaceAll(strings.TrimRight(string(line), "\r"), `"`, ""), ",")
	return slices.Contains(columns, "series") && slices.Contains(columns, "value")
}

func readCSV(r io.Reader) ([]FileSeries, error) {
	read, err := points.Read(r)
	if err != nil {
		return nil, err
	}
	all := make([]FileSeries, len(read))
	for i, s := range read {
		all[i] = FileSeries{Metric: s.Name, Direction: string(s.Better), Values: s.Values}
	}
	return all, nil
}

func readBMF(r io.Reader) ([]FileSeries, error) {
	read, err := parsers.Parse("bmf", r, report.Options{})
	if err != nil {
		return nil, err
	}
	if read.State != report.OK {
		return nil, fmt.Errorf("it is no whole Bencher Metric Format: %s", read.Reason)
	}
	var all []FileSeries
	for _, m := range read.Metrics {
		if m.Labels["bound"] == "" {
			all = append(all, FileSeries{
				Metric: m.Name, Unit: m.Unit, Labels: m.Labels,
				Direction: string(m.Direction), Values: []float64{m.Value},
			})
		}
	}
	return all, nil
}

func readGo(name string, r io.Reader, warnings io.Writer) ([]FileSeries, error) {
	read, err := benchstat.Read(benchstat.Input{Name: name, Text: r}, warnings)
	if err != nil {
		return nil, err
	}
	all := make([]FileSeries, len(read))
	for i, m := range read {
		all[i] = FileSeries{
			Metric: m.Unit, Labels: map[string]string{labelBenchmark: m.Benchmark},
			Direction: directionOf(m), Values: m.Values,
		}
		if m.Package != "" {
			all[i].Labels[labelPackage] = m.Package
		}
	}
	return all, nil
}

// directionOf returns which values of a unit are better: as the file says, or as the units of
// Go's own measurements are.
func directionOf(m benchstat.Measurement) string {
	switch {
	case m.Better > 0 || m.Better == 0 && strings.HasSuffix(m.Unit, "/sec"), m.Better == 0 && strings.HasSuffix(m.Unit, "/s"):
		return "higher"
	case m.Better < 0 || m.Better == 0 && strings.HasSuffix(m.Unit, "/op"):
		return "lower"
	}
	return ""
}
