package csv_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/parsers/csv"
	"github.com/benchmark-ai/bai/services/parsers/report"
	"github.com/benchmark-ai/bai/services/parsers/report/reporttest"
)

func parse(tb testing.TB, text string, selections ...report.Selection) report.Report {
	tb.Helper()
	return reporttest.Parse(tb, csv.Kind(), text, selections...)
}

func capture(tb testing.TB, name string) string {
	tb.Helper()
	return reporttest.Capture(tb, name)
}

// lines returns the state of a report, and a line for each of its metrics.
func lines(r report.Report) []string {
	all := []string{reporttest.State(r)}
	for _, m := range r.Metrics {
		line := m.Name
		for _, key := range slices.Sorted(maps.Keys(m.Labels)) {
			line += " " + key + "=" + m.Labels[key]
		}
		line = strings.TrimSpace(fmt.Sprintf("%s %.12g %s %s", line, m.Value, m.Unit, m.Direction))
		if m.Headline {
			line += " headline"
		}
		all = append(all, line)
	}
	return all
}

func TestWithoutOptionsColumnsOfNumbersAreMetrics(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"result.csv": {
			"partial 1 values are not finite",
			"size method=read row=1 1024 1", "seconds method=read row=1 0.5 1", "MB per s method=read row=1 2.048 1",
			"size method=read, direct row=2 4096 1", "seconds method=read, direct row=2 0.75 1", "MB per s method=read, direct row=2 5.4613 1",
			"size method=write row=3 4096 1",
		},
		"semicolon.csv": {"ok", "duration name=warm up 1.25 1 headline"},
		"tab.tsv":       {"ok", "throughput 118.25 1", "latency 0.0084 1"},
	} {
		if diff := cmp.Diff(want, lines(parse(t, capture(t, name)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestSelectedColumnsAreMetrics(t *testing.T) {
	t.Parallel()
	got := lines(parse(t, capture(t, "tab.tsv"), report.Selection{Name: "p50", Path: "latency", Unit: "s", Direction: report.Lower}))
	if diff := cmp.Diff([]string{"ok", "p50 0.0084 s lower headline"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got = lines(parse(t, capture(t, "result.csv"), report.Selection{Path: "seconds", Unit: "s"}))
	want := []string{"ok", "seconds method=read row=1 0.5 s", "seconds method=read, direct row=2 0.75 s"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatASelectionDoesNotFindIsNamed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		path string
		want []string
	}{
		"another spelling": {"Seconds", []string{`failed there is no column "Seconds": did you mean "seconds"?`}},
		"no such column":   {"zzzzzzzzzz", []string{`failed there is no column "zzzzzzzzzz": there are size, method, seconds, MB per s`}},
		"a column of text": {"method", []string{`failed column method has "read" in row 1, which is no number`}},
	} {
		if diff := cmp.Diff(tt.want, lines(parse(t, capture(t, "result.csv"), report.Selection{Path: tt.path}))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	got := lines(parse(t, "a,b\n1,x\n2,3\n", report.Selection{Path: "b"}, report.Selection{Path: "c"}, report.Selection{Name: "b", Path: "a"}))
	want := []string{
		`partial column b has "x" in row 1, which is no number; there is no column "c": there are a, b; two metrics have the name "b"`,
		"b row=2 3 1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFilesOfManyKindsAreRead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"one column":                 {"seconds\n1.5\n", []string{"ok", "seconds 1.5 1 headline"}},
		"several rows":               {"a\n1\n2\n", []string{"ok", "a row=1 1 1", "a row=2 2 1"}},
		"blanks and empty rows":      {" a , b \n\n 1 , 2 \n\n", []string{"ok", "a 1 1", "b 2 1"}},
		"a column without a name":    {",a\n0,1\n", []string{"ok", "a 1 1 headline"}},
		"quotes with ends of lines":  {"\"a\",\"t\"\n\"1\",\"x\ny \"\"z\"\"\"\n", []string{"ok", "a t=x\ny \"z\" 1 1 headline"}},
		"commas in a quoted name":    {"\"a,b,c\";d\n1;2\n", []string{"ok", "a,b,c 1 1", "d 2 1"}},
		"more than 4 texts":          {"a,b,c,d,e,n\nx,x,x,x,x,1\n", []string{"ok", "n 1 1 headline"}},
		"a column of text named row": {"row,n\nx,1\ny,2\n", []string{"ok", "n row=1 1 1", "n row=2 2 1"}},
		"decimals with a comma":      {"a;b\n1,5;2\n", []string{"ok", "b a=1,5 2 1 headline"}},
		"a short row": {
			"a,b\n1,2\n3\n",
			[]string{"partial row 2 has 1 cells, the header 2", "a row=1 1 1", "b row=1 2 1", "a row=2 3 1"},
		},
		"a long row":            {"a,b\n1,2,3\n", []string{"partial row 1 has 3 cells, the header 2", "a 1 1", "b 2 1"}},
		"numbers that are none": {"a,b\nNaN,1\n-Infinity,2\n", []string{"partial 2 values are not finite", "b row=1 1 1", "b row=2 2 1"}},
		"no number":             {"a,b\nx,y\n", []string{"empty no column has numbers only"}},
		"mixed":                 {"a,b\n1,y\nx,2\n", []string{"empty no column has numbers only"}},
		"a header alone":        {"a,b\n", []string{"empty no row is below the header"}},
		"no header":             {"1,2\n3,4\n", []string{`empty the first row is no header: its cell 1 is "1"`}},
		"one name twice":        {"a,a\n1,2\n", []string{`empty two columns have the name "a"`}},
		"no names":              {",\n1,2\n", []string{"empty the first row has no names"}},
		"nothing":               {"", []string{"empty there is no header"}},
		"another text":          {"hello\nworld\n", []string{"empty no column has numbers only"}},
	} {
		if diff := cmp.Diff(tt.want, lines(parse(t, tt.text))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestOfManyRowsTheLast1000Count(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("n,name\n")
	for i := range 2345 {
		fmt.Fprintf(&text, "%d,row %d\n", i+1, i+1)
	}
	got := lines(parse(t, text.String()))
	want := []string{"partial only the last 1000 of 2345 rows count", "n name=row 1346 row=1346 1346 1", "n name=row 2345 row=2345 2345 1"}
	if diff := cmp.Diff(want, []string{got[0], got[1], got[len(got)-1]}); diff != "" || len(got) != 1001 {
		t.Errorf("%d metrics (-want +got):\n%s", len(got)-1, diff)
	}
}

func TestAFileThatIsCutInARowIsPartial(t *testing.T) {
	t.Parallel()
	text := "a,b,c\n1,2,3\n4,5,6\n"
	for i := range text {
		r := parse(t, text[:i])
		inRow := i > 0 && i != 5 && !strings.HasSuffix(text[:i], "\n") && strings.Count(text[:i][strings.LastIndex(text[:i], "\n")+1:], ",") < 2
		if inRow && r.State == report.OK {
			t.Errorf("up to %q: %s", text[:i], lines(r))
		}
	}
}

func TestOnlyTablesLookLikeIt(t *testing.T) {
	t.Parallel()
	for _, text := range []string{capture(t, "result.csv"), capture(t, "semicolon.csv"), capture(t, "tab.tsv"), "a,b\n1,2"} {
		if !csv.Kind().Looks([]byte(text)) {
			t.Errorf("%.60q does not look like it", text)
		}
	}
	for _, text := range []string{
		"", "hello\nworld\n", "a\n1\n", "a,b\n", "1,2\n3,4\n", "a,b\nx,y\n", "Hello, world\nat 5, then more, or less\n",
		"Step\tImg/sec\ttotal_loss\n1\t3\t7.6\n",
		"time,srcaddress,port\n20240101,10.0.0.1,5001\n", `{"a": 1, "b": 2}`, "goos: linux\nBenchmarkX\t1\t2 ns/op\n",
	} {
		if csv.Kind().Looks([]byte(text)) {
			t.Errorf("%.60q looks like it", text)
		}
	}
	long := "a,b\n" + strings.Repeat("1,2\n", 20_000)
	for i := range 5 {
		if !csv.Kind().Looks([]byte(long[:64<<10-i])) {
			t.Errorf("a head of %d bytes does not look like it", 64<<10-i)
		}
	}
}

func TestParserOfCSVPassesTheSuite(t *testing.T) {
	reporttest.Suite{
		Kind: csv.Kind(),
		Own:  []string{"result.csv", "semicolon.csv", "tab.tsv"}, Open: "a,\"",
	}.Run(t)
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"result.csv", "semicolon.csv", "tab.tsv"} {
		f.Add(capture(f, name), "seconds")
	}
	f.Add("a,\"b\n1,\"\"2\"\n\x00,\xff\n", "a")
	f.Fuzz(func(t *testing.T, text, column string) {
		parse(t, text)
		parse(t, text, report.Selection{Path: column}, report.Selection{Name: "n", Path: column})
	})
}

func BenchmarkParse(b *testing.B) {
	text := "time,operation,size,latency,throughput\n" + strings.Repeat("1700000000.25,sequential read,4096,0.000125,118.25\n", 50_000)
	reporttest.Benchmark(b, csv.Kind(), text)
}
