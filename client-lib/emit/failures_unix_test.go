//go:build unix

package emit_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/client-lib/emit"
)

func TestLinesOfManyGoroutinesAreWholeAndInTheOrderOfEach(t *testing.T) {
	const writers, each = 16, 2000
	file := filepath.Join(t.TempDir(), "metrics")
	e := open(t, emit.Settings{Buffer: 4096, Block: time.Minute}, "BENCHMARK_AI_FILE", file)
	other := open(t, emit.Settings{}, "BENCHMARK_AI_FILE", file) // as another process
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				[]*emit.Emitter{e, other}[w%2].Count(fmt.Sprint("w", w), int64(i))
			}
		})
	}
	wg.Wait()
	for _, e := range []*emit.Emitter{e, other} {
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	wantNumbered(t, lines(b), writers, each)
}

// wantNumbered holds that lines are those of the writers, each in its order.
func wantNumbered(t *testing.T, lines []string, writers, each int) {
	t.Helper()
	next := map[int]int{}
	for _, line := range lines {
		var w, n int
		if _, err := fmt.Sscanf(line, `{"w%d": %d, "@time": `, &w, &n); err != nil || !strings.HasSuffix(line, "}") {
			t.Fatalf("line %q: %v", line, err)
		}
		if n != next[w] {
			t.Fatalf("writer %d: %d, want %d", w, n, next[w])
		}
		next[w]++
	}
	if len(next) != writers || len(lines) != writers*each {
		t.Errorf("%d lines of %d writers, want %d of %d", len(lines), len(next), writers*each, writers)
	}
}

func TestAMetricsFileThatAppearsLateGetsEveryLine(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "late")
	stderr := &buffer{}
	e := open(t, emit.Settings{Stderr: stderr}, "BENCHMARK_AI_FILE", filepath.Join(dir, "metrics"))
	e.Count("a", 1, emit.At(time.Unix(1, 0)))
	stderr.await(t, "no such file or directory: what is emitted waits")
	e.Count("a", 2, emit.At(time.Unix(2, 0)))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := e.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "metrics"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`{"a": 1, "@time": 1.000000000}`, `{"a": 2, "@time": 2.000000000}`}
	if diff := cmp.Diff(want, lines(b)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

func TestALineThatAnotherProgramLeftWithoutItsEndIsEndedFirst(t *testing.T) {
	for before, want := range map[string]string{"": "", "{\"a\": 1": "{\"a\": 1\n", "{\"a\": 1}\n": "{\"a\": 1}\n", "released\x00": "released\x00"} {
		file := filepath.Join(t.TempDir(), "metrics")
		if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		e := open(t, emit.Settings{}, "BENCHMARK_AI_FILE", file)
		e.Count("b", 2, emit.At(time.Unix(1, 0)))
		e.Count("b", 3, emit.At(time.Unix(1, 0)))
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want+"{\"b\": 2, \"@time\": 1.000000000}\n{\"b\": 3, \"@time\": 1.000000000}\n", string(got)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", before, diff)
		}
	}
}

func TestWhatAFullDiskDoesNotTakeIsCountedAndSaid(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	stderr := &buffer{}
	e := open(t, emit.Settings{Stderr: stderr, Drain: 50 * time.Millisecond}, "BENCHMARK_AI_FILE", "/dev/full")
	for i := range 3 {
		e.Count("a", int64(i))
	}
	if err := e.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error %v, want %v", err, syscall.ENOSPC)
	}
	stderr.await(t, "emit: 3 of 3 dropped: write /dev/full: no space left on device\n")
}

func TestACallWaitsNoLongerThanItMayAndSaysWhatItDropped(t *testing.T) {
	stderr := &buffer{}
	s := emit.Settings{Stderr: stderr, Block: 20 * time.Millisecond, Drain: 50 * time.Millisecond, Buffer: 100}
	e := open(t, s, "BENCHMARK_AI_FILE", filepath.Join(t.TempDir(), "none", "metrics"))
	begin, dropped := time.Now(), 0
	for i := range 10000 {
		if err := e.Emit(map[string]any{"a": i}); errors.Is(err, emit.ErrDropped) {
			dropped++
		}
	}
	if took := time.Since(begin); took > 100*time.Second {
		t.Errorf("10000 calls took %s: each has waited", took)
	}
	if err := e.Close(); err == nil {
		t.Error("Close says nothing")
	}
	if dropped < 9900 {
		t.Errorf("%d calls were told that they were dropped, want more than 9900", dropped)
	}
	stderr.await(t, "emit: 10000 of 10000 dropped: ")
}

