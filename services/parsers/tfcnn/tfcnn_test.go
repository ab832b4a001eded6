package tfcnn_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/parsers/report"
	"github.com/benchmark-ai/bai/services/parsers/report/reporttest"
	"github.com/benchmark-ai/bai/services/parsers/tfcnn"
)

const (
	train     = "constructed-train"
	kubebench = "constructed-kubebench-worker0"
	eval      = "constructed-eval"
)

func parse(tb testing.TB, text string) report.Report {
	tb.Helper()
	return reporttest.Parse(tb, tfcnn.Kind(), text)
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
			said += fmt.Sprintf("; %s %.12g", m.Name, m.Value)
		}
	}
	return said
}

// lines returns all metrics.
func lines(r report.Report) []string {
	var all []string
	for _, m := range r.Metrics {
		line := fmt.Sprintf("%s %.12g %s", m.Name, m.Value, m.Unit)
		if m.Headline {
			line += " headline"
		}
		all = append(all, line)
	}
	return all
}

func TestThroughputIsTheTotalOfTheTool(t *testing.T) {
	t.Parallel()
	want := []string{
		"total_images_per_second 3.19 images/sec headline", "images_per_second 3.3 images/sec", "images_per_second_uncertainty 0 images/sec",
		"images_per_second_jitter 0.1 images/sec", "loss 8.013 1", "steps 20 1", "batch_size 64 1", "batch_size_per_device 32 1",
		"num_batches 20 1", "num_epochs 0 1", "settings 1 1",
	}
	for _, name := range []string{train, kubebench} {
		r := parse(t, capture(t, name))
		if diff := cmp.Diff(want, lines(r)); diff != "" || r.State != report.OK {
			t.Errorf("%s: %s %s\n%s", name, r.State, r.Reason, diff)
		}
	}
}

// Kubebench found fourteen results in such a log. Here are the thirteen that its example has: the total, the version, three numbers and
// eight texts; Sync is printed by workers of a cluster only.
func TestAllResultsOfKubebenchAreThere(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"model": "resnet50", "dataset": "imagenet (synthetic)", "mode": "training", "singlesess": "False", "data_format": "NHWC",
		"layout_optimizer": "False", "optimizer": "sgd", "variables": "parameter_server",
	}
	settings := func(text string) map[string]string {
		r := parse(t, text)
		if r.Version != "1.13" {
			t.Errorf("version %q", r.Version)
		}
		return r.Metrics[len(r.Metrics)-1].Labels
	}
	if diff := cmp.Diff(want, settings(capture(t, kubebench))); diff != "" {
		t.Error(diff)
	}
	want["sync"] = "True"
	cluster := strings.Replace(capture(t, train), "==========\n", "Sync:        True\n==========\n", 1)
	if diff := cmp.Diff(want, settings(cluster)); diff != "" {
		t.Error(diff)
	}
}

func TestEvaluationsHaveAccuracies(t *testing.T) {
	t.Parallel()
	const accuracies = "top_1_accuracy 0.7512 ratio, top_5_accuracy 0.9231 ratio"
	r := parse(t, capture(t, eval))
	if got := strings.Join(lines(r), ", "); say(r) != "ok; total_images_per_second 3.41" || !strings.Contains(got, accuracies) {
		t.Errorf("%s: %s", say(r), got)
	}
	const done = "Done with training\nAccuracy @ 1 = 0.7512 Accuracy @ 5 = 0.9231 [9 examples]"
	during := strings.Replace(capture(t, train), "total images/sec: 3.19", done, 1)
	if got := say(parse(t, during)); got != "ok; top_1_accuracy 0.7512" {
		t.Error(got)
	}
	more := strings.NewReplacer("8.013", "8.013\t0.125\t0.25", "total_loss", "total_loss\ttop_1_accuracy\ttop_5_accuracy")
	columns := more.Replace(capture(t, train))
	if got := strings.Join(lines(parse(t, columns)), ", "); !strings.Contains(got, "top_1_accuracy 0.125 ratio, top_5_accuracy 0.25 ratio") {
		t.Error(got)
	}
}

