package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

func TestAReportIsOneFile(t *testing.T) {
	for name, wants := range map[string][]string{
		"hello": {"<title>Run hello</title>", "epoch 1", "compress", "AMD EPYC 9454", "1/benchmark-0/results/out.json", "node lost", "docker.io/library/hello-world:1"},
		"sizes": {"<title>Set sizes</title>", "size=1M", "an interval needs 6 repetitions"},
		gridID:  {"<title>Set " + gridID, "<svg ", "latency (ms), lower is better", "system.cpu", "throughput"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := writtenReport(t, name)
			for _, want := range append(wants, "</html>", "Made by baictl") {
				if !strings.Contains(text, want) {
					t.Errorf("the report lacks %q", want)
				}
			}
			if strings.Contains(text, "older and longer") {
				t.Error("the older file is still there")
			}
		})
	}
}

// writtenReport returns a report that was written in place of an older file.
func writtenReport(t *testing.T, name string) string {
	t.Helper()
	p := newFixture(t, newYear)
	addGrid(p, newYear)
	path := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, []byte(strings.Repeat("older and longer ", 1<<16)), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := finish(t, command(t, p.Addr(), "report", name, "-o", path)); got.code != 0 || got.out != "" {
		t.Fatalf("%s", got)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAReportCanGoToStandardOutput(t *testing.T) {
	p := newFixture(t, newYear)
	if got := finish(t, command(t, p.Addr(), "report", "hello", "-o", "-")); got.code != 0 || !strings.HasPrefix(got.out, "<!DOCTYPE html>") {
		t.Errorf("%s", got)
	}
}

func TestAReportIsRefused(t *testing.T) {
	for line, want := range map[string]string{
		"report hello":                     "name the file: -o FILE.html",
		"report colours -o x.html":         `there is no run and no set "colours"`,
		"report sizes -o x.html":           `"sizes" is a run, `,
		"report hello -o nowhere/x.html":   "nowhere/x.html: no such file or directory",
		"report -o x.html":                 "a RUN or SET is missing",
		"report hello -o x.html -o y z":    "too many arguments",
		"report hello --output= -o= extra": "too many arguments",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			p := newFixture(t, newYear)
			p.Add(&baiv1.Run{Name: "sizes", Owner: "ann"})
			got := finish(t, command(t, p.Addr(), strings.Fields(line)...))
			if got.code != 2 || !strings.Contains(got.err, want) {
				t.Errorf("want %q:\n%s", want, got)
			}
		})
	}
}

func TestAReportOfAPlatformThatIsAwayWritesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.html")
	if got := runPiped(t, "127.0.0.1:1", "report", "hello", "-o", path); got.code != 3 {
		t.Errorf("%s", got)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("there is a file")
	}
}
