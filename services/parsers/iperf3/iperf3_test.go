package iperf3_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/parsers/iperf3"
	"github.com/benchmark-ai/bai/services/parsers/report"
	"github.com/benchmark-ai/bai/services/parsers/report/reporttest"
)

func capture(tb testing.TB, name string) string {
	tb.Helper()
	return reporttest.Capture(tb, name)
}

func parse(tb testing.TB, text string) report.Report {
	tb.Helper()
	return reporttest.Parse(tb, iperf3.Kind(), text)
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
	where := strings.TrimSpace(m.Labels["transfer"] + " " + m.Labels["stream"] + m.Labels["host"] + " " + m.Labels["mode"])
	return fmt.Sprintf("%s %s %.10g", where, m.Name, m.Value)
}

func TestTheHeadlineIsWhatArrivedOnceForEachDirection(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"client-p1.json":      {"ok", "send sum bandwidth 4.662424405e+10"},
		"p4.json":             {"ok", "send sum bandwidth 1967052178"},
		"stream.json":         {"ok", "send sum bandwidth 1967052178"},
		"reverse.json":        {"ok", "receive sum bandwidth 4038810327"},
		"bidir.json":          {"ok", "send sum bandwidth 1180502462", "receive sum bandwidth 2210573725"},
		"omit.json":           {"ok", "send sum bandwidth 4961164655"},
		"udp.json":            {"ok", "send sum bandwidth 46079145.02"},
		"udp-3.1.json":        {"ok", "send sum bandwidth 46098007.03"}, // 48915107 · 180 / 191
		"udp-bidir.json":      {"ok", "send sum bandwidth 20183069.69", "receive sum bandwidth 20183069.69"},
		"udp-reverse-p2.json": {"ok", "receive sum bandwidth 40353308.32"},
		"server.json":         {"ok", "send sum bandwidth 100643368.6"},
		"server-udp.json":     {"ok", "send sum bandwidth 20180950.91"},
		"server-bidir.json":   {"partial what the receiver got of the transfer receive", "send sum bandwidth 98994252.9"},
	} {
		if diff := cmp.Diff(want, headlines(parse(t, capture(t, name)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestUpTo310BothDirectionsHaveOneName has output of 3.9, whose sums of the two directions of --bidir have the same keys.
func TestUpTo310BothDirectionsHaveOneName(t *testing.T) {
	t.Parallel()
	p2, udp := capture(t, "bidir-p2-3.9.json"), capture(t, "udp-bidir-3.9.json")
	end := "\t\"end\":\t{"
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"one stream":   {capture(t, "bidir-3.9.json"), []string{"ok", "send sum bandwidth 48229377.66", "receive sum bandwidth 50238935.06"}},
		"two streams":  {p2, []string{"ok", "send sum bandwidth 40282204.7", "receive sum bandwidth 40282204.7"}},
		"of datagrams": {udp, []string{"ok", "send sum bandwidth 10222726.62", "receive sum bandwidth 10484847.82"}},
		"a server": {
			capture(t, "server-bidir-3.9.json"), []string{"partial what the receiver got of the transfer receive", "send sum bandwidth 48229377.66"},
		},
		"no end": {
			p2[:strings.Index(p2, end)], []string{
				"partial the JSON has no end; iperf has not summed up: the mean of the intervals",
				"send sum sent_bandwidth 41939727.76", "receive sum bandwidth 41939727.76",
			},
		},
	} {
		if diff := cmp.Diff(tt.want, headlines(parse(t, tt.text))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	want := []string{"send 1 20969863.38", "send 2 20969863.38", "receive 1 20969863.38", "receive 2 20969863.38"}
	var got []string
	for _, m := range parse(t, p2).Metrics {
		if m.Name == "sent_bandwidth" && m.Labels["stream"] != "sum" {
			got = append(got, fmt.Sprintf("%s %s %.10g", m.Labels["transfer"], m.Labels["stream"], m.Value))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("streams (-want +got):\n%s", diff)
	}
}

// TestUpTo310AServerDoesNotSumUpTheDatagramsThatArrived has output of 3.9, whose one sum has the bytes that the server sent: none, if it received.
func TestUpTo310AServerDoesNotSumUpTheDatagramsThatArrived(t *testing.T) {
	t.Parallel()
	const missing = "what the receiver got of the transfer "
	for name, want := range map[string][]string{
		"server-udp-3.9.json":         {"partial " + missing + "send"},
		"server-udp-reverse-3.9.json": {"partial " + missing + "receive"},
		"server-udp-bidir-3.9.json":   {"partial " + missing + "send; " + missing + "receive"},
	} {
		if diff := cmp.Diff(want, headlines(parse(t, capture(t, name)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestNumbersOfStreamsAndHostsAreKept(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"client-p1.json": {
			"send sum sent_bandwidth 4.664598706e+10", "send sum retransmits 3", "send sum transferred 1.166278656e+10",
			"send sum duration 2.001154",
			"send 1 rtt_min 4e-05", "send 1 rtt_mean 5.1e-05", "send 1 rtt_max 6.2e-05", "send 1 congestion_window_max 2619320",
			"local total cpu_utilization 0.3155587495", "remote system cpu_utilization 0.6457376179",
		},
		"p4.json":           {"send 1 bandwidth 494284906.2", "send 4 bandwidth 474110012.1", "send 3 retransmits 1"},
		"bidir.json":        {"send 1 bandwidth 1180502462", "receive 1 bandwidth 2210573725", "receive sum retransmits 1"},
		"server-bidir.json": {"send 1 bandwidth 98994252.9", "receive 1 sent_bandwidth 100025443", "receive sum retransmits 2"},
		"udp.json": {
			"send sum jitter 2.579979056e-05", "send sum datagrams_lost 11", "send sum datagrams 191", "send sum loss 0.05759162304",
			"send sum sent_bandwidth 48915107.46",
		},
		"udp-reverse-p2.json": {"receive 2 jitter 0.0007833815212", "receive 1 datagrams 77", "receive 1 out_of_order 0"},
	} {
		r, got := parse(t, capture(t, name)), map[string]bool{}
		for _, m := range r.Metrics {
			got[short(m)] = true
		}
		for _, w := range want {
			if !got[w] {
				t.Errorf("%s: no %s", name, w)
			}
		}
		if r.Version != "3.12" {
			t.Errorf("%s: version %q", name, r.Version)
		}
	}
}

func TestFailuresAreThoseThatTheToolTells(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"refused.json":        {"failed unable to connect to server: Connection refused"},
		"no-sctp.json":        {"failed unable to start stream listener: Protocol not supported"},
		"interrupted.json":    {"failed interrupt - the client has terminated"},
		"server-died.json":    {"failed the server has terminated"},
		"parameter-error.txt": {"failed iperf3: parameter error - number of parallel streams too large (maximum = 128)"},
	} {
		if diff := cmp.Diff(want, headlines(parse(t, capture(t, name)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	t.Parallel()
	p4, reverse := capture(t, "p4.json"), capture(t, "reverse.json")
	stream := strings.Split(strings.TrimSpace(capture(t, "stream.json")), "\n")
	omit := capture(t, "omit.json")
	const unsummed, endless = "iperf has not summed up: the mean of the intervals", "partial the JSON has no end; "
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"no end, a sender": {
			p4[:strings.Index(p4, "\t\"end\":\t{")],
			[]string{endless + unsummed, "send sum sent_bandwidth 1970711185"},
		},
		"no end, a receiver": {
			reverse[:strings.Index(reverse, "\t\"end\":\t{")],
			[]string{endless + unsummed, "receive sum bandwidth 4038810174"},
		},
		"omitted intervals": {
			omit[:strings.Index(omit, "\t\"end\":\t{")],
			[]string{endless + unsummed, "send sum sent_bandwidth 5217072092"},
		},
		"a stream without its end": {
			strings.Join(stream[:len(stream)-1], "\n"),
			[]string{"partial " + unsummed, "send sum sent_bandwidth 1970711185"},
		},
		"an error in a stream": {
			strings.Join(stream[:2], "\n") + "\n{\"event\":\"error\",\"data\":\"the server has terminated\"}\n{\"event\":\"end\",\"data\":{}}\n",
			[]string{"failed the server has terminated", "send sum sent_bandwidth 1587735446"},
		},
		"a server that only sent": {capture(t, "server-udp-reverse.json"), []string{"partial what the receiver got of the transfer receive"}},
		"the last brace is cut": {
			strings.TrimRight(p4, "}\n"),
			[]string{endless + unsummed, "send sum sent_bandwidth 1970711185"},
		},
		"no JSON":              {capture(t, "text.txt"), []string{"empty no JSON of iperf 3 in the text: use its option -J"}},
		"JSON of another tool": {`{"fio version":"fio-3.33","jobs":[]}`, []string{"empty no JSON of iperf 3 in the text: use its option -J"}},
		"another start": {
			"{\"start\": 1}\n{\"start\": {\"version\":\"2\"}}", []string{"empty no JSON of iperf 3 in the text: use its option -J"},
		},
		"no result": {`{"start":{"version":"iperf 3.12"},"intervals":[],"end":{}}`, []string{"empty iperf has printed no result"}},
		"nothing":   {"", []string{"empty no JSON of iperf 3 in the text: use its option -J"}},
		"values of other types": {
			`{"start":{"version":"iperf 3.12"},"intervals":{"a":1},"end":{"sum_sent":[],"sum_received":"x"}}`,
			[]string{"empty iperf has printed no result"},
		},
	} {
		if diff := cmp.Diff(tt.want, headlines(parse(t, tt.text))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTextAroundTheJSONIsLeftOut(t *testing.T) {
	t.Parallel()
	p4 := capture(t, "p4.json")
	for name, text := range map[string]string{
		"warnings":              "warning: this system does not seem to support IPv6 {\n{\"start\n" + p4 + "iperf Done.\n}\n",
		"other JSON before":     "{\"level\":\"info\"}\n{\n\"start\": 7\n}\n" + p4,
		"in an array":           "[" + p4 + "]",
		"with carriage returns": strings.ReplaceAll(p4, "\n", "\r\n"),
	} {
		if diff := cmp.Diff([]string{"ok", "send sum bandwidth 1967052178"}, headlines(parse(t, text))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestOfTwoRunsInOneTextTheLastThatIsCompleteCounts(t *testing.T) {
	t.Parallel()
	p4, reverse, refused := capture(t, "p4.json"), capture(t, "reverse.json"), capture(t, "refused.json")
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"both":               {p4 + reverse, []string{"ok", "receive sum bandwidth 4038810327"}},
		"the later is cut":   {p4 + reverse[:len(reverse)/2], []string{"partial a later run has not ended", "send sum bandwidth 1967052178"}},
		"the earlier is cut": {p4[:len(p4)/2] + "\n" + reverse, []string{"ok", "receive sum bandwidth 4038810327"}},
		"the earlier failed": {refused + refused + p4, []string{"ok", "send sum bandwidth 1967052178"}},
		"the later failed": {
			p4 + refused, []string{"failed unable to connect to server: Connection refused", "send sum bandwidth 1967052178"},
		},
		"the later had no try": {
			p4 + "iperf3: error - no space left\n", []string{"failed iperf3: error - no space left", "send sum bandwidth 1967052178"},
		},
		"streams": {capture(t, "stream.json") + capture(t, "stream.json"), []string{"ok", "send sum bandwidth 1967052178"}},
	} {
		if diff := cmp.Diff(tt.want, headlines(parse(t, tt.text))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestParserOfIperf3PassesTheSuite(t *testing.T) {
	reporttest.Suite{
		Kind:   iperf3.Kind(),
		Own:    []string{"client-p1.json", "stream.json", "server.json", "refused.json", "udp-3.1.json"},
		Others: []string{"{}", "[]", "[ ID] Interval           Transfer     Bitrate\n", `{"start":{"version":"2"}}`, "iperf 3.12\n"},
		Open:   `{"start":{"version":"iperf 3.12"},"intervals":[{"sum":`,
		Cuts: []reporttest.Cut{
			{File: "bidir-3.9.json", Bytes: true},
			{File: "bidir.json", Bytes: true},
			{File: "client-p1.json", Bytes: true},
			{File: "interrupted.json", Bytes: true},
			{File: "omit.json", Bytes: true},
			{File: "p4.json", Bytes: true},
			{File: "reverse.json", Bytes: true},
			{File: "server-bidir.json", Bytes: true},
			{File: "server-died.json", Bytes: true},
			{File: "server-udp.json", Bytes: true},
			{File: "stream.json", Bytes: true},
			{File: "udp-3.1.json", Bytes: true},
			{File: "udp-bidir.json", Bytes: true},
			{File: "udp-reverse-p2.json", Bytes: true},
			{File: "udp.json", Bytes: true},
		},
	}.Run(t)
}

func FuzzParse(f *testing.F) {
	reporttest.Fuzz(f, iperf3.Kind())
}

// BenchmarkParse reads a run of an hour with an interval a second.
func BenchmarkParse(b *testing.B) {
	p4 := capture(b, "p4.json")
	at, end := strings.Index(p4, "\"intervals\":\t[")+len("\"intervals\":\t["), strings.Index(p4, "],\n\t\"end\":\t{")
	text := p4[:at] + strings.Repeat(p4[at:end]+",", 1800) + p4[at:]
	if r := parse(b, text); r.State != report.OK {
		b.Fatalf("%s %s", r.State, r.Reason)
	}
	reporttest.Benchmark(b, iperf3.Kind(), text)
}