func TestALineThatTheDiskCutIsWrittenOnceMore(t *testing.T) {
	// A limit of the process's file size cuts a write as a full disk does.
	file := filepath.Join(t.TempDir(), "metrics")
	limit(t, 45)
	stderr := &buffer{}
	e := open(t, emit.Settings{Stderr: stderr}, "BENCHMARK_AI_FILE", file)
	for i := range 3 {
		e.Count("a", int64(i), emit.At(time.Unix(1, 0)))
	}
	stderr.await(t, "file too large: what is emitted waits")
	limit(t, 1<<20)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`{"a": 0, "@time": 1.000000000}`, `{"a": 1, "@time"`[:14], `{"a": 1, "@time": 1.000000000}`, `{"a": 2, "@time": 1.000000000}`}
	if diff := cmp.Diff(want, lines(b)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func limit(t *testing.T, bytes uint64) {
	t.Helper()
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &l); err != nil {
		t.Fatal(err)
	}
	was := l.Cur
	l.Cur = bytes
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &l); err != nil {
		t.Skip(err)
	}
	l.Cur = was
	t.Cleanup(func() { _ = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &l) })
}

func TestTheFIFOGetsTheTableWithoutTheTime(t *testing.T) {
	fifo, reader := pipe(t)
	got := make(chan []string)
	go func() {
		var all []string
		for scan := bufio.NewScanner(reader); scan.Scan() && scan.Text() != `{"end": 1}`; {
			all = append(all, scan.Text())
		}
		got <- all
	}()
	e := open(t, emit.Settings{}, "BENCHMARK_AI", "Fifo", "BENCHMARK_AI_FIFO_FILEPATH", fifo)
	want := read(t).calls(t, e)
	e.Count("end", 1)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, <-got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// pipe makes a FIFO and opens it as the collector does.
func pipe(t *testing.T) (path string, reader *os.File) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reader.Close() })
	return path, reader
}

func TestAFIFOThatAppearsLateGetsEveryLine(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	stderr := &buffer{}
	e := open(t, emit.Settings{Stderr: stderr}, "BENCHMARK_AI", "fifo", "BENCHMARK_AI_FIFO_FILEPATH", fifo, "BENCHMARK_AI_FIFO_MAX_WAIT_TIME", "0.02")
	e.Count("a", 1)
	stderr.await(t, "no such file or directory: what is emitted waits")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(reader).ReadString('\n')
	if line != "{\"a\": 1}\n" {
		t.Errorf("read %q, %v", line, err)
	}
}

func TestAFIFOWithoutAReaderOrWithOneThatDoesNotReadKeepsNobodyWaiting(t *testing.T) {
	t.Run("without", func(t *testing.T) {
		fifo, reader := pipe(t)
		_ = reader.Close()
		stderr := &buffer{}
		e := open(t, emit.Settings{Stderr: stderr, Drain: 20 * time.Millisecond}, "BENCHMARK_AI", "fifo", "BENCHMARK_AI_FIFO_FILEPATH", fifo)
		e.Value("a", 1)
		if err := e.Close(); !errors.Is(err, syscall.ENXIO) {
			t.Errorf("error %v, want %v", err, syscall.ENXIO)
		}
		stderr.await(t, "emit: 1 of 1 dropped: ")
	})
	t.Run("one that does not read", func(t *testing.T) {
		fifo, _ := pipe(t)
		e := open(t, emit.Settings{Drain: 20 * time.Millisecond, Buffer: 1 << 20}, "BENCHMARK_AI", "fifo", "BENCHMARK_AI_FIFO_FILEPATH", fifo)
		for range 10000 {
			e.Value("a", 1)
		}
		if err := e.Close(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("error %v, want %v", err, os.ErrDeadlineExceeded)
		}
	})
}

