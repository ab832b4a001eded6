package gnutime_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/parsers/gnutime"
	"github.com/benchmark-ai/bai/services/parsers/report"
	"github.com/benchmark-ai/bai/services/parsers/report/reporttest"
)

func parse(tb testing.TB, text string) report.Report {
	tb.Helper()
	return reporttest.Parse(tb, gnutime.Kind(), text)
}

func capture(tb testing.TB, name string) string {
	tb.Helper()
	return reporttest.Capture(tb, name+".txt")
}

// say returns the state of a report, and the values of some metrics.
func say(r report.Report, names ...string) string {
	said := reporttest.State(r)
	for _, name := range names {
		for _, m := range r.Metrics {
			if m.Name == name {
				said += fmt.Sprintf("; %s %.12g %s", m.Name, m.Value, m.Unit)
			}
		}
	}
	return said
}

// times says how long a command took.
func times(r report.Report) string { return say(r, "wall_clock_time", "user_time", "system_time") }

func TestTimesAreThoseThatTimePrints(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"p":                      "ok; wall_clock_time 1 s; user_time 0 s; system_time 0 s",
		"v":                      "ok; wall_clock_time 1 s; user_time 0 s; system_time 0 s",
		"p-exit-1":               "ok; wall_clock_time 0 s; user_time 0 s; system_time 0 s",
		"default":                "ok; wall_clock_time 0.12 s; user_time 0 s; system_time 0 s",
		"bash":                   "ok; wall_clock_time 0.101 s; user_time 0.001 s; system_time 0 s",
		"bash-p-around":          "ok; wall_clock_time 0.1 s; user_time 0 s; system_time 0 s",
		"dash-p":                 "ok; wall_clock_time 0.1 s; user_time 0 s; system_time 0 s",
		"v-around":               "ok; wall_clock_time 0.1 s; user_time 0 s; system_time 0 s",
		"constructed-v-26-hours": "ok; wall_clock_time 93784 s; user_time 180000.25 s; system_time 0 s",
	} {
		if got := times(parse(t, capture(t, name))); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestTheLongFormHasWhatLinuxMeasures(t *testing.T) {
	t.Parallel()
	r := parse(t, capture(t, "constructed-v-26-hours"))
	var got []string
	for _, m := range r.Metrics {
		line := fmt.Sprintf("%s %.12g %s %s", m.Name, m.Value, m.Unit, m.Direction)
		if m.Headline {
			line += " headline"
		}
		got = append(got, strings.TrimSpace(line))
	}
	want := []string{
		"wall_clock_time 93784 s lower headline", "user_time 180000.25 s lower", "system_time 0 s lower", "cpu_utilization 6.12 ratio",
		"max_resident_set_size 1716224 B lower", "major_page_faults 0 1 lower", "minor_page_faults 98 1 lower",
		"voluntary_context_switches 2 1 lower", "involuntary_context_switches 1 1 lower", "swaps 0 1 lower",
		"file_system_inputs 0 1 lower", "file_system_outputs 0 1 lower", "exit_status 0 1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTheDefaultFormatHasMemoryAndFaults(t *testing.T) {
	t.Parallel()
	text := "612.50user 6.02system 1:08.94elapsed 897%CPU (0avgtext+0avgdata 1676maxresident)k\n" +
		"72inputs+8outputs (1major+98minor)pagefaults 3swaps\n"
	got := say(parse(t, text), "wall_clock_time", "user_time", "system_time", "cpu_utilization", "max_resident_set_size",
		"file_system_inputs", "file_system_outputs", "major_page_faults", "minor_page_faults", "swaps")
	want := "ok; wall_clock_time 68.94 s; user_time 612.5 s; system_time 6.02 s; cpu_utilization 8.97 ratio; " +
		"max_resident_set_size 1716224 B; file_system_inputs 72 1; file_system_outputs 8 1; major_page_faults 1 1; minor_page_faults 98 1; " +
		"swaps 3 1"
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestACommandThatFailedIsFailedInTheWordsOfTime(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"v-exit-3":         "failed Command exited with non-zero status 3; wall_clock_time 0 s; exit_status 3 1",
		"v-signal-9":       "failed Command terminated by signal 9; wall_clock_time 0 s; exit_status 0 1",
		"v-quiet-exit-1":   "failed Exit status: 1; wall_clock_time 0.01 s; exit_status 1 1",
		"v-not-found":      "failed time: cannot run nosuch: No such file or directory; wall_clock_time 0 s; exit_status 127 1",
		"p-not-found":      "failed time: cannot run nosuch: No such file or directory; wall_clock_time 0 s",
		"default-exit-2":   "failed Command exited with non-zero status 2; wall_clock_time 0 s",
		"no output behind": "failed Command terminated by signal 9",
	} {
		text := "Command terminated by signal 9\n"
		if name != "no output behind" {
			text = capture(t, name)
		}
		if got := say(parse(t, text), "wall_clock_time", "exit_status"); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestAllFormsOfATimeAreRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0m1.003s": "ok; wall_clock_time 1.003 s", "0m1,003s": "ok; wall_clock_time 1.003 s", "61m1.5s": "ok; wall_clock_time 3661.5 s",
		"0m 1.00s": "ok; wall_clock_time 1 s", "1h 2m 3s": "ok; wall_clock_time 3723 s", "12.5": "ok; wall_clock_time 12.5 s",
		"1:02:03": "ok; wall_clock_time 3723 s", "1:62:03": "empty no result in the text", "-1.0": "empty no result in the text",
		"1.0 minutes": "empty no result in the text", "NaN": "empty no result in the text", "1:2:3:4": "empty no result in the text",
		"0x10": "empty no result in the text",
	} {
		if got := say(parse(t, "real "+text+"\nuser 0\nsys 0\n"), "wall_clock_time"); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestTheLastCompleteOutputCounts(t *testing.T) {
	t.Parallel()
	one, two := "real 1.00\nuser 0.50\nsys 0.25\n", "real 2.00\nuser 1.50\nsys 1.25\n"
	const (
		first  = "wall_clock_time 1 s; user_time 0.5 s; system_time 0.25 s"
		second = "wall_clock_time 2 s; user_time 1.5 s; system_time 1.25 s"
		fast   = "wall_clock_time 0 s; user_time 0 s; system_time 0 s"
	)
	for name, test := range map[string]struct{ text, want string }{
		"two": {one + "words\n" + two, "ok; " + second},
		"the second is cut off": {
			one + "real 2.00\nuser 1.50\n", "partial the output of time is cut off; the values are those of the one before; " + first,
		},
		"the first is cut off":        {"real 1.00\n" + two, "ok; " + second},
		"the first failed":            {capture(t, "v-exit-3") + two, "ok; " + second},
		"the second failed":           {one + capture(t, "v-exit-3"), "failed Command exited with non-zero status 3; " + fast},
		"words of the command behind": {one + "user 77\nsys 77\nreal life\nreality 5\n", "ok; " + first},
		"words of the command before": {"user 77\nsys 77\n\tUser time (seconds): 77\n3 seconds elapsed \n" + one, "ok; " + first},
	} {
		if got := times(parse(t, test.text)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestAValueThatCannotBeReadIsMissing(t *testing.T) {
	t.Parallel()
	for old, want := range map[string]struct{ with, say string }{
		"(kbytes): 1676":    {"(kbytes): 1676 MB", `partial cannot read "max_resident_set_size 1676 MB" of time`},
		"job got: 0%":       {"job got: ?%", "ok"},
		"m:ss): 0:01.00":    {"m:ss): 1.00 s!", `partial cannot read "wall_clock_time 1.00 s!" of time`},
		"(seconds): 0.00\n": {"(seconds): NaN\n", `partial cannot read "user_time NaN" of time`},
	} {
		if got := say(parse(t, strings.Replace(capture(t, "v"), old, want.with, 1))); got != want.say {
			t.Errorf("%s: %s, want %s", want.with, got, want.say)
		}
	}
}

func TestWithoutItsLastLineTheOutputIsCutOff(t *testing.T) {
	t.Parallel()
	if got := times(parse(t, strings.TrimSuffix(capture(t, "v"), "\tExit status: 0\n"))); got !=
		"partial the output of time is cut off; wall_clock_time 1 s; user_time 0 s; system_time 0 s" {
		t.Error(got)
	}
}

func TestParserOfGNUTimePassesTheSuite(t *testing.T) {
	reporttest.Suite{
		Kind:   gnutime.Kind(),
		Own:    []string{"p.txt", "v.txt", "bash.txt", "default.txt", "v-exit-3.txt", "p-not-found.txt", "dash-p.txt", "v-around.txt"},
		Others: []string{"{}", "[]", "real 1.00\n", "hello\nreal world\n"},
		Cuts: []reporttest.Cut{
			{File: "p.txt"}, {File: "v.txt"}, {File: "default.txt"}, {File: "bash.txt"}, {File: "v-around.txt"}, {File: "bash-p-around.txt"},
		},
	}.Run(t)
}

func FuzzParse(f *testing.F) {
	reporttest.Fuzz(f, gnutime.Kind())
}

func BenchmarkParse(b *testing.B) {
	words := "a line of the program, with numbers 1 2 3 and a result of 4.5 seconds\n\tat some place\nreally, user\n"
	text := strings.Repeat(strings.Repeat(words, 400)+capture(b, "v"), 100)
	reporttest.Benchmark(b, gnutime.Kind(), text)
}
