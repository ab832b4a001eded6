package osu_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/parsers/osu"
	"github.com/benchmark-ai/bai/services/parsers/report"
	"github.com/benchmark-ai/bai/services/parsers/report/reporttest"
)

func capture(tb testing.TB, name string) string {
	tb.Helper()
	return reporttest.Capture(tb, name+".txt")
}

func parse(tb testing.TB, text string) report.Report {
	tb.Helper()
	return reporttest.Parse(tb, osu.Kind(), text)
}

// headlines returns the state and the headlines in short.
func headlines(r report.Report) []string {
	all := []string{reporttest.State(r)}
	for _, m := range r.Metrics {
		if m.Headline {
			all = append(all, short(m))
		}
	}
	return all
}

func short(m report.Metric) string {
	where := m.Labels["benchmark"]
	for _, l := range []string{"datatype", "pairs", "window", "window_creation", "synchronization", "memory", "bytes", "percentile"} {
		if v, ok := m.Labels[l]; ok {
			where += ", " + l + " " + v
		}
	}
	return fmt.Sprintf("%s: %s %.12g", where, m.Name, m.Value)
}

func TestHeadlinesAreTheBestRows(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"latency-5.9":        "MPI Latency: minimum_latency 1.1e-06",
		"latency-2.1":        "MPI Latency: minimum_latency 6.40095e-07",
		"bw-7.4":             "MPI Bandwidth, datatype MPI_CHAR: peak_bandwidth 11642100000",
		"bibw-7.4":           "MPI Bi-Directional Bandwidth, datatype MPI_CHAR: peak_bandwidth 21142100000",
		"mbw-mr-5.9":         "MPI Multiple Bandwidth / Message Rate, pairs 2, window 64: peak_bandwidth 22913440000",
		"allreduce-full-7.4": "MPI Allreduce Latency, datatype MPI_FLOAT: minimum_latency 2.1e-06",
		"barrier-7.4":        "MPI Barrier Latency: minimum_latency 1.73e-06",
		"ialltoall-7.4":      "MPI Non-blocking All-to-All Latency, datatype MPI_CHAR: minimum_latency 6.51e-06",
		"put-latency-cuda-7.4": "MPI_Put-CUDA Latency, datatype MPI_CHAR, window_creation MPI_Win_allocate, " +
			"synchronization MPI_Win_flush, memory D H: minimum_latency 3.4e-06",
		"allreduce-cuda-5.9": "MPI-CUDA Allreduce Latency: minimum_latency 2.04e-06",
	} {
		r := parse(t, capture(t, name))
		if diff := cmp.Diff([]string{"ok", want}, headlines(r)); diff != "" || !strings.HasSuffix(name, r.Version) {
			t.Errorf("%s, version %s (-want +got):\n%s", name, r.Version, diff)
		}
	}
}

func TestEveryColumnIsRead(t *testing.T) {
	t.Parallel()
	got := map[string]bool{}
	for _, name := range []string{"allreduce-full-7.4", "mbw-mr-5.9", "ialltoall-7.4", "latency-5.9"} {
		for _, m := range parse(t, capture(t, name)).Metrics {
			got[short(m)] = true
		}
	}
	for _, want := range []string{
		"MPI Allreduce Latency, datatype MPI_FLOAT, bytes 4: latency_min 1.98e-06",
		"MPI Allreduce Latency, datatype MPI_FLOAT, bytes 8: latency_max 2.24e-06",
		"MPI Allreduce Latency, datatype MPI_FLOAT, bytes 1048576: iterations 100",
		"MPI Allreduce Latency, datatype MPI_FLOAT, bytes 1048576, percentile 99: latency_percentile 0.000902",
		"MPI Multiple Bandwidth / Message Rate, pairs 2, window 64, bytes 1: message_rate 6430512.33",
		"MPI Non-blocking All-to-All Latency, datatype MPI_CHAR, bytes 2: overlap 0.1234",
		"MPI Latency, bytes 4194304: latency 0.00037055", "MPI Latency, bytes 0: latency 1.12e-06",
	} {
		if !got[want] {
			t.Errorf("no %s", want)
		}
	}
}

