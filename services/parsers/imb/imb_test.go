package imb_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/parsers/imb"
	"github.com/benchmark-ai/bai/services/parsers/report"
	"github.com/benchmark-ai/bai/services/parsers/report/reporttest"
)

func capture(tb testing.TB, name string) string {
	tb.Helper()
	return reporttest.Capture(tb, name+".txt")
}

func parse(tb testing.TB, text string) report.Report {
	tb.Helper()
	return reporttest.Parse(tb, imb.Kind(), text)
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
	where := m.Labels["benchmark"] + " " + m.Labels["processes"]
	for _, l := range []string{"groups", "mode", "group", "bytes"} {
		if v, ok := m.Labels[l]; ok {
			where += " " + l + " " + v
		}
	}
	return fmt.Sprintf("%s %s %.12g", where, m.Name, m.Value)
}

func TestHeadlinesAreThoseThatTheToolPrints(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"pingpong-msglog22": {"ok", "PingPong 2 peak_bandwidth 7788240000", "PingPong 2 minimum_latency 3.34e-06"},
		"uniband":           {"ok", "Uniband 2 peak_bandwidth 21160000", "Biband 2 peak_bandwidth 29340000"},
		"multi0": {
			"ok", "Multi-PingPong 2 groups 2 peak_bandwidth 1020000", "Multi-PingPong 2 groups 2 minimum_latency 2.75e-06",
			"Multi-Sendrecv 2 groups 2 peak_bandwidth 1150000", "Multi-Sendrecv 2 groups 2 minimum_latency 5.45e-06",
			"Sendrecv 4 peak_bandwidth 1460000", "Sendrecv 4 minimum_latency 2.95e-06",
			"Multi-Allreduce 2 groups 2 minimum_latency 4.35e-06", "Allreduce 4 minimum_latency 4.82e-06",
			"Multi-Barrier 2 groups 2 minimum_latency 3.78e-06", "Barrier 4 minimum_latency 4.06e-06",
		},
	} {
		if diff := cmp.Diff(want, headlines(parse(t, capture(t, name)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestEveryRowIsReadWithItsColumns(t *testing.T) {
	t.Parallel()
	got := map[string]bool{}
	for _, name := range []string{"pingpong-msglog22", "all", "multi1", "uniband"} {
		for _, m := range parse(t, capture(t, name)).Metrics {
			got[name+": "+short(m)] = true
		}
	}
	for _, want := range []string{
		"pingpong-msglog22: PingPong 2 bytes 0 time 3.47e-06", "pingpong-msglog22: PingPong 2 bytes 4194304 bandwidth 7515500000",
		"pingpong-msglog22: PingPong 2 bytes 65536 repetitions 640",
		"multi1: Multi-PingPong 2 groups 2 group 1 bytes 4 bandwidth 880000", "multi1: Multi-Barrier 2 groups 2 group 0 time_max 4.44e-06",
		"multi1: Sendrecv 4 group 0 bytes 2 time_avg 3.35e-06", "uniband: Biband 2 bytes 2 message_rate 7120987",
	} {
		if !got[want] {
			t.Errorf("no %s", want)
		}
	}
}

func TestAllBenchmarksOfIMBMPI1AreRead(t *testing.T) {
	t.Parallel()
	r := parse(t, capture(t, "all"))
	seen := map[string]bool{}
	for _, m := range r.Metrics {
		if m.Headline {
			seen[m.Labels["benchmark"]] = true
		}
	}
	want := strings.Fields(`PingPong PingPing Sendrecv Exchange Allreduce Reduce Reduce_local Reduce_scatter Reduce_scatter_block
		Allgather Allgatherv Gather Gatherv Scatter Scatterv Alltoall Alltoallv Bcast Barrier`)
	for _, b := range want {
		if !seen[b] {
			t.Errorf("no headline of %s", b)
		}
	}
	if r.State != report.OK || r.Version != "2021.11" || len(seen) != len(want) {
		t.Errorf("%s %s, version %s, %d benchmarks", r.State, r.Reason, r.Version, len(seen))
	}
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	t.Parallel()
	whole := capture(t, "pingpong-msglog22")
	for name, tt := range map[string]struct{ text, want string }{
		"a sample out of time": {
			capture(t, "timeout"), "partial Allreduce 4: time-out.; Time limit (secs_per_sample * msg_sizes_list_len) is over; " +
				"use \"-time X\" or SECS_PER_SAMPLE=X (IMB_settings.h) to increase time limit.",
		},
		"no end": {
			strings.ReplaceAll(whole, "# All processes entering MPI_Finalize", ""), "partial IMB has not come to its end, MPI_Finalize",
		},
		"ended by the launcher": {
			capture(t, "terminated"),
			"partial IMB has not come to its end, MPI_Finalize; Invalid benchmark name nonsense; = BAD TERMINATION OF ONE " +
				"OF YOUR APPLICATION PROCESSES",
		},
		"no slots": {
			capture(t, "no-slots"),
			"failed There are not enough slots available in the system to satisfy the 99 slots that were requested by the application: IMB-MPI1",
		},
		"killed": {
			capture(t, "killed-early"), "failed mpirun noticed that process rank 1 with PID 0 on node vm exited on signal 9 (Killed).",
		},
		"no program": {
			capture(t, "not-found"),
			"failed mpirun was unable to launch the specified application as it could not access or execute an executable: " +
				"Executable: /nonexistent Node: vm",
		},
		"another text":            {"hello\n", "empty no result in the text"},
		"nothing":                 {"", "empty no result in the text"},
		"a table without a row":   {whole[:strings.Index(whole, "            0 ")], "empty IMB printed no result"},
		"a row that is cut":       {whole[:strings.Index(whole, "799.04")+3], "partial IMB has not come to its end, MPI_Finalize"},
		"a header of other units": {strings.NewReplacer("t[usec]", "t[weeks]", "Mbytes/sec", "parsec").Replace(whole), "ok"},
	} {
		if got := headlines(parse(t, tt.text))[0]; !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

func TestAColumnOfAnUnknownUnitIsNoMetric(t *testing.T) {
	t.Parallel()
	for _, m := range parse(t, strings.ReplaceAll(capture(t, "pingpong-msglog22"), "Mbytes/sec", "MiBs/sec")).Metrics {
		if strings.Contains(m.Name, "bandwidth") {
			t.Fatalf("%+v, want none without its unit", m)
		}
	}
}

func TestDefectsAreAFailure(t *testing.T) {
	t.Parallel()
	const text = `#    Intel (R) MPI Benchmark Suite V3.2.3, MPI-1 part
# Benchmarking PingPong 
# #processes = 2 
       #bytes #repetitions      t[usec]   Mbytes/sec      defects
            0            3         0.47         0.00         0.00
            4            3         0.56         7.15         1.00
# All processes entering MPI_Finalize
`
	r := parse(t, text)
	want := []string{
		"failed PingPong: defects in 4 3 0.56 7.15 1.00", "PingPong 2 peak_bandwidth 7150000", "PingPong 2 minimum_latency 4.7e-07",
	}
	if diff := cmp.Diff(want, headlines(r)); diff != "" || r.Version != "V3.2.3" {
		t.Errorf("version %s (-want +got):\n%s", r.Version, diff)
	}
}

// TestModesOfOneBenchmarkAreApart has what IMB-EXT prints, as src_c/IMB_output.c has it.
func TestModesOfOneBenchmarkAreApart(t *testing.T) {
	t.Parallel()
	const text = `#    Intel(R) MPI Benchmarks 2021.11, MPI-2 part
#---------------------------------------------------
# Benchmarking Unidir_Put 
# #processes = 2 
#---------------------------------------------------
#
#    MODE: AGGREGATE 
#
       #bytes #repetitions      t[usec]   Mbytes/sec
            0            3         0.47         0.00
            4            3         0.50         8.00
#---------------------------------------------------
# Benchmarking Unidir_Put 
# #processes = 2 
#---------------------------------------------------
#
#    MODE: NON-AGGREGATE 
#
       #bytes #repetitions      t[usec]   Mbytes/sec
            0            3         4.70         0.00
            4            3         5.00         0.80
#---------------------------------------------------
# Benchmarking Window 
# #processes = 2 
#---------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
            4            3         1.00         3.00         2.00
# All processes entering MPI_Finalize
`
	want := []string{
		"ok", "Unidir_Put 2 mode aggregate peak_bandwidth 8000000", "Unidir_Put 2 mode aggregate minimum_latency 4.7e-07",
		"Unidir_Put 2 mode non-aggregate peak_bandwidth 800000", "Unidir_Put 2 mode non-aggregate minimum_latency 4.7e-06",
		"Window 2 minimum_latency 2e-06",
	}
	if diff := cmp.Diff(want, headlines(parse(t, text))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	cut, _, _ := strings.Cut(text, "            4            3         5.00")
	want = []string{
		"partial IMB has not come to its end, MPI_Finalize", "Unidir_Put 2 mode aggregate bytes 4 bandwidth 8000000",
		"Unidir_Put 2 mode non-aggregate bytes 0 bandwidth 0",
	}
	r := parse(t, cut)
	got := []string{reporttest.State(r)}
	for _, m := range r.Metrics {
		if m.Name == "bandwidth" && (m.Labels["mode"] == "non-aggregate" || m.Labels["bytes"] == "4") {
			got = append(got, short(m))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

func TestOfTwoRunsInOneTextTheLastThatHasEndedCounts(t *testing.T) {
	t.Parallel()
	pingpong, all := capture(t, "pingpong-msglog22"), capture(t, "uniband")
	uniband := []string{"Uniband 2 peak_bandwidth 21160000", "Biband 2 peak_bandwidth 29340000"}
	for name, tt := range map[string]struct {
		text  string
		state string
		want  []string
	}{
		"both have ended":               {pingpong + all, "ok", uniband},
		"the later is cut":              {all + pingpong[:len(pingpong)/2], "partial a later run has not ended", uniband},
		"the earlier is cut":            {pingpong[:len(pingpong)/2] + all, "ok", uniband},
		"the earlier failed":            {capture(t, "no-slots") + all, "ok", uniband},
		"three":                         {all + pingpong + all, "ok", uniband},
		"with the number of Open MPI 4": {"[1,0]<stdout>:" + strings.ReplaceAll(all, "\n", "\n[1,0]<stdout>:"), "ok", uniband},
		"with the number of Open MPI 5": {"[1,0]<stdout>: " + strings.ReplaceAll(all, "\n", "\n[1,0]<stdout>: "), "ok", uniband},
	} {
		if !imb.Kind().Looks([]byte(tt.text)) {
			t.Errorf("%s: is not recognised", name)
		}
		if diff := cmp.Diff(append([]string{tt.state}, tt.want...), headlines(parse(t, tt.text))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestParserOfIMBPassesTheSuite(t *testing.T) {
	reporttest.Suite{
		Kind:   imb.Kind(),
		Own:    []string{"pingpong-msglog22.txt", "all.txt", "multi1.txt"},
		Others: []string{"{}", "[]", "# OSU MPI Latency Test v7.3\n", "#bytes #repetitions\n", "#    Intel compiler\n"},
		Cuts:   []reporttest.Cut{{File: "pingpong-msglog22.txt"}, {File: "all.txt"}, {File: "multi0.txt"}, {File: "multi1.txt"}, {File: "uniband.txt"}},
	}.Run(t)
}

func FuzzParse(f *testing.F) {
	reporttest.Fuzz(f, imb.Kind())
}

func BenchmarkParse(b *testing.B) {
	text := strings.Repeat(capture(b, "pingpong-msglog22"), 1000)
	reporttest.Benchmark(b, imb.Kind(), text)
}
