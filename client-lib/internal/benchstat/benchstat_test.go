package benchstat_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/client-lib/internal/benchstat"
)

// output is what Print writes; an error is the last line of the warnings, as
// benchstat prints it.
type output struct{ tables, warnings string }

// printed returns the output for the inputs.
func printed(inputs []benchstat.Input) output {
	var out, warnings strings.Builder
	if err := benchstat.Print(&out, &warnings, inputs); err != nil {
		fmt.Fprintf(&warnings, "benchstat: %s\n", err)
	}
	return output{tables: out.String(), warnings: warnings.String()}
}

// text reads a file of testdata, which is empty where there is none.
func text(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(b)
}

// folders returns the folders of testdata that have a call of benchstat.
func folders(tb testing.TB) (all []string) {
	tb.Helper()
	files, err := filepath.Glob("testdata/*/args")
	if err != nil || len(files) == 0 {
		tb.Fatalf("no calls in testdata: %v", err)
	}
	for _, f := range files {
		all = append(all, filepath.Dir(f))
	}
	return all
}

func TestTheOutputIsThatOfBenchstat(t *testing.T) {
	t.Parallel()
	for _, dir := range folders(t) {
		t.Run(strings.ReplaceAll(filepath.Base(dir), "-", " "), func(t *testing.T) {
			t.Parallel()
			var inputs []benchstat.Input
			for arg := range strings.Lines(text(t, dir, "args")) {
				in := benchstat.Input{Name: strings.TrimSuffix(arg, "\n")}
				path := in.Name[strings.Index(in.Name, "=")+1:]
				if b, err := os.ReadFile(filepath.Join(dir, path)); err == nil {
					in.Text = strings.NewReader(string(b))
				}
				inputs = append(inputs, in)
			}
			want := output{tables: text(t, dir, "stdout"), warnings: text(t, dir, "stderr")}
			if diff := cmp.Diff(want, printed(inputs), cmp.AllowUnexported(output{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheExpectedOutputsAreOfTheVersionInGoMod(t *testing.T) {
	t.Parallel()
	script := regexp.MustCompile(`(?m)^version=(\S+)$`).FindStringSubmatch(text(t, "testdata", "make.sh"))
	module := regexp.MustCompile(`golang\.org/x/perf (\S+)`).FindStringSubmatch(text(t, "..", "..", "go.mod"))
	if script == nil || module == nil || script[1] != module[1] {
		t.Errorf("make.sh has %q, go.mod has %q; set the version and run make.sh", script, module)
	}
}

func TestAnInputWithoutATextIsReadFromItsPath(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "old.txt")
	if err := os.WriteFile(path, []byte("BenchmarkA 1 5 x\nBenchmarkA 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := printed([]benchstat.Input{{Name: "old=" + path, Text: strings.NewReader("BenchmarkA 1 5 x\nBenchmarkA 1\n")}})
	if want.tables == "" || !strings.HasPrefix(want.warnings, path+":2: ") {
		t.Fatalf("got %q", want)
	}
	if diff := cmp.Diff(want, printed([]benchstat.Input{{Name: "old=" + path}}), cmp.AllowUnexported(output{})); diff != "" {
		t.Error(diff)
	}
}

func TestNoInputsHaveNoOutput(t *testing.T) {
	t.Parallel()
	if got := printed(nil); got != (output{}) {
		t.Errorf("got %q", got)
	}
}

func TestALineThatIsTooLongIsAnError(t *testing.T) {
	t.Parallel()
	long := "BenchmarkA 1 5 x\n" + strings.Repeat("y", 1<<17)
	want := output{warnings: "benchstat: old.txt:1: bufio.Scanner: token too long\n"}
	got := printed([]benchstat.Input{{Name: "old.txt", Text: strings.NewReader(long)}})
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(output{})); diff != "" {
		t.Error(diff)
	}
}

func TestSamplesWithNaNAreNotCompared(t *testing.T) {
	t.Parallel()
	got := printed([]benchstat.Input{
		{Name: "old", Text: strings.NewReader("BenchmarkA 1 5 x\n")},
		{Name: "new", Text: strings.NewReader("BenchmarkA 1 NaN x\n")},
	})
	want := `  │     old     │             new              │
  │      x      │     x      vs base           │
A   5.000 ± ∞ ¹   NaN ± ∞ ¹  ~ (p=1.000 n=1) ²
¹ need >= 6 samples for confidence interval at level 0.95
² samples with NaN are not compared
`
	if diff := cmp.Diff(output{tables: want}, got, cmp.AllowUnexported(output{})); diff != "" {
		t.Error(diff)
	}
}

// fullDisk is a writer that cannot write.
type fullDisk struct{}

var errFull = errors.New("disk is full")

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func TestWhatCannotBeReadOrWrittenIsAnError(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		out, warnings io.Writer
		text          io.Reader
		want          error
	}{
		"tables cannot be written":   {out: fullDisk{}, warnings: io.Discard, text: strings.NewReader("BenchmarkA 1 5 x\n"), want: errFull},
		"warnings cannot be written": {out: io.Discard, warnings: fullDisk{}, text: strings.NewReader("BenchmarkA 1\n"), want: errFull},
		"an input cannot be read":    {out: io.Discard, warnings: io.Discard, text: iotest.ErrReader(io.ErrClosedPipe), want: io.ErrClosedPipe},
		"an input is not there":      {out: io.Discard, warnings: io.Discard, want: os.ErrNotExist},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := benchstat.Print(tt.out, tt.warnings, []benchstat.Input{{Name: "no such file", Text: tt.text}})
			if !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

func FuzzPrint(f *testing.F) {
	for _, dir := range folders(f) {
		before, err := os.ReadFile(filepath.Join(dir, "old.txt"))
		if err != nil {
			continue
		}
		after, _ := os.ReadFile(filepath.Join(dir, "new.txt")) // some calls have none
		f.Add(string(before), string(after), "old.txt", "label=new.txt")
	}
	f.Add("BenchmarkA 1 NaN x\n", "Unit x assume=exact\nBenchmarkA 1 NaN x\n", "a", "a")
	f.Fuzz(func(t *testing.T, before, after, beforeName, afterName string) {
		inputs := func() []benchstat.Input {
			return []benchstat.Input{
				{Name: beforeName, Text: strings.NewReader(before)},
				{Name: afterName, Text: strings.NewReader(after)},
				{Name: beforeName, Text: strings.NewReader(before)},
			}
		}
		got := printed(inputs())
		if got.tables != "" && !strings.HasSuffix(got.tables, "\n") {
			t.Errorf("the last line has no end: %q", got.tables)
		}
		if diff := cmp.Diff(got, printed(inputs()), cmp.AllowUnexported(output{})); diff != "" {
			t.Errorf("the same inputs have another output: %s", diff)
		}
	})
}
