package parse_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/pod/parse"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

// echo is a parser of kind command that finds its own input.
func echo(t *testing.T) parse.RunCommand {
	t.Helper()
	return func(p pod.Parser, stdin *os.File) report.Report {
		text, err := io.ReadAll(stdin)
		if err != nil {
			t.Error(err)
		}
		name := string(text[:min(len(text), 40)])
		if name == "" {
			name = "nothing"
		}
		return report.Of(p.Kind, "", []report.Metric{{Name: name, Value: float64(len(text))}}, "")
	}
}

func TestACommandReadsTheOutputFromTheBeginning(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := parse.Start([]pod.Parser{{Kind: "command"}, {Kind: "command", Stream: "stderr"}, {Kind: "command", Path: dir + "/result"}, {Kind: "command", Path: dir + "/none"}}, parse.Spool{Dir: dir})
	p.Write(false, []byte("one "))
	p.Write(true, []byte("error\n"))
	p.Write(false, []byte("line\n"))
	if err := os.WriteFile(dir+"/result", []byte("a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range p.End(echo(t)) {
		got = append(got, string(r.Report.State)+" "+values(r.Report)+" "+r.Report.Reason+" "+strings.Join(r.Head, ","))
	}
	if left, err := filepath.Glob(dir + "/parser-*"); err != nil || len(left) > 0 {
		t.Errorf("the folder has %v (%v)", left, err)
	}
	want := []string{"ok error\none line\n=15  one error,line", "ok error\n=6  error", "ok a file\n=7  a file", "empty  the benchmark left no such file "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestOutputThatHasNoRoomIsSaidToBeMissing(t *testing.T) {
	t.Parallel()
	full := func(int64) string { return "the disk is full" }
	filling := 0
	fills := func(int64) string {
		if filling++; filling > 2 {
			return "the disk is full"
		}
		return ""
	}
	for name, tt := range map[string]struct {
		keep parse.Spool
		want string
	}{
		"from the beginning": {parse.Spool{Dir: t.TempDir(), Missing: full}, "partial it was given the first 0 B of the output: the disk is full 0"},
		"from some point on": {parse.Spool{Dir: t.TempDir(), Missing: fills}, "partial it was given the first 2.0 MiB of the output: the disk is full 2097152"},
		"without a folder":   {parse.Spool{Dir: "/no/such"}, "empty the output is not kept for it: "},
	} {
		p := parse.Start([]pod.Parser{{Kind: "command"}}, tt.keep)
		p.Write(false, []byte(strings.Repeat(strings.Repeat("x", 1023)+"\n", 3<<10)))
		r := p.End(echo(t))[0].Report
		got := string(r.State) + " " + r.Reason
		if len(r.Metrics) > 0 {
			got += " " + values(r)[strings.Index(values(r), "=")+1:]
		}
		if !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}
