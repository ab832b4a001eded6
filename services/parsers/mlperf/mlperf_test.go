package mlperf_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/parsers/mlperf"
	"github.com/benchmark-ai/bai/services/parsers/report"
	"github.com/benchmark-ai/bai/services/parsers/report/reporttest"
)

func parse(tb testing.TB, text string) report.Report {
	tb.Helper()
	return reporttest.Parse(tb, mlperf.Kind(), text)
}

func capture(tb testing.TB, name string) string {
	tb.Helper()
	return reporttest.Capture(tb, name+".txt")
}

// say returns the state of a report, and its headlines.
func say(r report.Report) string {
	said := reporttest.State(r)
	for _, m := range r.Metrics {
		if m.Headline {
			said += fmt.Sprintf("; %s %.12g %s", m.Name, m.Value, m.Unit)
		}
	}
	return said
}

// lines returns all metrics.
func lines(r report.Report) []string {
	all := make([]string, 0, len(r.Metrics))
	for _, m := range r.Metrics {
		line := strings.Join(strings.Fields(fmt.Sprintf("%s %s %.15g %s %s", m.Name, m.Labels["metric"], m.Value, m.Unit, m.Direction)), " ")
		if m.Headline {
			line += " headline"
		}
		all = append(all, line)
	}
	return all
}

func TestValuesAreThoseOfTheLog(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"logger-resnet": {
			"time_to_train 62.813 s lower headline", "init_time 12.345 s lower", "eval_accuracy 0.7612 1", "target_accuracy 0.759 1",
			"epoch_num 3 1", "samples_count 3843501 1", "throughput 64003.5 samples/s higher",
		},
		"logger-maskrcnn": {
			"time_to_train 62.813 s lower headline", "init_time 12.345 s lower", "eval_accuracy BBOX 0.3806 1", "eval_accuracy SEGM 0.3506 1",
			"target_accuracy 0.759 1", "epoch_num 3 1", "samples_count 3843501 1", "throughput 64003.5 samples/s higher",
		},
		"logger-v0.5-resnet": {
			"time_to_train 2005 s lower headline", "eval_accuracy 0.7502 1", "target_accuracy 0.749 1", "epoch_num 4 1",
		},
		"published-v0.5-gnmt": {
			"time_to_train 2444.659993887 s lower headline", "eval_accuracy 22.22 1", "target_accuracy 21.8 1", "epoch_num 1 1",
		},
		"published-v0.6-transformer": {"time_to_train 1174.865 s lower headline", "eval_accuracy 25.3298759460449 1", "epoch_num 3 1"},
	} {
		r := parse(t, capture(t, name))
		if diff := cmp.Diff(want, lines(r)); diff != "" || r.State != report.OK {
			t.Errorf("%s: %s %s\n%s", name, r.State, r.Reason, diff)
		}
		if old := strings.Contains(name, "v0.5"); old != (r.Version == "0.5.0") {
			t.Errorf("%s: version %q", name, r.Version)
		}
	}
}

func TestARunThatIsNoSuccessIsFailed(t *testing.T) {
	t.Parallel()
	failed := parse(t, capture(t, "logger-resnet-aborted"))
	if got := say(failed); got != "failed run_stop: status aborted" || len(failed.Metrics) != 6 {
		t.Errorf("%s, %d metrics", got, len(failed.Metrics))
	}
	old := strings.Replace(capture(t, "logger-v0.5-resnet"), `{"success": true}`, `{"success": false}`, 1)
	if got := say(parse(t, old)); got != "failed run_stop: status success: false" {
		t.Error(got)
	}
	silent := strings.Replace(capture(t, "logger-resnet"), `"status": "success", `, "", 1)
	if got := say(parse(t, silent)); got != "partial run_stop does not say whether the run was a success; time_to_train 62.813 s" {
		t.Error(got)
	}
}

