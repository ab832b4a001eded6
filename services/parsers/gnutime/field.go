package gnutime

import (
	"strings"

	"github.com/benchmark-ai/bai/services/parsers/report"
)

// The fields, in the order in which they are reported. The first three are what every format has.
const (
	wall = iota
	user
	system
	cpu
	resident
	majorFaults
	minorFaults
	voluntary
	involuntary
	swaps
	inputs
	outputs
	exitStatus
	fields // how many there are
)

// field is a metric, and how time prints it.
type field struct {
	name, unit string
	direction  report.Direction
	label      string // before the value with -v, without the tab
	suffix     string // behind the value in the default format
	meaning    string
	parse      func(text string) (float64, bool)
}

// table returns the fields. The order of suffixes does not matter: none is the end of another.
func table() [fields]field {
	return [...]field{
		wall: {
			"wall_clock_time", report.Seconds, report.Lower, "Elapsed (wall clock) time (h:mm:ss or m:ss): ", "elapsed",
			"time from the start of the command to its end", seconds,
		},
		user: {
			"user_time", report.Seconds, report.Lower, "User time (seconds): ", "user",
			"CPU time of the command and its children in user mode", seconds,
		},
		system: {
			"system_time", report.Seconds, report.Lower, "System time (seconds): ", "system",
			"CPU time of the command and its children in the kernel", seconds,
		},
		cpu: {
			"cpu_utilization", report.Ratio, "", "Percent of CPU this job got: ", "%CPU",
			"CPU time for each second of wall clock time: 1 is one CPU", percent,
		},
		resident: {
			"max_resident_set_size", report.Bytes, report.Lower, "Maximum resident set size (kbytes): ", "maxresident",
			"most memory that one process had", kibibytes,
		},
		majorFaults: {
			"major_page_faults", report.Count, report.Lower, "Major (requiring I/O) page faults: ", "major",
			"page faults for which a page was read from disk", count,
		},
		minorFaults: {
			"minor_page_faults", report.Count, report.Lower, "Minor (reclaiming a frame) page faults: ", "minor",
			"page faults that needed no disk", count,
		},
		voluntary: {
			"voluntary_context_switches", report.Count, report.Lower, "Voluntary context switches: ", "",
			"times that the command waited for something", count,
		},
		involuntary: {
			"involuntary_context_switches", report.Count, report.Lower, "Involuntary context switches: ", "",
			"times that its time slice was over", count,
		},
		swaps: {"swaps", report.Count, report.Lower, "Swaps: ", "swaps", "times that it was swapped out of memory", count},
		inputs: {
			"file_system_inputs", report.Count, report.Lower, "File system inputs: ", "inputs",
			"blocks read from file systems", count,
		},
		outputs: {
			"file_system_outputs", report.Count, report.Lower, "File system outputs: ", "outputs",
			"blocks written to them", count,
		},
		exitStatus: {"exit_status", report.Count, "", "Exit status: ", "", "exit status of the command", count},
	}
}

// count reads a number that is not negative.
func count(text string) (float64, bool) {
	v, ok := report.Number(text)
	return v, ok && v >= 0
}

// kibibytes reads KiB: time calls them kbytes.
func kibibytes(text string) (float64, bool) {
	v, ok := count(text)
	return v * 1024, ok && v < 1e15
}

func percent(text string) (float64, bool) {
	v, ok := count(strings.TrimSuffix(text, "%"))
	return v / 100, ok
}

// seconds reads a time: 1.25, 0:01.25, 1:02:03, 0m1.003s, 1h 2m 3s. Shells print the decimal comma of some languages.
func seconds(text string) (float64, bool) {
	text = strings.Replace(text, ",", ".", 1)
	switch {
	case strings.Contains(text, ":"):
		return sixties(strings.Split(text, ":"))
	case strings.HasSuffix(text, "s"):
		text = strings.NewReplacer("h", ":", "m", ":", " ", "").Replace(strings.TrimSuffix(text, "s"))
		return sixties(strings.Split(text, ":"))
	}
	return count(text)
}

// sixties returns the seconds of [hours,] [minutes,] seconds. The minutes of bash may be more than 59.
func sixties(parts []string) (float64, bool) {
	if len(parts) > 3 {
		return 0, false
	}
	var sum float64
	for i, part := range parts {
		v, ok := count(part)
		if !ok || i > 0 && v >= 60 || v > 1e12 {
			return 0, false
		}
		sum = sum*60 + v
	}
	return sum, true
}
