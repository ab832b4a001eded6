package fio_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/parsers/fio"
	"github.com/benchmark-ai/bai/services/parsers/report"
	"github.com/benchmark-ai/bai/services/parsers/report/reporttest"
)

func parse(tb testing.TB, text string) report.Report {
	tb.Helper()
	return reporttest.Parse(tb, fio.Kind(), text)
}

func capture(tb testing.TB, name string) string {
	tb.Helper()
	return reporttest.Capture(tb, name)
}

// lines returns the state of a report, and a line for each metric of the names.
func lines(r report.Report, names ...string) []string {
	all := []string{reporttest.State(r)}
	for _, m := range r.Metrics {
		for _, name := range names {
			if m.Name == name {
				all = append(all, line(m))
			}
		}
	}
	return all
}

func line(m report.Metric) string {
	s := m.Name
	for _, label := range []string{"job", "host", "index", "group", "op", "percentile"} {
		if v, ok := m.Labels[label]; ok {
			s += " " + v
		}
	}
	s += fmt.Sprintf(" %.15g", m.Value)
	if m.Headline {
		s += " headline"
	}
	return s
}

func TestRatesAreThoseOfTheTool(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"randrw.json": {
			"ok", "bandwidth fio-a read 294132101", "iops fio-a read 71809.595202",
			"bandwidth fio-a write 294447336", "iops fio-a write 71886.556722",
			"bandwidth all read 294132101 headline", "iops all read 71809.595202 headline",
			"bandwidth all write 294447336 headline", "iops all write 71886.556722 headline",
		},
		"client1.json": {
			"ok", "bandwidth fio-a 127.0.0.1:8765 read 286335168", "iops fio-a 127.0.0.1:8765 read 69906.046977",
			"bandwidth fio-a 127.0.0.1:8765 write 286752751", "iops fio-a 127.0.0.1:8765 write 70007.996002",
			"bandwidth all read 286335168 headline", "iops all read 69906.046977 headline",
			"bandwidth all write 286752751 headline", "iops all write 70007.996002 headline",
		},
		"client2.json": {
			"ok", "bandwidth fio-a 127.0.0.1:8766 read 185806104", "iops fio-a 127.0.0.1:8766 read 45362.818591",
			"bandwidth fio-a 127.0.0.1:8766 write 185226810", "iops fio-a 127.0.0.1:8766 write 45221.389305",
			"bandwidth fio-a 127.0.0.1:8765 read 177139206", "iops fio-a 127.0.0.1:8765 read 43246.876562",
			"bandwidth fio-a 127.0.0.1:8765 write 176455516", "iops fio-a 127.0.0.1:8765 write 43079.96002",
			"bandwidth all read 362945311 headline", "iops all read 88609.695152 headline",
			"bandwidth all write 361682326 headline", "iops all write 88301.349325 headline",
		},
	} {
		if diff := cmp.Diff(want, lines(parse(t, capture(t, name)), "bandwidth", "iops")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTheSumIsThatOfJobsThatRanAtOnce(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"two-jobs.json": {
			"ok", "bandwidth one read 13472477", "bandwidth one write 13919522", "bandwidth two read 13765178", "bandwidth two write 14464895",
			"bandwidth all read 26325970.1492537 headline", "bandwidth all write 27426388.0597015 headline",
		},
		"group-jsonplus.json": {
			"ok", "bandwidth grp read 21371673", "bandwidth grp write 22356994",
			"bandwidth all read 21371673 headline", "bandwidth all write 22356994 headline",
		},
		"normal-json.txt": {
			"ok", "bandwidth mix read 6215608", "bandwidth mix write 6514317",
			"bandwidth all read 6215608 headline", "bandwidth all write 6514317 headline",
		},
		"one-server-two-jobs.json": {
			"ok", "bandwidth a 127.0.0.1:18771 write 239450367", "bandwidth b 127.0.0.1:18771 read 30824135",
			"bandwidth all read 30824135 headline", "bandwidth all write 239450367 headline",
		},
		"one-server-normal.txt": {
			"ok", "bandwidth a 127.0.0.1:18771 write 365973121", "bandwidth b 127.0.0.1:18771 read 22183218",
			"bandwidth all read 22183218 headline", "bandwidth all write 365973121 headline",
		},
		"stonewall.json": {
			"ok", "bandwidth seqwrite write 1048576000", "bandwidth seqread read 524288000",
			"bandwidth all 0 write 1048576000 headline", "bandwidth all 1 read 524288000 headline",
		},
		"unified.json": {"ok", "bandwidth m mixed 80659692", "bandwidth all mixed 80659692 headline"},
		"read.json":    {"ok", "bandwidth rd read 369061466", "bandwidth all read 369061466 headline"},
	} {
		if diff := cmp.Diff(want, lines(parse(t, capture(t, name)), "bandwidth")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestLatenciesAreInSeconds(t *testing.T) {
	t.Parallel()
	want := []string{
		"ok", "lat_mean s write 4.665472656e-06", "lat_mean s sync 0.002455448933333", "lat_percentile s sync 99 0.005472256",
		"lat_mean all write 4.665472656e-06",
	}
	var got []string
	for _, l := range lines(parse(t, capture(t, "fdatasync.json")), "lat_mean", "lat_percentile") {
		if !strings.HasPrefix(l, "lat_percentile") || strings.Contains(l, "sync 99 ") {
			got = append(got, l)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fsync (-want +got):\n%s", diff)
	}
	want = []string{
		"ok", "lat_mean c read 8.163195312e-06", "lat_percentile c read 50 5.88e-07", "lat_percentile c read 99.9 0.000929792",
		"lat_mean all read 8.163195312e-06",
	}
	if diff := cmp.Diff(want, lines(parse(t, capture(t, "latpct.json")), "lat_mean", "lat_percentile", "slat_mean")); diff != "" {
		t.Errorf("percentiles (-want +got):\n%s", diff)
	}
}

// TestTheRateOfSeveralJobsIsThatOfTheirWholeTime has two jobs of 256 MiB, one of which takes 1 s and the other 4 s.
func TestTheRateOfSeveralJobsIsThatOfTheirWholeTime(t *testing.T) {
	t.Parallel()
	job := func(name string, seconds int) string {
		return fmt.Sprintf(`{"jobname":%q,"groupid":0,"error":0,"write":{"io_bytes":268435456,"io_kbytes":262144,"bw_bytes":%d,"iops":%d,`+
			`"runtime":%d,"total_ios":1024}}`, name, 268435456/seconds, 1024/seconds, seconds*1000)
	}
	text := `{"fio version":"fio-3.33","jobs":[` + job("a", 1) + "," + job("b", 4) + `]}`
	want := []string{
		"ok", "bandwidth a write 268435456", "iops a write 1024", "bandwidth b write 67108864", "iops b write 256",
		"bandwidth all write 134217728 headline", "iops all write 512 headline",
	}
	if diff := cmp.Diff(want, lines(parse(t, text), "bandwidth", "iops")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for key, without := range map[string]string{
		"io_bytes": `"io_bytes":268435456,`, "total_ios": `,"total_ios":1024`, "runtime": `"runtime":4000,`,
	} {
		r := parse(t, strings.Replace(text, without, "", 1))
		if got, want := lines(r)[0], "partial no sum of the jobs: io_bytes, total_ios or runtime is missing"; got != want || headlines(r) != nil {
			t.Errorf("without %s: %s with headlines %v, want %s", key, got, headlines(r), want)
		}
	}
	r := parse(t, strings.NewReplacer(`"runtime":1000`, `"runtime":0`, `"runtime":4000`, `"runtime":0`).Replace(text))
	if diff := cmp.Diff([]string{"bandwidth all write 0 headline", "iops all write 0 headline"}, headlines(r)); diff != "" {
		t.Errorf("jobs of less than a millisecond (-want +got):\n%s", diff)
	}
}

// TestTheMeanOfSeveralJobsIsThatOfTheirOperations has 3 of 10 us and 1 of 30 us.
func TestTheMeanOfSeveralJobsIsThatOfTheirOperations(t *testing.T) {
	t.Parallel()
	job := func(name string, ios, mean int) string {
		return fmt.Sprintf(`{"jobname":%q,"groupid":0,"error":0,"read":{"io_bytes":%d,"bw_bytes":%d,"iops":%d,"runtime":1000,"total_ios":%d,`+
			`"lat_ns":{"min":%d,"max":%d,"mean":%d.0,"stddev":0.5,"N":%d}}}`, name, 100*ios, 100*ios, ios, ios, mean-1, mean+1, mean, ios)
	}
	jobs := []string{job("a", 3, 10000), job("all", 1, 30000), job("a", 1, 30000)}
	text := `{"fio version":"fio-3.33","jobs":[` + strings.Join(jobs, ",") + `]}`
	want := []string{
		"ok", "bandwidth a 1 read 300", "lat_mean a 1 read 1e-05", "bandwidth all 1 read 100", "lat_mean all 1 read 3e-05",
		"bandwidth a 2 read 100", "lat_mean a 2 read 3e-05",
		"bandwidth all read 500 headline", "lat_mean all read 1.8e-05", "lat_min all read 9.999e-06", "lat_max all read 3.0001e-05",
	}
	var got []string
	for _, l := range lines(parse(t, text), "bandwidth", "lat_mean", "lat_min", "lat_max") {
		if !strings.HasPrefix(l, "lat_m") || strings.HasPrefix(l, "lat_mean") || strings.Contains(l, "all read") {
			got = append(got, l)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFio2HasKibibytesAndMicroseconds(t *testing.T) {
	t.Parallel()
	text := `{"fio version":"fio-2.2.10","jobs":[{"jobname":"old","groupid":0,"error":0,"usr_cpu":1.50,` +
		`"read":{"io_bytes":64,"bw":64,"iops":16.5,"runtime":1000,"total_ios":16,"lat":{"min":10,"max":30,"mean":20.25,"stddev":1.5},` +
		`"clat":{"min":9,"max":29,"mean":19.25,"stddev":1.5,"percentile":{"1.000000":9,"50.000000":19,"0.00":0}}}}]}`
	want := []string{
		"ok", "bandwidth old read 65536", "io_bytes old read 65536", "runtime old read 1", "lat_mean old read 2.025e-05",
		"clat_percentile old read 1 9e-06", "clat_percentile old read 50 1.9e-05", "usr_cpu old 0.015",
		"bandwidth all read 65536 headline", "lat_mean all read 2.025e-05",
	}
	r := parse(t, text)
	got := lines(r, "bandwidth", "io_bytes", "runtime", "lat_mean", "clat_percentile", "usr_cpu")
	if diff := cmp.Diff(want, got); diff != "" || r.Version != "fio-2.2.10" {
		t.Errorf("version %s (-want +got):\n%s", r.Version, diff)
	}
}

func TestAFailureIsSaidInTheWordsOfTheTool(t *testing.T) {
	t.Parallel()
	const full = "failed fio: pid=21792, err=28/file:io_u.c:1876, func=io_u error, error=No space left on device"
	for name, want := range map[string][]string{
		"no-directory.txt": {
			"failed fio: /nonexistent is not a directory; fio: failed parsing directory=/nonexistent; " +
				"fio: file:options.c:1457, func=lstat, error=No such file or directory",
		},
		"unknown-option.txt": {"failed fio: unrecognized option '--bogus=1'; fio: unrecognized option '--bogus=1'"},
		"no-server.txt":      {"failed fio: connect: Connection refused; fio: failed to connect to 127.0.0.1:18779"},
		"rejected.json": {
			"failed fio: /nonexistent is not a directory; fio: failed parsing directory=/nonexistent; fio: job x dropped",
		},
		"device-full.json":   {full, "bandwidth full write 0"},
		"one-job-fails.json": {strings.Replace(full, "21792", "31507", 1), "bandwidth good read 262144000", "bandwidth full write 0"},
		"server-io-error.json": {
			strings.Replace(full, "21792", "29524", 1), "bandwidth x 127.0.0.1:18771 write 0",
		},
		"server-absent.json": {"partial fio: failed to connect to 127.0.0.1:18779", "bandwidth s 127.0.0.1:18771 read 29954297"},
		"server-killed.json": {
			"partial client: host=127.0.0.1 disconnected",
			"bandwidth s 127.0.0.1:18771 read 17309387", "bandwidth s 127.0.0.1:18771 write 17295738",
		},
		"interrupted.json": {"partial fio: terminating on signal 2", "bandwidth i read 1117528461"},
		"normal.txt":       {"empty no JSON document: fio was run without --output-format=json"},
	} {
		if diff := cmp.Diff(want, lines(parse(t, capture(t, name)), "bandwidth")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestWithoutStandardErrorTheDocumentAloneTells has what the tool says in JSON only.
func TestWithoutStandardErrorTheDocumentAloneTells(t *testing.T) {
	t.Parallel()
	document := func(name string) string {
		text := capture(t, name)
		return text[strings.Index(text, "\n{")+1:]
	}
	client2 := capture(t, "client2.json")
	for text, want := range map[string]string{
		document("rejected.json"):    "failed no job was run",
		document("device-full.json"): "failed job full: error 28",
		strings.Replace(client2, `"jobname" : "All clients"`, `"jobname" : "fio-a"`, 1): "partial no sum of all clients: " +
			"fio has the results of 3 jobs, and has not got the others",
	} {
		if r := parse(t, text); lines(r)[0] != want || headlines(r) != nil {
			t.Errorf("%s with headlines %v, want %s", lines(r)[0], headlines(r), want)
		}
	}
}

func headlines(r report.Report) (all []string) {
	for _, m := range r.Metrics {
		if m.Headline {
			all = append(all, line(m))
		}
	}
	return all
}

func TestTextAroundTheDocumentDoesNoHarm(t *testing.T) {
	t.Parallel()
	text := capture(t, "read.json")
	want := parse(t, text)
	for _, around := range []string{
		"fio: native_fallocate call failed: Operation not supported\n%s",
		"note: both iodepth >= 1 and synchronous I/O engine are selected\n{ not JSON\n%s\nreal 1.02\n{\n",
		"{\"level\":\"info\",\"msg\":\"starting\"}\n%s{\"level\":\"info\",\"msg\":\"done\"}\n",
		"Jobs: 1 (f=1): [R(1)][100.0%%][r=352MiB/s][r=90.1k IOPS][eta 00m:00s]\r%s",
	} {
		if diff := cmp.Diff(want, parse(t, fmt.Sprintf(around, text))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", around, diff)
		}
	}
}

func TestOfTwoRunsTheLastCompleteOneCounts(t *testing.T) {
	t.Parallel()
	first, last := capture(t, "read.json"), capture(t, "two-jobs.json")
	if diff := cmp.Diff(parse(t, last), parse(t, first+last)); diff != "" {
		t.Errorf("two runs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(parse(t, first), parse(t, last[:len(last)/2]+first)); diff != "" {
		t.Errorf("the first is cut (-want +got):\n%s", diff)
	}
	r := parse(t, first+last[:len(last)*3/4])
	want := []string{"partial the JSON document ends in the middle", "bandwidth rd read 369061466"}
	if diff := cmp.Diff(want, lines(r, "bandwidth")); diff != "" {
		t.Errorf("the last is cut (-want +got):\n%s", diff)
	}
}

func TestACutDocumentKeepsWholeJobs(t *testing.T) {
	t.Parallel()
	text := capture(t, "two-jobs.json")
	r := parse(t, text[:strings.Index(text, `"jobname" : "two"`)]+"\nKilled\n")
	want := []string{"partial the JSON document ends in the middle", "bandwidth one read 13472477", "bandwidth one write 13919522"}
	if diff := cmp.Diff(want, lines(r, "bandwidth")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAValueThatIsNoNumberIsLeftOut(t *testing.T) {
	t.Parallel()
	text := capture(t, "read.json")
	at := strings.Index(text, `"iops" : `) + len(`"iops" : `)
	for _, word := range []string{"nan", "-nan", "inf", "null", `"many"`, "{}", "1e999"} {
		r := parse(t, text[:at]+word+text[at+strings.Index(text[at:], ","):])
		if got := lines(r, "iops"); len(got) != 1 || got[0] != "partial no bandwidth or iops of job rd" {
			t.Errorf("%s: %q", word, got)
		}
	}
}

func TestParserOfFioPassesTheSuite(t *testing.T) {
	reporttest.Suite{
		Kind:   fio.Kind(),
		Own:    []string{"randrw.json", "client2.json", "normal-json.txt", "rejected.json", "normal.txt"},
		Others: []string{"{}", "[]", `{"results":[]}`, "fio is not here\n"},
		Open:   `{"fio version":"fio-3.33","jobs":[{"jobname":`,
		Cuts: []reporttest.Cut{
			{File: "one-server-two-jobs.json", End: "\n}", NoHeadline: true, Bytes: true},
			{File: "two-jobs.json", End: "\n}", NoHeadline: true, Bytes: true},
			{File: "normal-json.txt", End: "\n}", NoHeadline: true, Bytes: true},
		},
	}.Run(t)
}

func FuzzParse(f *testing.F) {
	reporttest.Fuzz(f, fio.Kind())
}

func BenchmarkParse(b *testing.B) {
	one := capture(b, "group-jsonplus.json")
	begin, end := strings.Index(one, `"jobs" : [`)+len(`"jobs" : [`), strings.LastIndex(one, `],`)
	text := one[:begin] + strings.Repeat(one[begin:end]+",", 50) + one[begin:]
	reporttest.Benchmark(b, fio.Kind(), text)
}
