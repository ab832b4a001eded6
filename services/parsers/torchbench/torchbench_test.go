package torchbench_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/parsers/report"
	"github.com/benchmark-ai/bai/services/parsers/report/reporttest"
	"github.com/benchmark-ai/bai/services/parsers/torchbench"
)

const (
	alexnet = "constructed-pytorch-cpu-alexnet-eval"
	resnet  = "constructed-cuda-resnet50-train"
)

func parse(tb testing.TB, text string) report.Report {
	tb.Helper()
	return reporttest.Parse(tb, torchbench.Kind(), text)
}

func capture(tb testing.TB, name string) string {
	tb.Helper()
	return reporttest.Capture(tb, name+".txt")
}

// say returns the state of a report, and its headlines with the model.
func say(r report.Report) string {
	said := reporttest.State(r)
	for _, m := range r.Metrics {
		if m.Headline {
			said += fmt.Sprintf("; %s %s %.12g %s", m.Labels["model"], m.Name, m.Value, m.Unit)
		}
	}
	return said
}

// lines returns all metrics.
func lines(r report.Report) []string {
	var all []string
	for _, m := range r.Metrics {
		line := strings.TrimSpace(fmt.Sprintf("%s %s %.12g %s %s", m.Name, m.Labels["gpu"], m.Value, m.Unit, m.Direction))
		if m.Headline {
			line += " headline"
		}
		all = append(all, line)
	}
	return all
}

func TestValuesAreThoseOfTheToolAndOfTime(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		alexnet: {
			"cpu_wall_time_per_batch  0.153402 s lower headline", "cpu_wall_time  0.153402 s lower", "time_to_first_batch  0.118221 s lower",
			"cpu_peak_memory  832000000 B lower", "wall_clock_time  8.94 s lower", "user_time  48.71 s lower", "system_time  6.02 s lower",
			"cpu_utilization  6.12 ratio", "max_resident_set_size  1716224 B lower", "major_page_faults  0 1 lower",
			"minor_page_faults  98 1 lower", "voluntary_context_switches  2 1 lower", "involuntary_context_switches  1 1 lower",
			"swaps  0 1 lower", "file_system_inputs  0 1 lower", "file_system_outputs  0 1 lower", "exit_status  0 1",
		},
		resnet: {
			"gpu_time_per_batch  0.048128 s lower headline", "cpu_wall_time_per_batch  0.048253 s lower", "cpu_wall_time  0.048253 s lower",
			"time_to_first_batch  0.812441 s lower", "flops 0 1.18732e+13 FLOP/s higher", "gpu_peak_memory 0 5637144576 B lower",
			"cpu_peak_memory  2816000000 B lower", "compilation_time  35.125 s lower", "graph_breaks  3 1 lower",
			"wall_clock_time  3723 s lower", "user_time  21.5 s lower", "system_time  5.25 s lower", "cpu_utilization  1.01 ratio",
			"max_resident_set_size  3221225472 B lower", "major_page_faults  12 1 lower", "minor_page_faults  345678 1 lower",
			"voluntary_context_switches  901 1 lower", "involuntary_context_switches  23 1 lower", "swaps  0 1 lower",
			"file_system_inputs  0 1 lower", "file_system_outputs  8 1 lower", "exit_status  0 1",
		},
	} {
		r := parse(t, capture(t, name))
		if diff := cmp.Diff(want, lines(r)); diff != "" || r.State != report.OK {
			t.Errorf("%s: %s %s\n%s", name, r.State, r.Reason, diff)
		}
	}
}

func TestLabelsAreWhatTheToolSaysThatItRuns(t *testing.T) {
	t.Parallel()
	const result = "\nCPU Total Wall Time:   1.5 milliseconds\n"
	for line, want := range map[string]map[string]string{
		"Running eval method from alexnet on cpu in eager mode with input batch size 64 and precision fp32.": {
			"model": "alexnet", "test": "eval", "device": "cpu", "batch_size": "64",
		},
		"Running train method from BERT_pytorch on cpu in dynamo inductor mode with input batch size None and precision fp32.": {
			"model": "BERT_pytorch", "test": "train", "device": "cpu", "batch_size": "None",
		},
		"Running eval method from alexnet on cpu in jit mode with input batch size 2.": {
			"model": "alexnet", "test": "eval", "device": "cpu", "batch_size": "2",
		},
		"Running eval method from alexnet on cpu in eager mode.": {"model": "alexnet", "test": "eval", "device": "cpu"},
		"Running eval method from alexnet on cpu":                {"model": "alexnet", "test": "eval", "device": "cpu"},
	} {
		r := parse(t, line+result)
		if r.State != report.OK || len(r.Metrics) != 1 || !cmp.Equal(r.Metrics[0].Labels, want) {
			t.Errorf("%s: %+v", line, r)
		}
	}
}

