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
}

func results() []result {
	const s, b = report.Seconds, report.Bytes
	return []result{
		{"cpu_wall_time_per_batch", s, report.Lower, true, []string{"CPU Wall Time per batch"}, "median time of a call for each batch"},
		{"gpu_time_per_batch", s, report.Lower, true, []string{"GPU Time per batch"}, "median time of a call on the GPU for each batch"},
		{"cpu_wall_time", s, report.Lower, true, []string{"CPU Wall Time", "CPU Total Wall Time"}, "median time of a call"},
		{"gpu_time", s, report.Lower, true, []string{"GPU Time"}, "median time of a call on the GPU"},
		{
			"time_to_first_batch", s, report.Lower, false,
			[]string{"Time to first batch"},
			"time from the start until the first batch is done",
		},
		{"compilation_time", s, report.Lower, false, []string{"PT2 Compilation time"}, "time of the compiler of PyTorch 2"},
		{"cpu_peak_memory", b, report.Lower, false, []string{"CPU Peak Memory"}, "most memory of the process"},
		{"gpu_peak_memory", b, report.Lower, false, []string{"GPU Peak Memory"}, "most memory used on a GPU"},
		{"flops", "FLOP/s", report.Higher, false, []string{"FLOPS", "GPU FLOPS"}, "floating point operations in a second"},
		{"graph_breaks", report.Count, report.Lower, false, []string{"PT2 Graph Breaks"}, "places where a compiled graph ends"},
	}
}

// parse reads a value with its unit.
func (r result) parse(text string) (float64, bool) {
	number, unit, _ := strings.Cut(text, " ")
	exponent, binary, ok := scale(r.unit, strings.TrimSpace(unit))
	if !ok || strings.ContainsAny(number, "eE") {
		return 0, false
	}
	v, ok := report.Number(number + exponent)
	if v *= binary; !ok || v < 0 || v > 1e300 {
		return 0, false
	}
	return v, true
}

// scale returns what a number in a unit is multiplied by: a decimal exponent, so that it stays exact, or a power of 1024.
func scale(base, unit string) (exponent string, binary float64, ok bool) {
	switch base {
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
	if exponent, ok = map[string]string{"B": "", "KB": "e3", "kB": "e3", "MB": "e6", "GB": "e9", "TB": "e12"}[unit]; ok {
		return exponent, 1, true
	}
	binary, ok = map[string]float64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}[unit]
	return "", binary, ok
}