// shifted returns a log of the same run at a later time.
func shifted(text string, ms int) string {
	var all strings.Builder
	for line := range strings.Lines(text) {
		before, rest, ok := strings.Cut(line, `"time_ms": 17`)
		if ok {
			var at int
			_, _ = fmt.Sscanf(rest, "%d", &at)
			rest = fmt.Sprintf(`"time_ms": 17%011d`, at+ms) + rest[11:]
		}
		all.WriteString(before + rest)
	}
	return all.String()
}

func TestSeveralProcessesAreOneRun(t *testing.T) {
	t.Parallel()
	first, second := capture(t, "logger-resnet"), shifted(capture(t, "logger-resnet"), 250)
	if got := say(parse(t, second)); got != "ok; time_to_train 62.813 s" {
		t.Fatal(got)
	}
	var mixed strings.Builder
	a, b := strings.SplitAfter(first, "\n"), strings.SplitAfter(second, "\n")
	for i := range a {
		mixed.WriteString(strings.Replace(a[i], ":::", " 0: :::", 1) + strings.Replace(b[i], ":::", "ray-training  | [1] :::", 1))
	}
	for name, text := range map[string]string{
		"mixed": mixed.String(), "one after the other": first + second, "the other way round": second + first,
	} {
		r := parse(t, text)
		if got := say(r); got != "ok; time_to_train 63.063 s" || len(r.Metrics) != 7 {
			t.Errorf("%s: %s, %d metrics", name, got, len(r.Metrics))
		}
	}
	one := strings.Replace(first, `"status": "success"`, `"status": "aborted"`, 1)
	if got := say(parse(t, one+second)); got != "failed run_stop: status aborted" {
		t.Error(got)
	}
}

