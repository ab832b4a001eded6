//go:build unix

// Package shell_test holds bai-emit to the table that all client libraries pass:
// the script in each shell that there is, and the program of the pods.
package shell_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

type conformance struct {
	Cases []struct {
		Name  string `json:"name"`
		Time  string `json:"time"`
		Line  string `json:"line"`
		Shell *struct {
			Args []string `json:"args"`
			Line string   `json:"line"` // if it is another than that of all
		} `json:"shell"`
	} `json:"cases"`
	NoNumbers []struct{ Text string } `json:"no_numbers"`
	Refused   [][]string              `json:"refused_by_shell"`
}

func read(t *testing.T) conformance {
	t.Helper()
	b, err := os.ReadFile("../emit/testdata/conformance.json")
	if err != nil {
		t.Fatal(err)
	}
	var c conformance
	if err := json.Unmarshal(b, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// pods is a folder with bai-emit as the pods have it: another name of their one
// program.
var pods string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	var err error
	if pods, err = os.MkdirTemp("", "bai-emit-"); err == nil {
		defer os.RemoveAll(pods) //nolint:errcheck // the system's
		err = build(pods)
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func build(dir string) error {
	cmd := exec.Command("go", "build", "-o", filepath.Join(dir, "bai-pod"), "./cmd/bai-pod")
	cmd.Dir, cmd.Env = "../../services", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the program of the pods: %w\n%s", err, out)
	}
	return os.Symlink("bai-pod", filepath.Join(dir, "bai-emit"))
}

// shells returns the shells that run bai-emit on this machine, and the case without a
// shell.
func shells(t *testing.T) map[string]shell {
	t.Helper()
	found := map[string]shell{}
	if runtime.GOOS == "linux" {
		found["no shell"] = shell{filepath.Join(pods, "bai-emit")}
	}
	for _, command := range [][]string{{"sh"}, {"dash"}, {"bash", "--posix"}, {"busybox", "sh"}, {"ksh"}, {"mksh"}} {
		path, err := exec.LookPath(command[0])
		if err != nil {
			t.Logf("not tested: %v", err)
			continue
		}
		found[command[0]] = append(append(shell{path}, command[1:]...), "./bai-emit")
	}
	return found
}

// shell is a command without its arguments.
type shell []string

// result is how bai-emit ended.
type result struct {
	Out, Err string
	Code     int
}

// emit runs bai-emit in an environment of nothing but env.
func (sh shell) emit(t *testing.T, env []string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, sh[0], append(slices.Clip(sh[1:]), args...)...) //nolint:gosec // a shell
	c.Env = append(env, "PATH="+os.Getenv("PATH"))
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	c.WaitDelay = time.Second
	err := c.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{out.String(), errs.String(), c.ProcessState.ExitCode()}
}

func TestTheTableIsPrintedOutsideOfAPod(t *testing.T) {
	for name, sh := range shells(t) {
		t.Run(name, func(t *testing.T) { sh.table(t) })
	}
}

func (sh shell) table(t *testing.T) {
	t.Helper()
	for _, tt := range read(t).Cases {
		if tt.Shell == nil {
			continue
		}
		want := cmp.Or(tt.Shell.Line, tt.Line) + "\n"
		if diff := gocmp.Diff(result{Out: want}, sh.emit(t, nil, tt.Shell.Args...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.Name, diff)
		}
	}
}

func TestWhatIsNoNumberOrNoOptionIsRefused(t *testing.T) {
	for name, sh := range shells(t) {
		t.Run(name, func(t *testing.T) {
			table := read(t)
			for _, no := range table.NoNumbers {
				table.Refused = append(table.Refused, []string{"a=" + no.Text})
			}
			for _, args := range table.Refused {
				r := sh.emit(t, nil, args...)
				if r.Code != 2 || r.Out != "" || !strings.HasPrefix(r.Err, "bai-emit: ") || strings.Count(r.Err, "\n") != 1 {
					t.Errorf("%q: %+v, want exit code 2 and one line that says why", args, r)
				}
			}
		})
	}
}

func TestALineIsAppendedToTheMetricsFileWithTheTime(t *testing.T) {
	for name, sh := range shells(t) {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "the metrics")
			env := []string{"BENCHMARK_AI_FILE=" + file, "BENCHMARK_AI=fifo", "BENCHMARK_AI_FIFO_FILEPATH=/nowhere/fifo"}
			before := time.Now()
			for _, args := range [][]string{{"--time", "5.5", "loss=0.25"}, {"loss=0.25"}} {
				if diff := gocmp.Diff(result{}, sh.emit(t, env, args...)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
			wantStamped(t, contents(t, file), before, time.Now(), name == "busybox") // whose date knows no more than the second
		})
	}
}

