package iperf2_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/parsers/iperf2"
	"github.com/benchmark-ai/bai/services/parsers/report"
	"github.com/benchmark-ai/bai/services/parsers/report/reporttest"
)

func parse(tb testing.TB, text string) report.Report {
	tb.Helper()
	return reporttest.Parse(tb, iperf2.Kind(), text)
}

func capture(tb testing.TB, name string) string {
	tb.Helper()
	return reporttest.Capture(tb, name+".txt")
}

// lines returns the state of a report, and a line for each metric of a name.
func lines(r report.Report, name string) []string {
	all := []string{reporttest.State(r)}
	for _, m := range r.Metrics {
		if m.Name != name {
			continue
		}
		line := fmt.Sprintf("%s %.12g", strings.TrimSpace(m.Labels["stream"]+" "+m.Labels["transfer"]), m.Value)
		if m.Headline {
			line += " headline"
		}
		all = append(all, line)
	}
	return all
}

func TestBandwidthIsWhatTheToolPrints(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"client-P1-k":       {"ok", "1 47860504000", "sum 47860504000 headline"},
		"client-P2-default": {"ok", "2 38800000000", "1 45200000000", "sum 84200000000 headline"},
		"client-P4-k":       {"ok", "1 23056820000", "3 23334888000", "4 31581474000", "2 21763067000", "sum 100165355000 headline"},
		"interval":          {"ok", "2 3440000000", "1 1540000000", "sum 5010000000 headline"},
		"csv":               {"ok", "2 5631880317", "1 6522932059", "sum 12154812376 headline"},
		"csv1":              {"ok", "1 12053068477", "sum 12053068477 headline"},
		"mbytes":            {"ok", "1 10292822016", "sum 10292822016 headline"},
		"enhanced":          {"ok", "2 6840000000", "1 9400000000", "sum 16400000000 headline"},
		"reverse":           {"ok", "1 receive 10300000000", "sum receive 10300000000 headline"},
		"fd":                {"ok", "1 receive 6730000000", "1 send 3350000000", "sum 10100000000", "sum send 3350000000 headline", "sum receive 6730000000 headline"},
		"fd2": {
			"ok", "2 receive 2280000000", "1 send 4750000000", "2 send 3860000000", "1 receive 4530000000", "sum 15200000000",
			"sum send 8610000000 headline", "sum receive 6810000000 headline",
		},
		"csvfd": {
			"ok", "1 send 5983515", "1 receive 5041444", "sum send 5983515 headline", "sum receive 5041444 headline",
		},
		"csvfd-i": {
			"ok", "1 send 5999227", "1 receive 5001423", "sum send 5999227 headline", "sum receive 5001423 headline",
		},
		"udp": {"ok", "1 9500000", "sum 9500000 headline"},
	} {
		if diff := cmp.Diff(want, lines(parse(t, capture(t, name)), "bandwidth")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestOfDatagramsJitterAndLossAreThoseOfTheServer(t *testing.T) {
	t.Parallel()
	r := parse(t, capture(t, "udp"))
	for name, want := range map[string]string{"jitter": "1 4e-06", "datagrams_lost": "1 40", "datagrams": "1 853", "sent_bandwidth": "1 9970000"} {
		if diff := cmp.Diff([]string{"ok", want}, lines(r, name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAFailureIsOneAlthoughTheExitCodeIs0(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"client-refused":      "failed no connection was made",
		"client-refused-both": "failed tcp connect failed: Connection refused",
		"udp2-server-died":    "failed WARNING: did not receive ack of last datagram after 10 tries.",
		"udpcsv":              "failed read failed: Connection refused",
	} {
		if got := lines(parse(t, capture(t, name)), "bandwidth"); got[0] != want {
			t.Errorf("%s: %s, want %s", name, got[0], want)
		}
	}
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	t.Parallel()
	four := strings.Split(capture(t, "client-P4-k"), "\n")
	intervals := strings.Split(capture(t, "interval"), "\n")
	for name, tt := range map[string]struct{ text, want string }{
		"no sum":              {strings.Join(four[:13], "\n"), "partial no row SUM of 4 connections"},
		"ended in between":    {strings.Join(intervals[:11], "\n"), "partial no row about the whole time of 1"},
		"header alone":        {strings.Join(four[:9], "\n"), "empty the client or server printed no result"},
		"another text":        {"hello\n", "empty no result in the text"},
		"nothing":             {"", "empty no result in the text"},
		"one could not":       {strings.Join(four, "\n") + "\ntcp connect failed: Connection timed out\n", "partial tcp connect failed: Connection timed out"},
		"a unit of no format": {"[  1] 0.0-1.0 sec  1.0 XBytes  8.0 Xbits/sec\n", "empty no result in the text"},
	} {
		if got := lines(parse(t, tt.text), "bandwidth")[0]; got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

func TestEveryFormatIsReadInItsUnits(t *testing.T) {
	t.Parallel()
	for row, want := range map[string]string{
		"[  3]  0.0- 2.0 sec   100 Bytes   400 bits/sec":                           "3 400",
		"[  3]  0.0- 2.0 sec  9.04 GBytes  38.8 Gbits/sec":                         "3 38800000000",
		"[  3]  0.0-10.0 sec  1.10 TBytes  0.90 Tbits/sec":                         "3 900000000000",
		"[  3]  0.0- 2.0 sec  1024 KBytes   512 KBytes/sec":                        "3 4194304",
		"[  3]  0.0- 2.0 sec  9.04 GBytes  4.52 GBytes/sec":                        "3 38826504355.8",
		"[  3]  0.0- 2.0 sec   100 Bytes    50 Bytes/sec":                          "3 400",
		"[  3]  0.0- 2.0 sec  1.19 MBytes  10.0 Mbits/sec   0.1 ms    0/ 179 (0%)": "3 10000000",
	} {
		if got := lines(parse(t, row), "bandwidth"); len(got) < 2 || got[1] != want {
			t.Errorf("%s: %q, want %q", row, got, want)
		}
	}
}

func TestOfTwoRunsInOneTextTheLastCounts(t *testing.T) {
	t.Parallel()
	two := capture(t, "client-P4-k") + capture(t, "client-P1-k")
	if diff := cmp.Diff([]string{"ok", "1 47860504000", "sum 47860504000 headline"}, lines(parse(t, two), "bandwidth")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestOfSeveralRunsInCSVTheLastCounts has the rows of six runs: 2 connections for 2 s, for 1 s, 1, 4, and with intervals 2 for 2 s and for 1 s.
func TestOfSeveralRunsInCSVTheLastCounts(t *testing.T) {
	t.Parallel()
	rows := strings.SplitAfter(strings.TrimSpace(capture(t, "csvruns")), "\n")
	upTo := func(n int) string { return strings.Join(rows[:n], "") }
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"a shorter one":             {upTo(4), []string{"ok", "2 2056129", "1 2055035", "sum 4111164 headline"}},
		"fewer connections":         {upTo(5), []string{"ok", "1 2053170", "sum 2053170 headline"}},
		"more connections":          {upTo(9), []string{"ok", "1 2041131", "2 2045009", "4 2044860", "3 2044854", "sum 8175854 headline"}},
		"intervals":                 {upTo(15), []string{"ok", "2 2023941", "1 2024005", "sum 4047946 headline"}},
		"a shorter one, intervals":  {upTo(21), []string{"ok", "2 2032691", "1 2033678", "sum 4066369 headline"}},
		"the last has begun":        {upTo(17), []string{"ok", "2 1967040", "1 2098112", "sum 4065152 headline"}},
		"a connection of which run": {upTo(2) + rows[4], []string{"partial rows of connection 2 may be of an earlier run", "2 2020673", "1 2053170"}},
		"or of a run with more":     {rows[4] + upTo(4)[len(upTo(2)):], []string{"partial rows of connection 2 may be of an earlier run", "2 2056129", "1 2055035"}},
		"that comes again":          {upTo(2) + rows[4] + upTo(9)[len(upTo(5)):], []string{"ok", "1 2041131", "2 2045009", "4 2044860", "3 2044854", "sum 8175854 headline"}},
	} {
		if diff := cmp.Diff(tt.want, lines(parse(t, tt.text), "bandwidth")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestOfSeveralRunsInCSVThatHaveSumsTheLastCounts has rows as older versions print them: with a sum, and addresses of the server's report
// the other way round.
func TestOfSeveralRunsInCSVThatHaveSumsTheLastCounts(t *testing.T) {
	t.Parallel()
	row := func(source, dest, id, seconds, rate string) string {
		return "20260101000000,10.0.0.1," + source + ",10.0.0.2," + dest + "," + id + "," + seconds + ",1000000," + rate
	}
	two := row("40001", "5001", "4", "0.0-2.0", "100") + "\n" + row("40002", "5001", "3", "0.0-2.0", "200") + "\n" +
		row("0", "5001", "-1", "0.0-2.0", "300") + "\n"
	one := row("40003", "5001", "4", "0.0-1.0", "10") + "\n"
	other := row("40004", "5001", "3", "0.0-1.0", "20") + "\n" + row("0", "5001", "-1", "0.0-1.0", "30") + "\n"
	sent := func(port string) string { return row(port, "5001", "3", "0.0-9.0", "1000") + "\n" }
	received := func(port string) string { return row("5001", port, "3", "0.0-9.0", "900") + ",0.045,1,893,0.112,0\n" }
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"a sum, then none":            {two + one, []string{"ok", "4 10", "sum 10 headline"}},
		"two sums":                    {two + one + other, []string{"ok", "4 10", "3 20", "sum 30 headline"}},
		"datagrams":                   {sent("40005") + received("40005"), []string{"ok", "3 900", "sum 900 headline"}},
		"a report, then none":         {sent("40005") + received("40005") + row("40006", "5001", "3", "0.0-1.0", "7"), []string{"ok", "3 7", "sum 7 headline"}},
		"datagrams, of the later run": {sent("40005") + received("40005") + sent("40006") + received("40006"), []string{"ok", "3 900", "sum 900 headline"}},
	} {
		if diff := cmp.Diff(tt.want, lines(parse(t, tt.text), "bandwidth")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestParserOfIperf2PassesTheSuite(t *testing.T) {
	reporttest.Suite{
		Kind:   iperf2.Kind(),
		Own:    []string{"client-P1-k.txt", "client-refused-both.txt", "csv.txt", "enhanced.txt", "udp.txt", "fd.txt"},
		Others: []string{"{}", "[]", "[ ID] Interval           Transfer     Bitrate\n", "a,b,c\n1,2,3\n"},
		Cuts:   []reporttest.Cut{{File: "client-P4-k.txt"}, {File: "client-P2-default.txt"}, {File: "enhanced.txt"}, {File: "udp.txt"}},
	}.Run(t)
}

func FuzzParse(f *testing.F) {
	reporttest.Fuzz(f, iperf2.Kind())
}

func BenchmarkParse(b *testing.B) {
	text := strings.Repeat(capture(b, "interval"), 1000)
	reporttest.Benchmark(b, iperf2.Kind(), text)
}
