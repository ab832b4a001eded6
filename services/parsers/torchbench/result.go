package torchbench

import (
	"strings"

	"github.com/benchmark-ai/bai/services/parsers/report"
)

// result is a metric of run.py, and how it prints it.
type result struct {
	name, unit string
	direction  report.Direction
	headline   bool
	titles     []string // before the colon, without the number of a GPU
	meaning    string
	gigabyte   float64 // bytes of what the tool calls a GB; 0 in results that have none
}

func results() []result {
	const s, b = report.Seconds, report.Bytes
	// cpu_monitor.py divides by 1.0e6, nvml_monitor.py by 1024 twice, and TorchBenchAnalyzer.py by 1024.
	const onCPU, onGPU = 1e6 * 1024, 1 << 30
	return []result{
		{
			name: "cpu_wall_time_per_batch", unit: s, direction: report.Lower, headline: true, titles: []string{"CPU Wall Time per batch"},
			meaning: "median time of a call for each batch",
		},
		{
			name: "gpu_time_per_batch", unit: s, direction: report.Lower, headline: true, titles: []string{"GPU Time per batch"},
			meaning: "median time of a call on the GPU for each batch",
		},
		{
			name: "cpu_wall_time", unit: s, direction: report.Lower, headline: true, titles: []string{"CPU Wall Time", "CPU Total Wall Time"},
			meaning: "median time of a call",
		},
		{
			name: "gpu_time", unit: s, direction: report.Lower, headline: true, titles: []string{"GPU Time"},
			meaning: "median time of a call on the GPU",
		},
		{
			name: "time_to_first_batch", unit: s, direction: report.Lower, titles: []string{"Time to first batch"},
			meaning: "time from the start until the first batch is done",
		},
		{
			name: "compilation_time", unit: s, direction: report.Lower, titles: []string{"PT2 Compilation time"},
			meaning: "time of the compiler of PyTorch 2",
		},
		{
			name: "cpu_peak_memory", unit: b, direction: report.Lower, titles: []string{"CPU Peak Memory"}, gigabyte: onCPU,
			meaning: "most memory of the process; a GB of the tool is 1024 · 10^6 B",
		},
		{
			name: "gpu_peak_memory", unit: b, direction: report.Lower, titles: []string{"GPU Peak Memory"}, gigabyte: onGPU,
			meaning: "most memory used on a GPU; a GB of the tool is 2^30 B",
		},
		{
			name: "flops", unit: "FLOP/s", direction: report.Higher, titles: []string{"FLOPS", "GPU FLOPS"},
			meaning: "floating point operations in a second",
		},
		{
			name: "graph_breaks", unit: report.Count, direction: report.Lower, titles: []string{"PT2 Graph Breaks"},
			meaning: "places where a compiled graph ends",
		},
	}
}

// parse reads a value with its unit.
func (r result) parse(text string) (float64, bool) {
	number, unit, _ := strings.Cut(text, " ")
	exponent, factor, ok := r.scale(strings.TrimSpace(unit))
	if !ok || strings.ContainsAny(number, "eE") {
		return 0, false
	}
	v, ok := report.Number(number + exponent)
	if v *= factor; !ok || v < 0 || v > 1e300 {
		return 0, false
	}
	return v, true
}

// scale returns what a number in a unit is multiplied by: a decimal exponent, so that it stays exact, or a factor.
func (r result) scale(unit string) (exponent string, factor float64, ok bool) {
	switch r.unit {
	case report.Count:
		return "", 1, unit == ""
	case "FLOP/s":
		unit, ok = strings.CutSuffix(unit, "FLOPs per second")
		exponent, known := map[string]string{"": "", "M": "e6", "G": "e9", "T": "e12", "P": "e15"}[unit]
		return exponent, 1, ok && known
	case report.Seconds:
		exponent, ok = map[string]string{
			"seconds": "", "s": "", "milliseconds": "e-3", "ms": "e-3", "microseconds": "e-6", "us": "e-6", "µs": "e-6",
			"nanoseconds": "e-9", "ns": "e-9",
		}[unit]
		return exponent, 1, ok
	}
	if exponent, ok = map[string]string{"B": "", "KB": "e3", "kB": "e3", "MB": "e6", "TB": "e12"}[unit]; ok {
		return exponent, 1, true
	}
	factor, ok = map[string]float64{"GB": r.gigabyte, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}[unit]
	return "", factor, ok
}
