package table_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/parsers/internal/table"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

func TestAHeaderIsSplitAtKnownTitles(t *testing.T) {
	t.Parallel()
	known := []table.Column{{Title: "BW peak[MB/sec]", Name: "peak"}, {Title: "#bytes"}, {Title: "99% percentile[usec]", Name: "p99"}}
	var got []string
	for _, c := range table.Header([]byte(" #bytes #other \tBW peak[MB/sec]99% percentile[usec]  BW peak[GB/sec]"), known) {
		got = append(got, c.Title+"="+c.Name)
	}
	want := []string{"#bytes=", "#other=", "BW peak[MB/sec]=peak", "99% percentile[usec]=p99", "BW=", "peak[GB/sec]="}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestUnitsAreConvertedExactly(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		column table.Column
		text   string
		want   float64
	}{
		{table.Column{Exponent: "e-6"}, "3.34", 3.34e-6},
		{table.Column{Exponent: "e9"}, "97.84", 97840000000},
		{table.Column{Factor: 1 << 20}, "0.5", 524288},
		{table.Column{}, "7", 7},
	} {
		if got, ok := tt.column.Value(tt.text); !ok || got != tt.want {
			t.Errorf("%q: %v, %v, want %v", tt.text, got, ok, tt.want)
		}
	}
	for _, text := range []string{"", "nan", "1e5", "-", "1e308"} {
		if v, ok := (table.Column{Exponent: "e6"}).Value(text); ok {
			t.Errorf("%q is %v, want no number", text, v)
		}
	}
}

func TestOfTwoMetricsWithTheSameNameAndLabelsTheLaterCounts(t *testing.T) {
	t.Parallel()
	var s table.Metrics
	one := func(bytes string, v float64) report.Metric {
		return report.Metric{Name: "time", Value: v, Labels: map[string]string{"bytes": bytes}}
	}
	s.Put(one("1", 10))
	s.Put(one("2", 20))
	s.Put(one("1", 30))
	if diff := cmp.Diff([]report.Metric{one("1", 30), one("2", 20)}, s.List()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRowsAreKeptUpToALimit(t *testing.T) {
	t.Parallel()
	var r table.Rows
	line := make([]byte, 1<<20)
	for i := range line {
		line[i] = '1'
	}
	for range 9 {
		r.Add(line)
	}
	rows := 0
	r.Each(func([]string) { rows++ })
	if !r.Full || rows != 7 {
		t.Errorf("%d rows, full %v, want 7 of 1 MiB and the rest left out", rows, r.Full)
	}
	if r.Reset(); !r.None() || r.Full {
		t.Error("rows are there after a reset")
	}
}