func TestEachDatatypeHasAHeadline(t *testing.T) {
	t.Parallel()
	want := []string{
		"ok", "MPI Broadcast Latency, datatype MPI_CHAR: minimum_latency 2.41e-06",
		"MPI Broadcast Latency, datatype MPI_INT: minimum_latency 2.47e-06",
	}
	if diff := cmp.Diff(want, headlines(parse(t, capture(t, "datatypes-7.4")))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFailuresAndWhatIsMissingAreSaid(t *testing.T) {
	t.Parallel()
	latency, put := capture(t, "latency-5.9"), capture(t, "put-latency-cuda-7.4")
	for name, tt := range map[string]struct{ text, want string }{
		"validation": {
			strings.Replace(put, "3.40              Pass", "3.40              Fail", 1), "failed MPI_Put-CUDA Latency 2: Validation Fail",
		},
		"validation at the end": {
			put + "DATA VALIDATION ERROR: osu_put_latency exited with status 1 on message size 2.\n",
			"failed DATA VALIDATION ERROR: osu_put_latency exited",
		},
		"too few processes": {"This test requires exactly two processes\n", "failed This test requires exactly two processes"},
		"not started": {
			"srun: error: Unable to create step for job 1: Invalid partition name\n", "failed srun: error: Unable to create step",
		},
		"killed": {
			latency + "mpirun noticed that process rank 1 with PID 0 on node vm exited on signal 9 (Killed).\n",
			"partial mpirun noticed that process rank 1",
		},
		"a row that is cut": {latency[:len(latency)-2], "partial MPI Latency: the row 4194304 370.5 is incomplete"},
		"a size alone":      {latency[:strings.Index(latency, "  370.55")], "partial MPI Latency: the row 4194304 is incomplete"},
		"a header alone":    {latency[:strings.Index(latency, "0   ")], "empty MPI Latency: no row"},
		"a title alone":     {"# OSU MPI Latency Test v5.9\n", "empty the benchmark printed no row"},
		"wrong units":       {strings.Replace(latency, "(us)", "(weeks)", 1), "empty the benchmark printed no row"},
		"another text":      {"hello\n1 2\n", "empty no result in the text"},
		"nothing":           {"", "empty no result in the text"},
		"one of two":        {latency + "\n# OSU MPI Bandwidth Test v5.9\n# Size      Bandwidth (MB/s)\n", "partial MPI Bandwidth: no row"},
	} {
		if got := headlines(parse(t, tt.text))[0]; !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

func TestOfTwoRunsOfABenchmarkTheLastCounts(t *testing.T) {
	t.Parallel()
	first, bw := capture(t, "latency-5.9"), capture(t, "bw-7.4")
	second := "# OSU MPI Latency Test v5.9\n# Size          Latency (us)\n1                       9.15\n"
	r := parse(t, first+bw+second)
	want := []string{"ok", "MPI Latency: minimum_latency 9.15e-06", "MPI Bandwidth, datatype MPI_CHAR: peak_bandwidth 11642100000"}
	if diff := cmp.Diff(want, headlines(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, m := range r.Metrics {
		if m.Name == "latency" && m.Labels["bytes"] != "1" {
			t.Errorf("%+v is of the first run", m)
		}
	}
}

// TestATextThatEndsAnywhereSaysNoMoreThanItsRows cuts each text behind each line, and in each of its last rows.
func TestTheNumberOfAProcessBeforeEachLineIsLeftOut(t *testing.T) {
	t.Parallel()
	text := capture(t, "bw-7.4")
	want := parse(t, text)
	for _, tag := range []string{"[1,0]<stdout>:", "[1,0]<stdout>: ", "[prterun-a-host-with-a-name-that-is-long-4242@1,0]<stdout>: "} {
		tagged := tag + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+tag) + "\n"
		if diff := cmp.Diff(want, parse(t, tagged)); diff != "" || !osu.Kind().Looks([]byte(tagged)) {
			t.Errorf("%s: (-want +got):\n%s", tag, diff)
		}
	}
}

func TestATextThatEndsAnywhereSaysNoMoreThanItsRows(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*-*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text := capture(t, strings.TrimSuffix(filepath.Base(file), ".txt"))
		whole := map[string]bool{}
		for _, m := range parse(t, text).Metrics {
			whole[fmt.Sprintf("%.12g", m.Value)] = true
		}
		for at := range len(text) {
			r := parse(t, text[:at])
			for _, m := range r.Metrics {
				if r.State == report.OK && !whole[fmt.Sprintf("%.12g", m.Value)] && text[at] == '\n' {
					t.Errorf("%s cut at %d: %+v", file, at, m)
				}
			}
		}
	}
}

func TestParserOfOSUPassesTheSuite(t *testing.T) {
	reporttest.Suite{
		Kind: osu.Kind(),
		Own:  []string{"latency-5.9.txt", "latency-2.1.txt", "allreduce-cuda-5.9.txt", "mbw-mr-5.9.txt"},
		Others: []string{
			"{}", "[]", "# OSU is a university\n", "# Size          Latency (us)\n", "#    Intel(R) MPI Benchmarks 2021.11, MPI-1 part\n",
		},
	}.Run(t)
}

func FuzzParse(f *testing.F) {
	reporttest.Fuzz(f, osu.Kind())
}

func BenchmarkParse(b *testing.B) {
	text := strings.Repeat(capture(b, "allreduce-full-7.4")+capture(b, "latency-5.9")+capture(b, "allreduce-cuda-5.9"), 1000)
	reporttest.Benchmark(b, osu.Kind(), text)
}