func TestAllUnitsAreRead(t *testing.T) {
	t.Parallel()
	text := capture(t, alexnet)
	for name, test := range map[string]struct{ old, with, want string }{
		"seconds":     {"153.402 milliseconds\nCPU Wall Time:", "1.5 seconds\nCPU Wall Time:", "cpu_wall_time_per_batch  1.5 s lower headline"},
		"us":          {"118.2210 ms", "118.2210 us", "time_to_first_batch  0.000118221 s lower"},
		"nanoseconds": {"118.2210 ms", "118.2210 nanoseconds", "time_to_first_batch  1.18221e-07 s lower"},
		"MB":          {"0.8125 GB", "812.5 MB", "cpu_peak_memory  812500000 B lower"},
		"GiB":         {"0.8125 GB", "0.8125 GiB", "cpu_peak_memory  872415232 B lower"},
		"KB":          {"0.8125 GB", "0.8125 KB", "cpu_peak_memory  812.5 B lower"},
		"GFLOPs":      {"CPU Peak", "FLOPS:  2.5 GFLOPs per second\nCPU Peak", "flops  2500000000 FLOP/s higher"},
		"old memory":  {"CPU Peak", "GPU Peak Memory:  2.5 GB\nCPU Peak", "gpu_peak_memory  2684354560 B lower"},
	} {
		r := parse(t, strings.Replace(text, test.old, test.with, 1))
		if all := "\n" + strings.Join(lines(r), "\n") + "\n"; r.State != report.OK || !strings.Contains(all, "\n"+test.want+"\n") {
			t.Errorf("%s: %s %s%swant %s", name, r.State, r.Reason, all, test.want)
		}
	}
	for name, test := range map[string]struct{ old, with, want string }{
		"minutes":         {"118.2210 ms", "118.2210 fortnights", "cannot read Time to first batch: 118.2210 fortnights"},
		"no unit":         {"118.2210 ms", "118.2210", "cannot read Time to first batch: 118.2210"},
		"no number":       {"0.8125 GB", "nan GB", "cannot read CPU Peak Memory: nan GB"},
		"negative":        {"0.8125 GB", "-1 GB", "cannot read CPU Peak Memory: -1 GB"},
		"time for memory": {"0.8125 GB", "0.8125 ms", "cannot read CPU Peak Memory: 0.8125 ms"},
	} {
		r := parse(t, strings.Replace(text, test.old, test.with, 1))
		if r.State != report.Partial || r.Reason != test.want || len(r.Metrics) != 16 {
			t.Errorf("%s: %s %s, %d metrics", name, r.State, r.Reason, len(r.Metrics))
		}
	}
}