func TestLinesOfSeveralProcessesAreRead(t *testing.T) {
	t.Parallel()
	for _, tag := range []string{"[1,%d]<stdout>:", "[1,%d]<stdout>: ", "[prterun-a-host-with-a-name-that-is-long-4242@1,%d]<stdout>: "} {
		var all strings.Builder
		for line := range strings.Lines(capture(t, train)) {
			all.WriteString(fmt.Sprintf(tag, 0) + line + fmt.Sprintf(tag, 1) + line)
		}
		r := parse(t, all.String())
		if got := say(r); got != "ok; total_images_per_second 3.19" || len(r.Metrics) != 11 || !tfcnn.Kind().Looks([]byte(all.String())) {
			t.Errorf("%s: %s, %d metrics", tag, got, len(r.Metrics))
		}
	}
}

func TestAFailureIsToldInTheWordsOfTheTool(t *testing.T) {
	t.Parallel()
	const trace = "Traceback (most recent call last):\n  File \"tf_cnn_benchmarks.py\", line 73, in <module>\n    app.run(main)\n"
	const memory = "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[64,256,56,56]"
	const flags = "FATAL Flags parsing error: Unknown command line flag 'x'"
	const killed = "mpirun noticed that process rank 1 with PID 7 on node a exited on signal 9 (Killed)."
	begin, _, _ := strings.Cut(capture(t, train), "Step\t")
	const level = "INFO|2019|a.py|1| "
	for text, want := range map[string]string{
		begin + trace + memory + "\n": "failed " + memory,
		trace:                         "failed Traceback (most recent call last)",
		level + strings.ReplaceAll(trace, "\n", "\n"+level) + "ValueError: x\n": "failed ValueError: x",
		flags + "\n":          "failed " + flags,
		begin + killed + "\n": "failed " + killed,
	} {
		if got := say(parse(t, text)); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestTheLastCompleteRunCounts(t *testing.T) {
	t.Parallel()
	one := capture(t, train)
	two := strings.ReplaceAll(one, "total images/sec: 3.19", "total images/sec: 4.5")
	cut, _, _ := strings.Cut(two, "total")
	for name, test := range map[string]struct{ text, want string }{
		"two": {one + two, "ok; total_images_per_second 4.5"},
		"the second is cut off": {
			one + cut, "partial no line total images/sec; the values are those of the run before; total_images_per_second 3.19",
		},
		"the first is cut off": {cut + one, "ok; total_images_per_second 3.19"},
		"alone, and cut off":   {cut, "partial no line total images/sec"},
		"no number":            {strings.Replace(one, "3.19", "nan", 1), "partial cannot read total_images_per_second nan"},
		"no loss":              {strings.Replace(one, "8.013", "nan", 1), "partial cannot read loss nan; total_images_per_second 3.19"},
		"the end alone":        {"total images/sec: 3.19\n", "ok; total_images_per_second 3.19"},
		"nothing of it":        {"hello: 3\n1\timages\n", "empty no result in the text"},
	} {
		if got := say(parse(t, test.text)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestParserOfTFCNNPassesTheSuite(t *testing.T) {
	reporttest.Suite{
		Kind:   tfcnn.Kind(),
		Own:    []string{train + ".txt", kubebench + ".txt", eval + ".txt"},
		Others: []string{"{}", "[]", "Model: x\n", "images/sec\n", ":::MLPv0.5.0 resnet 1 (a.py:1) run_start\n" + capture(t, train)},
		Cuts: []reporttest.Cut{
			{File: train + ".txt", End: "total images/sec"},
			{File: kubebench + ".txt", End: "total images/sec"},
			{File: eval + ".txt", End: "total images/sec"},
		},
	}.Run(t)
}

func FuzzParse(f *testing.F) {
	reporttest.Fuzz(f, tfcnn.Kind(), "1\timages/sec: \t\t\t\nDone with training\nTensorFlow:  \nE|||| \n[<stdout>:")
}

func BenchmarkParse(b *testing.B) {
	whole := capture(b, train)
	words := "I0501 10:00:03.000000 140 basic_session_run_hooks.py:260] some words of TensorFlow, which are long\n"
	steps := strings.Repeat("10\timages/sec: 3.2 +/- 0.1 (jitter = 0.2)\t7.849\n"+words, 50000)
	text := strings.Replace(whole, "20\timages", steps+"20\timages", 1)
	reporttest.Benchmark(b, tfcnn.Kind(), text)
}
