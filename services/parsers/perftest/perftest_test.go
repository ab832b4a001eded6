package perftest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/parsers/perftest"
	"github.com/benchmark-ai/bai/services/parsers/report"
	"github.com/benchmark-ai/bai/services/parsers/report/reporttest"
)

func capture(tb testing.TB, name string) string {
	tb.Helper()
	return reporttest.Capture(tb, name+".txt")
}

func parse(tb testing.TB, text string) report.Report {
	tb.Helper()
	return reporttest.Parse(tb, perftest.Kind(), text)
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
	where := m.Labels["test"]
	for _, l := range []string{"side", "bytes", "sl", "flows", "port", "percentile"} {
		if v, ok := m.Labels[l]; ok {
			where += " " + l + " " + v
		}
	}
	return fmt.Sprintf("%s %s %.12g", where, m.Name, m.Value)
}

func TestTheHeadlineIsTheAverage(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"read-bw-gbit":         {"RDMA_Read BW bandwidth 97840000000"},
		"write-bw-mb":          {"RDMA_Write BW bandwidth 92530121113.6"}, // 11030.45 · 2²⁰ · 8
		"send-bw-mib-duration": {"Send BW bandwidth 92438433628.2"},
		"write-bw-cpu-util":    {"RDMA_Write BW bandwidth 92430000000"},
		"raw-bw-qos":           {"Send BW bandwidth 92870000000"},
		"write-bw-per-port":    {"RDMA_Write BW bandwidth 184910000000"},
		"write-bw-both": {
			"RDMA_Write Bidirectional BW side local bandwidth 92420000000", "RDMA_Write Bidirectional BW side remote bandwidth 92430000000",
		},
		"read-lat":           {"RDMA_Read Latency latency 1.69e-06"},
		"send-lat-unsorted":  {"Send Latency latency 8.7e-07"},
		"write-lat-duration": {"RDMA_Write Latency latency 8.3e-07"},
		"write-lat-old":      {"RDMA_Write Latency latency 8.4e-07"},
		"fs-rate":            {"Send flow_rate 10013.02"},
	} {
		if diff := cmp.Diff(append([]string{"ok"}, want...), headlines(parse(t, capture(t, name)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAnOptionFewTablesLackIsRead(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"read-bw-gbit": {
			"RDMA_Read BW bytes 2 bandwidth_peak 80000000", "RDMA_Read BW bytes 2 message_rate 3750000",
			"RDMA_Read BW bytes 8388608 iterations 1000",
		},
		"write-bw-cpu-util": {"RDMA_Write BW bytes 65536 cpu_utilization 0.125"},
		"raw-bw-qos":        {"Send BW bytes 1024 sl 3 bandwidth_average 92870000000"},
		"write-bw-per-port": {
			"RDMA_Write BW bytes 65536 port 2 bandwidth_port 92450000000", "RDMA_Write BW bytes 65536 port 1 message_rate_port 176353",
		},
		"write-bw-both": {
			"RDMA_Write Bidirectional BW bytes 65536 bandwidth_average 184850000000", "RDMA_Write Bidirectional BW bandwidth 184850000000",
		},
		"send-lat-unsorted":  {"Send Latency bytes 2 percentile 99.9 latency_percentile 4.4e-06", "Send Latency bytes 2 latency_stdev 4e-08"},
		"write-lat-duration": {"RDMA_Write Latency bytes 2 transaction_rate 1204819.28"},
		"fs-rate":            {"Send flows 1000 flow_time_average 9.987e-05"},
	} {
		got := map[string]bool{}
		for _, m := range parse(t, capture(t, name)).Metrics {
			got[short(m)] = true
		}
		for _, w := range want {
			if !got[w] {
				t.Errorf("%s: no %s", name, w)
			}
		}
	}
}

func TestATestOfAllSizesHas23Rows(t *testing.T) {
	t.Parallel()
	for name, metric := range map[string]string{"read-bw-gbit": "bandwidth_average", "read-lat": "latency_average"} {
		rows := 0
		for _, m := range parse(t, capture(t, name)).Metrics {
			if m.Name == metric {
				rows++
			}
		}
		if rows != 23 {
			t.Errorf("%s: %d rows, want 23", name, rows)
		}
	}
}

func TestAPeakThatIsNotComputedIsNoMetric(t *testing.T) {
	t.Parallel()
	for _, m := range parse(t, capture(t, "send-bw-mib-duration")).Metrics {
		if m.Name == "bandwidth_peak" {
			t.Errorf("%+v", m)
		}
	}
}

func TestFailuresAndWhatIsMissingAreSaid(t *testing.T) {
	t.Parallel()
	bw := capture(t, "read-bw-gbit")
	for name, tt := range map[string]struct{ text, want string }{
		"no device":          {capture(t, "no-device"), "failed Did not detect devices; Unable to find the Infiniband/RoCE device"},
		"no device, latency": {capture(t, "no-device-lat"), "failed Did not detect devices; Unable to find the Infiniband/RoCE device"},
		"an old version":     {" No IB devices found\n", "failed No IB devices found"},
		"another device": {
			" IB device mlx5_9 not found\n Unable to find the Infiniband/RoCE device\n",
			"failed IB device mlx5_9 not found; Unable to find the Infiniband/RoCE device",
		},
		"no server": {
			capture(t, "atomic-bw-connect-failed"),
			"failed Couldn't connect to 10.60.1.21:18515; Unable to open file descriptor for socket connection Unable to init the socket connection",
		},
		"a completion failed": {
			capture(t, "send-bw-completion-error"),
			"failed mlx5: vm-1: got completion with error:; Completion with error at client; Failed status 4: wr_id 0 " +
				"syndrom 0x52; Failed to complete run_iter_bw",
		},
		"below a limit": {bw + "Error: BW result is below bw limit\n", "failed Error: BW result is below bw limit"},
		"no end":        {strings.TrimRight(bw, "-\n"), "partial RDMA_Read BW has not come to the end of its table"},
		"a row that is cut": {
			bw[:strings.LastIndex(bw, "0.001458")],
			"partial RDMA_Read BW has not come to the end of its table; the row of 8388608 bytes is incomplete",
		},
		"a header alone":     {bw[:strings.Index(bw, " 2    ")], "empty RDMA_Read BW has not come to the end of its table"},
		"wrong units":        {strings.ReplaceAll(bw, "[Gb/sec]", "[furlongs]"), "empty RDMA_Read BW has not come to the end of its table"},
		"another text":       {"hello\n 1 2 3\n", "empty no result in the text"},
		"nothing":            {"", "empty no result in the text"},
		"a server came late": {capture(t, "atomic-bw-connect-failed") + bw, "ok"},
	} {
		if got := headlines(parse(t, tt.text))[0]; !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

func TestOfTwoRunsOfATestTheLastThatIsCompleteCounts(t *testing.T) {
	t.Parallel()
	bw, faster := capture(t, "read-bw-gbit"), strings.ReplaceAll(capture(t, "read-bw-gbit"), "97.84", "99.84")
	lat := capture(t, "read-lat")
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"both are complete":   {bw + faster, []string{"ok", "RDMA_Read BW bandwidth 99840000000"}},
		"the later is slower": {faster + bw, []string{"ok", "RDMA_Read BW bandwidth 97840000000"}},
		"the later is cut": {
			bw + faster[:len(faster)-120],
			[]string{"partial RDMA_Read BW has not come to the end of its table", "RDMA_Read BW bandwidth 97840000000"},
		},
		"another test follows the cut one": {
			bw[:strings.LastIndex(bw, " 8388608")] + lat,
			[]string{"partial RDMA_Read BW has not come to the end of its table", "RDMA_Read Latency latency 1.69e-06"},
		},
		"the earlier is cut":   {faster[:strings.LastIndex(faster, " 8388608")] + bw, []string{"ok", "RDMA_Read BW bandwidth 97840000000"}},
		"another test follows": {bw + lat, []string{"ok", "RDMA_Read BW bandwidth 97840000000", "RDMA_Read Latency latency 1.69e-06"}},
		"the later failed": {
			bw + " Unable to init the socket connection\n",
			[]string{"failed Unable to init the socket connection", "RDMA_Read BW bandwidth 97840000000"},
		},
	} {
		if diff := cmp.Diff(tt.want, headlines(parse(t, tt.text))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestParserOfPerftestPassesTheSuite(t *testing.T) {
	reporttest.Suite{
		Kind: perftest.Kind(),
		Own: []string{
			"read-bw-gbit.txt", "write-bw-mb.txt", "send-bw-mib-duration.txt", "raw-bw-qos.txt", "read-lat.txt", "write-lat-old.txt", "fs-rate.txt",
		},
		Others: []string{
			"{}", "[]", "       #bytes #repetitions      t[usec]   Mbytes/sec\n", "# OSU MPI Latency Test v7.3\n", "                    Speed Test\n",
			" #bytes     #iterations\n",
		},
		Cuts: []reporttest.Cut{
			{File: "fs-rate.txt"},
			{File: "raw-bw-qos.txt"},
			{File: "read-bw-gbit.txt"},
			{File: "read-lat.txt"},
			{File: "send-bw-completion-error.txt"},
			{File: "send-bw-mib-duration.txt"},
			{File: "send-lat-unsorted.txt"},
			{File: "write-bw-both.txt", Also: []string{"bandwidth"}},
			{File: "write-bw-cpu-util.txt"},
			{File: "write-bw-mb.txt"},
			{File: "write-bw-per-port.txt"},
			{File: "write-lat-duration.txt"},
			{File: "write-lat-old.txt"},
		},
	}.Run(t)
}

func FuzzParse(f *testing.F) {
	reporttest.Fuzz(f, perftest.Kind())
}

func BenchmarkParse(b *testing.B) {
	text := strings.Repeat(capture(b, "read-bw-gbit")+capture(b, "read-lat")+capture(b, "write-bw-both"), 500)
	reporttest.Benchmark(b, perftest.Kind(), text)
}