func TestTheLastCompleteRunCounts(t *testing.T) {
	t.Parallel()
	first := capture(t, "logger-resnet")
	faster := strings.Replace(first, `"time_ms": 1700000075176`, `"time_ms": 1700000075100`, 1)
	second := shifted(faster, 3600_000)
	if !strings.Contains(second, "1700003675100") {
		t.Fatal("the log has changed")
	}
	early, _, _ := strings.Cut(second, "epoch_stop")
	late, _, _ := strings.Cut(first, "run_stop")
	cut := second[:strings.LastIndex(second, ":::MLLOG")]
	begin, _, _ := strings.Cut(second, "run_start")
	noInit := second[strings.LastIndex(begin, "\n")+1:]
	const before = "; the values are those of the run before; time_to_train 62.813 s"
	for name, test := range map[string]struct{ text, want string }{
		"two":                         {first + second, "ok; time_to_train 62.737 s"},
		"the second is cut off":       {first + cut, "partial no line run_stop" + before},
		"the second is cut off early": {first + early, "partial no line run_stop" + before},
		"the first is cut off":        {late + "\n" + second, "ok; time_to_train 62.737 s"},
		"the first is cut off, and the second has no start of init": {late + "\n" + noInit, "ok; time_to_train 62.737 s"},
		"the first aborted":  {capture(t, "logger-resnet-aborted") + second, "ok; time_to_train 62.737 s"},
		"the second aborted": {first + shifted(capture(t, "logger-resnet-aborted"), 3600_000), "failed run_stop: status aborted"},
	} {
		if got := say(parse(t, test.text)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestALogThatLacksSomethingIsNotOK(t *testing.T) {
	t.Parallel()
	log := capture(t, "logger-resnet")
	const broken = "partial cannot read a line eval_accuracy; time_to_train 62.813 s"
	for name, test := range map[string]struct{ text, want string }{
		"no start":                {strings.Replace(log, "run_start", "run_begin", 1), "partial no line run_start"},
		"no stop":                 {strings.Replace(log, "run_stop", "run_final", 1), "partial no line run_stop"},
		"stop before start":       {strings.Replace(log, "1700000075176", "1600000075176", 1), "partial run_stop is before run_start"},
		"an accuracy that is NaN": {strings.Replace(log, "0.7612", "NaN", 1), broken},
		"an accuracy in words":    {strings.Replace(log, "0.7612", `"bad"`, 1), broken},
		"a time in words":         {strings.Replace(log, "1700000075176", `"x"`, 1), "partial no line run_stop"},
		"a time in exponents":     {strings.Replace(log, "1700000075176", `1.7e12`, 1), "partial no line run_stop"},
		"nothing of it":           {"hello :::ML\n:::MLLOG words\n", "empty no result in the text"},
		"another key alone":       {`:::MLLOG {"time_ms": 1, "key": "seed", "value": 1}` + "\n", "empty no line run_start"},
	} {
		if got := say(parse(t, test.text)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	text := strings.NewReplacer("1700000075176", `"1700000075176.5"`, `"key": "`, `"key":"`).Replace(log)
	if got := say(parse(t, text)); got != "ok; time_to_train 62.8135 s" {
		t.Error(got)
	}
}

func TestQualitiesByNameAndDeferredOnesAreRead(t *testing.T) {
	t.Parallel()
	const start, stop = ":::MLL 1.5 run_start: {}\n", ":::MLL 3.75 run_stop: {\"metadata\": {\"status\": \"success\"}}\n"
	text := start + `:::MLL 2 eval_accuracy: {"value": 89.5, "metadata": {"metric": "FID"}}` + "\n" +
		`:::MLL 2 eval_accuracy: {"value": 0.15, "metadata": {"metric": "CLIP"}}` + "\n" +
		`:::MLL 2 target_accuracy: {"value": {"BBOX": 0.3, "SEGM": "0.25"}}` + "\n" +
		`:::MLPv0.5.0 ssd 2 (a.py:1) eval_accuracy: "DEFERRED: 1df9b2ab"` + "\n" + stop
	want := []string{
		"time_to_train 2.25 s lower headline", "eval_accuracy FID 89.5 1", "eval_accuracy CLIP 0.15 1", "target_accuracy BBOX 0.3 1",
		"target_accuracy SEGM 0.25 1",
	}
	r := parse(t, text)
	if diff := cmp.Diff(want, lines(r)); diff != "" || r.State != report.OK {
		t.Errorf("%s %s\n%s", r.State, r.Reason, diff)
	}
}

func TestParserOfMLPerfPassesTheSuite(t *testing.T) {
	reporttest.Suite{
		Kind:   mlperf.Kind(),
		Own:    []string{"logger-resnet.txt", "logger-v0.5-resnet.txt", "published-v0.5-gnmt.txt", "published-v0.6-transformer.txt"},
		Others: []string{"{}", "[]", ":::MLLOG\n", ":::MLLOG [convert-error: x]\n", ":::DLPAL a b\n"},
		Open:   `:::MLLOG {"time_ms": 1, "key": "run_start", "value": `,
		Cuts: []reporttest.Cut{
			{File: "logger-resnet.txt", End: "run_stop", Bytes: true},
			{File: "logger-maskrcnn.txt", End: "run_stop", Bytes: true},
			{File: "published-v0.5-gnmt.txt", End: "run_stop", Bytes: true},
			{File: "published-v0.6-transformer.txt", End: "run_stop", Bytes: true},
		},
	}.Run(t)
}

func FuzzParse(f *testing.F) {
	reporttest.Fuzz(f, mlperf.Kind())
}

func BenchmarkParse(b *testing.B) {
	log := capture(b, "logger-resnet")
	stats := log[strings.LastIndex(log[:strings.Index(log, "tracked_stats")], "\n")+1:]
	stats = stats[:strings.Index(stats, "\n")+1]
	many := strings.Repeat(stats+"epoch 1: step 12, and other words of the program about its loss, 0.25\n", 30000)
	text := strings.Replace(log, stats, many, 1)
	reporttest.Benchmark(b, mlperf.Kind(), text)
}
