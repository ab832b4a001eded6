package report_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/parsers/report"
)

func TestLinesComeWithoutTheirEnds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200_000)
	var got []string
	if err := report.Lines(strings.NewReader("a\r\n\n"+long+"\nlast"), func(line []byte) { got = append(got, string(line)) }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "", long, "last"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestALineThatNeverEndsTakesNoMoreThanItMay(t *testing.T) {
	t.Parallel()
	var got []int
	text := bytes.Repeat([]byte("x"), 3*report.MaxLine)
	err := report.Lines(bytes.NewReader(append(text, "\nb"...)), func(line []byte) { got = append(got, len(line)) })
	if diff := cmp.Diff([]int{report.MaxLine, 1}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestAnErrorOfTheReaderEndsTheLines(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	if err := report.Lines(iotest.ErrReader(broken), func([]byte) {}); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

func TestOnlyFiniteDecimalNumbersAreNumbers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"1": true, "-1.5e3": true, ".5": true, "": false, "NaN": false, "Inf": false, "0x10": false, "1_000": false, "1e999": false, "1,5": false, " 1": false,
	} {
		if v, ok := report.Number(text); ok != want || ok && (math.IsNaN(v) || math.IsInf(v, 0)) {
			t.Errorf("%q: %g, %v", text, v, ok)
		}
	}
}

func TestAReportThatBreaksARuleIsFound(t *testing.T) {
	t.Parallel()
	k := report.Kind{Name: "k", Metrics: []report.Definition{{Name: "rate", Unit: "B/s", Direction: report.Higher, Headline: true, Labels: []string{"stream"}}}}
	m := func(change func(*report.Metric)) report.Metric {
		m := report.Metric{Name: "rate", Value: 1, Unit: "B/s", Direction: report.Higher, Labels: map[string]string{}}
		change(&m)
		return m
	}
	same := m(func(*report.Metric) {})
	if err := k.Check(report.Of("k", "", []report.Metric{same}, "")); err != nil {
		t.Error(err)
	}
	for name, r := range map[string]report.Report{
		"another kind":         report.Of("j", "", []report.Metric{same}, ""),
		"a state that is none": {Kind: "k", State: "good", Reason: "x"},
		"ok without metrics":   {Kind: "k", State: report.OK},
		"failed and silent":    {Kind: "k", State: report.Failed},
		"partial with nothing": {Kind: "k", State: report.Partial, Reason: "x"},
		"empty with metrics":   {Kind: "k", State: report.Empty, Reason: "x", Metrics: []report.Metric{same}},
		"twice":                report.Of("k", "", []report.Metric{same, same}, ""),
		"not a number":         report.Of("k", "", []report.Metric{m(func(m *report.Metric) { m.Value = math.NaN() })}, ""),
		"an unknown name":      report.Of("k", "", []report.Metric{m(func(m *report.Metric) { m.Name = "speed" })}, ""),
		"another unit":         report.Of("k", "", []report.Metric{m(func(m *report.Metric) { m.Unit = "s" })}, ""),
		"an unknown label":     report.Of("k", "", []report.Metric{m(func(m *report.Metric) { m.Labels = map[string]string{"x": ""} })}, ""),
		"no labels":            {Kind: "k", State: report.OK, Metrics: []report.Metric{{Name: "rate", Unit: "B/s", Direction: report.Higher}}},
	} {
		if k.Check(r) == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestTextOfAToolIsClippedToALine(t *testing.T) {
	t.Parallel()
	if got := report.Clip(" a\tb\n\x1b[31mc\xff "); got != "a b [31mc\uFFFD" {
		t.Errorf("%q", got)
	}
	if got := []rune(report.Clip(strings.Repeat("é", 300))); len(got) != 201 {
		t.Errorf("%d characters", len(got))
	}
}

func TestADocumentIsReadToItsEndAndOneOverTheLimitIsEmpty(t *testing.T) {
	t.Parallel()
	whole := strings.Repeat("0123456789", 50_000)
	length := func(text []byte, _ report.Options) report.Report {
		return report.Of("k", "", nil, fmt.Sprint(len(text), " ", string(text) == whole))
	}
	for name, tt := range map[string]struct {
		r    io.Reader
		want string
	}{
		"nothing":        {strings.NewReader(""), "0 false"},
		"several parts":  {strings.NewReader(whole), "500000 true"},
		"in small reads": {iotest.OneByteReader(strings.NewReader(whole[:100_000])), "100000 false"},
		"too large":      {&endless{left: report.MaxDocument + 10}, "it has more than 64 MiB"},
	} {
		if r, err := report.DocumentParser("k", length)(tt.r, report.Options{}); err != nil || r.State != report.Empty || r.Reason != tt.want {
			t.Errorf("%s: %s %s, %v, want %s", name, r.State, r.Reason, err, tt.want)
		}
	}
	if _, err := report.DocumentParser("k", length)(iotest.ErrReader(io.ErrUnexpectedEOF), report.Options{}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v, want the error of the reader", err)
	}
}

// endless reads so many zeros.
type endless struct{ left int }

func (e *endless) Read(p []byte) (int, error) {
	n := min(len(p), e.left)
	e.left -= n
	if n == 0 {
		return 0, errors.New("read beyond what may be")
	}
	return n, nil
}