func TestTheHeadlineIsTheTimeForABatch(t *testing.T) {
	t.Parallel()
	const cpu, cuda = "Running eval method from m on cpu in eager mode.\n", "Running eval method from m on cuda in eager mode.\n"
	const unknown = "partial no line Running, which tells the model;  gpu_time_per_batch 0.003 s"
	for text, want := range map[string]string{
		cpu + "CPU Total Wall Time: 2 ms\n":                              "ok; m cpu_wall_time 0.002 s",
		cpu + "CPU Wall Time per batch: 1 ms\nCPU Wall Time: 2 ms\n":     "ok; m cpu_wall_time_per_batch 0.001 s",
		cuda + "GPU Time: 3 ms\nCPU Total Wall Time: 2 ms\n":             "ok; m gpu_time 0.003 s",
		cuda + "CPU Total Wall Time: 2 ms\n":                             "partial no time of m",
		cuda + "GPU Time per batch: 3 ms\nGPU Time per batch: 4 ms\n":    "ok; m gpu_time_per_batch 0.004 s",
		"GPU Time per batch: 3 ms\nCPU Wall Time per batch: 4 ms\n":      unknown,
		"Running eval method from m on mps\nCPU Total Wall Time: 2 ms\n": "ok; m cpu_wall_time 0.002 s",
		cpu + " 10%|#\r100%|##\rCPU Total Wall Time: 2 ms\n":             "ok; m cpu_wall_time 0.002 s",
		cpu:             "empty no time of m",
		"hello\nGPU: 3": "empty no result in the text",
	} {
		if got := say(parse(t, text)); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestAFailureIsToldInTheWordsOfTheTool(t *testing.T) {
	t.Parallel()
	const (
		memory  = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 15.77 GiB"
		trace   = "Traceback (most recent call last):\n  File \"run.py\", line 512, in <module>\n    main()\n"
		during  = "KeyError: 'a'\n\nDuring handling of the above exception, another exception occurred:\n\n"
		running = "Running eval method from resnet50 on cuda in eager mode.\n"
		batch   = "GPU Time per batch: 3 ms\n"
		warning = "W1126 CUDA out of memory. Tried to allocate 2.00 GiB"
		signal  = "Command terminated by signal 9"
		exit    = "Command exited with non-zero status 255"
	)
	for text, want := range map[string]string{
		running + trace + memory + "\n":                     "failed " + memory,
		running + warning + "\n":                            "failed " + warning,
		trace + during + trace + "NotImplementedError: x\n": "failed NotImplementedError: x",
		trace: "failed Traceback (most recent call last)",
		"Unable to find model matching nomodel.\n\tCommand being timed: \"x\"\n": "failed Unable to find model matching nomodel.",
		exit + "\n":                     "failed " + exit,
		running + batch + signal + "\n": "failed " + signal + "; resnet50 gpu_time_per_batch 0.003 s",
		capture(t, alexnet) + running + trace + "E: x\n": "failed E: x; alexnet cpu_wall_time_per_batch 0.153402 s",
	} {
		if got := say(parse(t, text)); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestTheLastCompleteRunOfAModelCounts(t *testing.T) {
	t.Parallel()
	one, other := capture(t, alexnet), capture(t, resnet)
	again := strings.ReplaceAll(one, "153.402", "100.5")
	cut := again[:strings.Index(again, "CPU Wall Time per batch")]
	const (
		first  = "; alexnet cpu_wall_time_per_batch 0.153402 s"
		second = "; alexnet cpu_wall_time_per_batch 0.1005 s"
		third  = "; resnet50 gpu_time_per_batch 0.048128 s"
		exit   = "Command exited with non-zero status 1\n"
	)
	for name, test := range map[string]struct{ text, want string }{
		"twice":                 {one + again, "ok" + second},
		"two models":            {one + other, "ok" + first + third},
		"the second is cut off": {one + cut, "partial no time of alexnet; the values are those of the run before" + first},
		"the first is cut off":  {cut + one, "ok" + first},
		"the first failed":      {cut + exit + one, "ok" + first},
		"the second failed":     {one + cut + exit, "failed Command exited with non-zero status 1"},
	} {
		if got := say(parse(t, test.text)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestParserOfTorchBenchPassesTheSuite(t *testing.T) {
	reporttest.Suite{
		Kind:   torchbench.Kind(),
		Own:    []string{alexnet + ".txt", resnet + ".txt"},
		Others: []string{"{}", "[]", "Running 2s test @ http://localhost\n", "real 1.00\n", "Running tests from a on b\n", "CPU Time: 3\n"},
		Cuts:   []reporttest.Cut{{File: alexnet + ".txt"}, {File: resnet + ".txt"}},
	}.Run(t)
}

func FuzzParse(f *testing.F) {
	reporttest.Fuzz(f, torchbench.Kind(), "Traceback (most recent call last):\n  x\nE: x\nGPU 12 Peak Memory: 1e300 GB\nRunning a method from b on c.\n")
}

func BenchmarkParse(b *testing.B) {
	words := "Collecting results of step 12: the loss is 0.25, and CPU work goes on\n\tat some place\n  warnings.warn(message)\n"
	text := strings.Repeat(strings.Repeat(words, 500)+capture(b, resnet), 50)
	reporttest.Benchmark(b, torchbench.Kind(), text)
}