// wantStamped holds that of two lines the first has its own time, and the second the
// time between before and after, or none where that may be.
func wantStamped(t *testing.T, lines string, before, after time.Time, may bool) {
	t.Helper()
	m := regexp.MustCompile(`^{"loss": 0.25, "@time": 5.5}\n{"loss": 0.25(?:, "@time": (\d+)\.(\d{9}))?}\n$`).FindStringSubmatch(lines)
	if m == nil || (m[1] == "" && !may) {
		t.Fatalf("the file holds %q", lines)
	}
	if m[1] == "" {
		return
	}
	ns, err := strconv.ParseInt(m[1]+m[2], 10, 64)
	if err != nil || ns < before.UnixNano() || ns > after.UnixNano() {
		t.Errorf("the time is %d (%v), want one from %d to %d", ns, err, before.UnixNano(), after.UnixNano())
	}
}

func contents(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestALineThatWasTornIsEndedFirst(t *testing.T) {
	for name, sh := range shells(t) {
		t.Run(name, func(t *testing.T) {
			for before, want := range map[string]string{"": "", "{\"a\": 1": "{\"a\": 1\n", "{\"a\": 1}\n": "{\"a\": 1}\n", "released\x00": "released\x00"} {
				sh.wantAppended(t, before, want)
			}
		})
	}
}

// wantAppended checks that a file with a text has another one, and a line behind it, once that was emitted.
func (sh shell) wantAppended(t *testing.T, before, want string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "the metrics")
	if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(result{}, sh.emit(t, []string{"BENCHMARK_AI_FILE=" + file}, "--time", "5.5", "b=2")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(want+"{\"b\": 2, \"@time\": 5.5}\n", string(got)); diff != "" {
		t.Errorf("%q (-want +got):\n%s", before, diff)
	}
}

func TestLinesOfManyProcessesAreWholeAndInTheOrderOfEach(t *testing.T) {
	for name, sh := range shells(t) {
		t.Run(name, func(t *testing.T) {
			const writers, each = 4, 20
			file := filepath.Join(t.TempDir(), "metrics")
			var wg sync.WaitGroup
			for w := range writers {
				wg.Go(func() {
					for i := range each {
						sh.emit(t, []string{"BENCHMARK_AI_FILE=" + file}, fmt.Sprintf("w%d=%d", w, i))
					}
				})
			}
			wg.Wait()
			if diff := gocmp.Diff(map[int]int{0: each, 1: each, 2: each, 3: each}, numbered(t, contents(t, file))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// numbered returns how many lines each writer has written, one after the other.
func numbered(t *testing.T, lines string) map[int]int {
	t.Helper()
	next := map[int]int{}
	for line := range strings.Lines(lines) {
		var w, n int
		if _, err := fmt.Sscanf(line, `{"w%d": %d`, &w, &n); err != nil || n != next[w] || !strings.HasSuffix(line, "}\n") {
			t.Fatalf("line %q: %v, want %d", line, err, next[w])
		}
		next[w]++
	}
	return next
}

func TestWhatCannotBeWrittenIsSaidAndEndsTheScriptOnlyWhereThatIsAskedFor(t *testing.T) {
	tests := map[string][]string{
		"a folder that is not there": {"BENCHMARK_AI_FILE=/nowhere/metrics"},
		"a disk that is full":        {"BENCHMARK_AI_FILE=/dev/full"},
		"a FIFO that does not come":  {"BENCHMARK_AI=fifo", "BENCHMARK_AI_FIFO_FILEPATH=/nowhere/fifo", "BENCHMARK_AI_FIFO_MAX_WAIT_TIME=0.5"},
	}
	for name, sh := range shells(t) {
		t.Run(name, func(t *testing.T) {
			for name, env := range tests {
				for strict, code := range map[string]int{"": 0, "0": 0, "1": 1} {
					r := sh.emit(t, append(slices.Clip(env), "BENCHMARK_AI_STRICT="+strict), "a=1")
					if r.Code != code || r.Out != "" || !strings.HasPrefix(r.Err, "bai-emit: dropped: ") {
						t.Errorf("%s: %+v, want exit code %d and why it was dropped", name, r, code)
					}
				}
			}
		})
	}
}

func TestAnUnknownBackEndIsRefused(t *testing.T) {
	for name, sh := range shells(t) {
		t.Run(name, func(t *testing.T) {
			want := result{Err: "bai-emit: BENCHMARK_AI: \"kafka\" is none of stdout and fifo\n", Code: 2}
			if diff := gocmp.Diff(want, sh.emit(t, []string{"BENCHMARK_AI=kafka"}, "a=1")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAFIFOIsWaitedForAndSoIsItsReader(t *testing.T) {
	for name, sh := range shells(t) {
		t.Run(name, func(t *testing.T) {
			fifo := filepath.Join(t.TempDir(), "the fifo")
			env := []string{"BENCHMARK_AI=fifo", "BENCHMARK_AI_FIFO_FILEPATH=" + fifo}
			ended := make(chan result)
			go func() { ended <- sh.emit(t, append(slices.Clip(env), "BENCHMARK_AI_FIFO_MAX_WAIT_TIME=30"), "a=1") }()
			if line := firstLine(t, fifo); line != "{\"a\": 1}\n" {
				t.Errorf("read %q", line)
			}
			if diff := gocmp.Diff(result{}, <-ended); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			r := sh.emit(t, append(slices.Clip(env), "BENCHMARK_AI_FIFO_MAX_WAIT_TIME=0"), "a=1")
			if r.Code != 0 || !strings.Contains(r.Err, "bai-emit: dropped: nobody read ") {
				t.Errorf("without a reader: %+v", r)
			}
		})
	}
}

func TestAReaderIsGivenASecondHoweverShortTheWaitForTheFIFO(t *testing.T) {
	for name, sh := range shells(t) {
		t.Run(name, func(t *testing.T) {
			for _, most := range []string{"0", "0.0", "0.5", ".5", "0.01"} {
				env := []string{"BENCHMARK_AI=fifo", "BENCHMARK_AI_FIFO_FILEPATH=" + fifoWithReader(t), "BENCHMARK_AI_FIFO_MAX_WAIT_TIME=" + most}
				if diff := gocmp.Diff(result{}, sh.emit(t, env, "a=1")); diff != "" {
					t.Errorf("%s s: (-want +got):\n%s", most, diff)
				}
			}
		})
	}
}

// fifoWithReader makes a FIFO that has a reader until the end of the test.
func fifoWithReader(t *testing.T) (fifo string) {
	t.Helper()
	fifo = filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reader.Close() })
	return fifo
}

func TestAWaitForTheFIFOThatIsNoNumberIsRefused(t *testing.T) {
	for name, sh := range shells(t) {
		t.Run(name, func(t *testing.T) {
			for _, most := range []string{"1m", "-1", "nan", ".", "1.2.3", "1000000000"} {
				want := result{Err: "bai-emit: BENCHMARK_AI_FIFO_MAX_WAIT_TIME: \"" + most + "\" is no number of seconds\n", Code: 2}
				r := sh.emit(t, []string{"BENCHMARK_AI=fifo", "BENCHMARK_AI_FIFO_MAX_WAIT_TIME=" + most}, "a=1")
				if diff := gocmp.Diff(want, r); diff != "" {
					t.Errorf("%s: (-want +got):\n%s", most, diff)
				}
			}
		})
	}
}

// firstLine makes the FIFO and returns the first line that is written to it.
func firstLine(t *testing.T, fifo string) string {
	t.Helper()
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	line, err := bufio.NewReader(reader).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func TestHelpSaysWhatThereIs(t *testing.T) {
	script := contents(t, "bai-emit")
	for name, sh := range shells(t) {
		t.Run(name, func(t *testing.T) {
			r := sh.emit(t, nil, "--help")
			if r.Code != 0 || r.Err != "" || !strings.HasPrefix(r.Out, "Usage: bai-emit ") || !strings.Contains(script, r.Out) {
				t.Errorf("%+v, want what the script says", r)
			}
		})
	}
}