func TestAReaderOfTheFIFOThatGoesAndComesAgainGetsWholeLines(t *testing.T) {
	fifo, reader := pipe(t)
	e := open(t, emit.Settings{Every: time.Millisecond}, "BENCHMARK_AI", "fifo", "BENCHMARK_AI_FIFO_FILEPATH", fifo)
	e.Count("a", 1)
	if err := e.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = reader.Close()
	e.Count("a", 2)
	reader, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	// The first line is lost if no reader had read it, by the contract of a FIFO.
	for scan := bufio.NewScanner(reader); scan.Scan(); {
		if scan.Text() == `{"a": 2}` {
			return
		}
		if scan.Text() != `{"a": 1}` {
			t.Fatalf("read %q", scan.Text())
		}
	}
	t.Error("the second line did not come")
}

func TestAnEnvironmentThatSaysNothingKnownIsRefused(t *testing.T) {
	tests := map[string]struct {
		env  []string
		want string
	}{
		"a back end that there is not": {[]string{"BENCHMARK_AI", "kafka"}, `BENCHMARK_AI: "kafka" is none of stdout and fifo`},
		"a wait that is no number":     {[]string{"BENCHMARK_AI", "fifo", "BENCHMARK_AI_FIFO_MAX_WAIT_TIME", "1m"}, `BENCHMARK_AI_FIFO_MAX_WAIT_TIME: "1m" is no number of seconds`},
		"a wait that never ends":       {[]string{"BENCHMARK_AI", "fifo", "BENCHMARK_AI_FIFO_MAX_WAIT_TIME", "NaN"}, `"NaN" is no number of seconds`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := emit.Open(emit.Settings{Getenv: getenv(tt.env...)})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestWhatIsNoNumberIsRefusedAndCounted(t *testing.T) {
	tests := map[string]struct {
		values map[string]any
		want   string
	}{
		"nothing":                    {nil, "emit: no values"},
		"nil":                        {map[string]any{"a": nil}, `emit "a": nil is no number`},
		"a list":                     {map[string]any{"a": []int{1}}, `emit "a": []int is no number`},
		"a duration has no unit":     {map[string]any{"a": time.Second}, `emit "a": a duration such as 1s has no number`},
		"a json.Number that is none": {map[string]any{"a": jsonNumber("[1]")}, `emit "a": "[1]" is no number`},
		"one with a line's end":      {map[string]any{"a": jsonNumber("1\n")}, `is no number`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			e := open(t, emit.Settings{Stdout: &out})
			if err := e.Emit(tt.values); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if err := e.Emit(map[string]any{"b": jsonNumber("1e3"), "c": float32(0.5), "d": uint8(7)}); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff("{\"b\": 1e3, \"c\": 0.5, \"d\": 7}\n", out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if err := e.Close(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Close: error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestAfterCloseNothingIsEmittedAndThatIsSaid(t *testing.T) {
	stderr := &buffer{}
	file := filepath.Join(t.TempDir(), "metrics")
	e := open(t, emit.Settings{Stderr: stderr}, "BENCHMARK_AI_FILE", file)
	e.Value("a", 1)
	for range 2 {
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Emit(map[string]any{"a": 1}); !errors.Is(err, emit.ErrClosed) {
		t.Errorf("error %v, want %v", err, emit.ErrClosed)
	}
	e.Value("a", 1)
	if err := e.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	if b, _ := os.ReadFile(file); bytes.Count(b, []byte("\n")) != 1 {
		t.Errorf("the file holds %q, want one line", b)
	}
	if diff := cmp.Diff("emit: emitted after Close: dropped\n", stderr.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFlushEndsWithItsContext(t *testing.T) {
	e := open(t, emit.Settings{Drain: time.Millisecond}, "BENCHMARK_AI_FILE", filepath.Join(t.TempDir(), "none", "metrics"))
	if err := e.Flush(t.Context()); err != nil {
		t.Errorf("nothing to flush: %v", err)
	}
	e.Value("a", 1)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := e.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want %v", err, context.DeadlineExceeded)
	}
}

// buffer collects the bytes that any goroutine writes.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// await waits until text is in b.
func (b *buffer) await(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !strings.Contains(b.String(), text); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%q does not hold %q", b.String(), text)
		}
	}
}
