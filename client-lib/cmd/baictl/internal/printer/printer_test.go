package printer_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

func TestWords(t *testing.T) {
	for want, got := range map[string]string{
		"0 B": printer.Bytes(0), "999 B": printer.Bytes(999), "1.0 kB": printer.Bytes(1000), "1.0 MB": printer.Bytes(999_999),
		"12.3 MB": printer.Bytes(12_345_678), "9.2 EB": printer.Bytes(math.MaxInt64), "-5 B": printer.Bytes(-5),

		"0s": printer.Duration(-time.Hour), "99ms": printer.Duration(99 * time.Millisecond), "0.1s": printer.Duration(100 * time.Millisecond), "0.2s": printer.Duration(299 * time.Millisecond), "9.9s": printer.Duration(9999 * time.Millisecond),
		"59s": printer.Duration(59*time.Second + 999*time.Millisecond), "1m00s": printer.Duration(time.Minute),
		"47h59m": printer.Duration(48*time.Hour - time.Second), "2d00h": printer.Duration(48 * time.Hour),

		"12ms": printer.Precise(12 * time.Millisecond), "1s": printer.Precise(time.Second), "0s ": printer.Precise(0) + " ",

		"name: bad": printer.Fault(&baiv1.Fault{Path: "name", Message: "bad"}),

		"3s": printer.Age(3 * time.Second), "59m": printer.Age(time.Hour - 1), "47h": printer.Age(48*time.Hour - 1), "400d": printer.Age(400 * 24 * time.Hour),

		"0": printer.Number(0), "1": printer.Number(1), "-0.25": printer.Number(-0.25), "0.333333": printer.Number(1.0 / 3), "1234.57": printer.Number(1234.567),
		"1234568": printer.Number(1234567.8), "1e-09": printer.Number(1e-9), "1.5e+20": printer.Number(1.5e20), "NaN": printer.Number(math.NaN()),
		"+Inf": printer.Number(math.Inf(1)), "100": printer.Number(100), "1000000": printer.Number(1e6), "0.0001": printer.Number(1e-4),
		"0.000123457": printer.Number(1.23456789e-4), "0.0123457": printer.Number(0.0123456789), "-0.0999999": printer.Number(-0.09999989),
		"0.1 ": printer.Number(0.09999999999) + " ", "1000": printer.Number(1000.001), "100000 ": printer.Number(99999.97) + " ",

		"1234567.25": printer.Exact(1234567.25), "0.1": printer.Exact(0.1), "1e-07": printer.Exact(1e-7),

		"a=1,b=2":       printer.Labels(map[string]string{"b": "2", "a": "1"}),
		"a b c �[31md�": printer.Clean("a\nb\tc \x1b[31md\u202e"),

		"3 of 7 items":     printer.Progress(&baiv1.Progress{Done: 3, Total: 7, Unit: "items"}),
		"3 items":          printer.Progress(&baiv1.Progress{Done: 3, Unit: "items"}),
		"1.0 kB of 2.0 kB": printer.Progress(&baiv1.Progress{Done: 1000, Total: 2000, Unit: "bytes"}),

		"running": printer.Word(baiv1.Phase_PHASE_RUNNING), "99": printer.Word(baiv1.Phase(99)),

		"f.toml:1:2: a.b: warning: odd (mend it)": printer.Fault(&baiv1.Fault{File: "f.toml", Line: 1, Column: 2, Path: "a.b", Message: "odd", Remedy: "mend it", Warning: true}),
		"f.toml: too large":                       printer.Fault(&baiv1.Fault{File: "f.toml", Message: "too large"}),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestEveryWordOfAnEnumIsReadBack(t *testing.T) {
	for _, word := range printer.Words(baiv1.Phase(0).Descriptor()) {
		n, ok := printer.Parse(baiv1.Phase(0).Descriptor(), word)
		if !ok || printer.Word(baiv1.Phase(n)) != word {
			t.Errorf("%q is read as %d, %t", word, n, ok)
		}
	}
	for _, word := range []string{"", "unspecified", "RUNNING", "walking"} {
		if n, ok := printer.Parse(baiv1.Phase(0).Descriptor(), word); ok {
			t.Errorf("%q is read as %d", word, n)
		}
	}
}

func TestAFinishedRunStandsAsItsOutcome(t *testing.T) {
	for want, run := range map[string]*baiv1.Run{
		"queued":   {Phase: baiv1.Phase_PHASE_QUEUED},
		"failed":   {Phase: baiv1.Phase_PHASE_FINISHED, Outcome: baiv1.Outcome_OUTCOME_FAILED},
		"finished": {Phase: baiv1.Phase_PHASE_FINISHED},
		"":         {},
	} {
		if got := printer.Status(run); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestJSONIsStable(t *testing.T) {
	for name, tt := range map[string]struct {
		message proto.Message
		want    string
	}{
		"nothing":              {&baiv1.Progress{}, `{"done":0,"total":0}`},
		"large integers":       {&baiv1.Progress{Done: math.MaxInt64, Total: -1, Unit: "a"}, `{"done":9223372036854775807,"total":-1,"unit":"a"}`},
		"text":                 {&baiv1.Fault{Message: "<a> & \"b\"\n\u2028"}, `{"line":0,"column":0,"message":"<a> & \"b\"\n\u2028","warning":false}`},
		"text that is no text": {&baiv1.Fault{Message: "\xff"}, `{"line":0,"column":0,"message":"\ufffd","warning":false}`},
		"enums":                {&baiv1.Change{Phase: baiv1.Phase_PHASE_CANCELING, Outcome: 77}, `{"revision":0,"attempt":0,"phase":"canceling","outcome":"77"}`},
		"time":                 {&baiv1.Change{Time: timestamppb.New(time.Unix(1, 500))}, `{"revision":0,"time":"1970-01-01T00:00:01.0000005Z","attempt":0}`},
		"maps":                 {&baiv1.Sample{Labels: map[string]string{"b": "", "a": "x"}, Value: 1}, `{"sequence":0,"sub":0,"value":1,"labels":{"a":"x","b":""}}`},
		"optional":             {&baiv1.Sample{Step: new(int64(0)), Value: math.Inf(-1)}, `{"sequence":0,"sub":0,"value":"-Infinity","step":0}`},
		"lists":                {&baiv1.Run{Data: []*baiv1.DataSet{{Path: "a"}, {}}}, `{"attempt":0,"data":[{"path":"a","size":0},{"size":0}],"revision":0}`},
		"bytes":                {&baiv1.SubmitRunRequest{DescriptorToml: []byte("a=1")}, `{"descriptorToml":"a=1"}`},
	} {
		t.Run(name, func(t *testing.T) {
			got := string(printer.JSON(tt.message))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !json.Valid([]byte(got)) {
				t.Errorf("not JSON: %s", got)
			}
		})
	}
}

func TestYAMLSaysWhatJSONSays(t *testing.T) {
	labels := map[string]string{}
	for _, text := range []string{"true", "no", "null", "~", "1", "1e3", "0x10", "2026-01-02", "", " a ", "a: b", "- a", "#", "a\nb\n", "\ttab", "'", "\"", "{", "ünï", "\x00", ".nan", "<<", "=", "|", "\x7f", "\u0080", "a\u0085b", "\u0099\u009b2J", "\ufeffa", "\ufffe", "\uffff", "\u2028", "\U0001f600"} {
		labels["k"+text] = text
	}
	message := &baiv1.Run{Id: "01", Labels: labels, DescriptorToml: "a = 1\n\n  b = 2\n\tc"}
	text, err := printer.YAML(printer.JSON(message))
	if err != nil {
		t.Fatal(err)
	}
	var fromYAML, fromJSON any
	if err := yaml.Unmarshal([]byte(text), &fromYAML); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if err := json.Unmarshal(printer.JSON(message), &fromJSON); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(fromYAML)
	if err != nil {
		t.Fatal(err)
	}
	var read any
	if err := json.Unmarshal(again, &read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fromJSON, read); diff != "" {
		t.Errorf("(-JSON +YAML):\n%s\n%s", diff, text)
	}
}

func TestATableFitsItsTerminal(t *testing.T) {
	table := printer.Table{
		Columns: []printer.Column{{Title: "ID"}, {Title: "NAME", Flex: true}, {Title: "WHY", Flex: true}, {Title: "N", Right: true}},
		Rows: [][]string{
			{"1", "训练模型训练模型训练模型", "", "1"},
			{"2", "e\u0301e\u0301", "a reason that is quite long", "100"},
			{"3", "👩‍🔬 lab", "line\nfeed \x1b[31m", "20"},
		},
	}
	for width, want := range map[int]string{
		0: `
ID  NAME                      WHY                            N
1   训练模型训练模型训练模型  -                              1
2   éé                        a reason that is quite long  100
3   👩‍🔬 lab                    line feed �[31m               20
`,
		40: `
ID  NAME            WHY                N
1   训练模型训练…   -                  1
2   éé              a reason that …  100
3   👩‍🔬 lab          line feed �[31m   20
`,
		10: `
ID  NAME    WHY       N
1   训练…   -         1
2   éé      a rea…  100
3   👩‍🔬 lab  line …   20
`,
	} {
		got := "\n" + strings.ReplaceAll(table.Render(width), "e\u0301", "é")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d columns (-want +got):\n%s", width, diff)
		}
	}
}

func TestATableInMarkdownIsNotCut(t *testing.T) {
	table := printer.Table{
		Columns: []printer.Column{{Title: "NAME", Flex: true}, {Title: "N", Right: true}},
		Rows:    [][]string{{"a|b \x1b[31m", "1"}, {strings.Repeat("x", 200), ""}},
	}
	want := "| NAME | N |\n|---|---:|\n| a\\|b �[31m | 1 |\n| " + strings.Repeat("x", 200) + " | - |\n"
	if got := table.Markdown(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestPaintDoesNotMoveColumns(t *testing.T) {
	table := printer.Table{
		Columns: []printer.Column{{Title: "A"}, {Title: "B"}},
		Rows:    [][]string{{"x", "y"}},
		Paint:   func(row, column int, text string) string { return strings.Repeat("*", 1+row+column) + text },
	}
	if got, want := table.Render(0), "A  B\n*x  **y\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTheRunsOfACell(t *testing.T) {
	for want, s := range map[string]*baiv1.Set{
		"2 repetitions":                     {Repetitions: 2, CellCount: 3, RunCount: 6},
		"up to 2 repetitions":               {Repetitions: 2, CellCount: 3, RunCount: 1}, // a rerun of one that failed
		"1 repetition and 1 warm-up":        {Repetitions: 1, Warmup: 1, CellCount: 3, RunCount: 6, EntryCount: 2},
		"up to 3 repetitions and 1 warm-up": {Repetitions: 3, Warmup: 1, CellCount: 3, RunCount: 6, EntryCount: 2},
	} {
		if got := printer.CellRuns(s, "warm-up"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestSummaries(t *testing.T) {
	var s printer.Samples
	add := func(metric, unit, level string, values ...float64) {
		for _, v := range values {
			sample := &baiv1.Sample{Metric: metric, Unit: unit, Value: v}
			if level != "" {
				sample.Labels = map[string]string{"level": level}
			}
			s.Add("", sample)
		}
	}
	add("z", "s", "", 3, 1, 2)
	add("a", "MB/s", "9", 1, 2, math.NaN(), 4, 100)
	add("a", "MB/s", "10", math.Inf(1))
	add("a", "s", "10", math.NaN())
	add("z", "s", "", math.MaxFloat64, math.MaxFloat64, math.MaxFloat64)
	want := []printer.Summary{
		{Metric: "a", Unit: "MB/s", Labels: "level=9", N: 4, NotNumbers: 1, Median: 3, Min: 1, Max: 100, Mean: 26.75, StdDev: math.Sqrt((25.75*25.75 + 24.75*24.75 + 22.75*22.75 + 73.25*73.25) / 3)},
		{Metric: "a", Unit: "MB/s", Labels: "level=10", N: 1, Median: math.Inf(1), Min: math.Inf(1), Max: math.Inf(1), Mean: math.Inf(1), StdDev: math.NaN()},
		{Metric: "a", Unit: "s", Labels: "level=10", NotNumbers: 1, Median: math.NaN(), Min: math.NaN(), Max: math.NaN(), Mean: math.NaN(), StdDev: math.NaN()},
		{Metric: "z", Unit: "s", N: 6, Median: math.MaxFloat64/2 + 1.5, Min: 1, Max: math.MaxFloat64, Mean: math.Inf(1), StdDev: math.Inf(1)},
	}
	same := cmp.Comparer(func(a, b float64) bool {
		return a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-9*math.Abs(a)
	})
	if diff := cmp.Diff(want, s.Summaries(), same); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSummariesWhoseLabelsReadAlikeAreTwo(t *testing.T) {
	var s printer.Samples
	for i, labels := range []map[string]string{{"a": "1,b=2"}, {"a": "1", "b": "2"}, {"b": "2", "a": "1"}, {`a"="1","b`: "2"}, {"a": ""}, nil} {
		s.Add("", &baiv1.Sample{Metric: "rate", Value: float64(i), Labels: labels})
	}
	var got []int
	for _, one := range s.Summaries() {
		got = append(got, one.N)
	}
	if diff := cmp.Diff([]int{1, 2, 1, 1, 1}, got); diff != "" {
		t.Errorf("samples of each (-want +got):\n%s", diff)
	}
}

func TestWhatThePlatformMeasuredIsShownApart(t *testing.T) {
	all := []*baiv1.MetricSummary{{Metric: "loss"}, {Metric: "system.cpu"}, {Metric: "systematic"}, {Metric: "system.memory"}}
	own, system := printer.SplitSystem(all)
	if len(own) != 2 || own[0] != all[0] || own[1] != all[2] || len(system) != 2 || system[0] != all[1] || system[1] != all[3] {
		t.Errorf("%v and %v", own, system)
	}
}

func TestTheProgressOfASetHasItsEstimatedEnd(t *testing.T) {
	s := &baiv1.Set{RunCount: 12, Succeeded: 5, Active: 4}
	if got, want := printer.SetProgress(s), "5 of 12 runs ended, 4 active"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.EstimatedEndTime = timestamppb.New(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	if got, want := printer.SetProgress(s), "5 of 12 runs ended, 4 active, ends about "+printer.Time(s.GetEstimatedEndTime()); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
