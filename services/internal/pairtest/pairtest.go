// Package pairtest compares two programs that do the same, each in a process of
// its own, turn by turn, so that whatever else goes on on the machine meets both.
//
// A test binary is both programs: it is started anew with a part to play, which
// TestMain or a test hands to Play.
package pairtest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Env names the part that a process is to play; empty in the test itself.
const Env = "PAIRTEST_PART"

// Measurement is what one turn took.
type Measurement struct{ Wall, CPU time.Duration }

// ServeTurns does the work once for each line that comes in, and says what it took. It
// returns when nothing comes any more.
func ServeTurns(in io.Reader, out io.Writer, work func() error) error {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		began, used := time.Now(), cpu()
		if err := work(); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "pairtest %d %d\n", time.Since(began), cpu()-used); err != nil {
			return err
		}
	}
	return nil
}

// cpu is how long this process has used processors.
func cpu() time.Duration {
	var use syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &use) != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// Program is one of the two.
type Program struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	output *bufio.Scanner
}

// Start starts the test binary again, to play a part in the test of that name. It
// ends with tb.
func Start(tb testing.TB, test, part string, env ...string) *Program {
	tb.Helper()
	p := &Program{cmd: exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.timeout=30m")} //nolint:gosec,noctx // itself; it ends with the test
	p.cmd.Env = append(append(os.Environ(), Env+"="+part), env...)
	p.cmd.Stderr = os.Stderr
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		tb.Fatal(err)
	}
	says, err := p.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	p.output = bufio.NewScanner(says)
	if err := p.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = p.stdin.Close()      // it ends then
		_ = p.cmd.Process.Kill() // or by this
		_, _ = io.Copy(io.Discard, says)
		_ = p.cmd.Wait() // says that it was killed
	})
	return p
}

// RunOnce has the work done once.
func (p *Program) RunOnce(tb testing.TB) Measurement {
	tb.Helper()
	if _, err := io.WriteString(p.stdin, "\n"); err != nil {
		tb.Fatal(err)
	}
	for p.output.Scan() {
		f := strings.Fields(p.output.Text())
		if len(f) != 3 || f[0] != "pairtest" {
			continue // the test binary says things of its own
		}
		wall, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			tb.Fatal(err)
		}
		used, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil {
			tb.Fatal(err)
		}
		return Measurement{time.Duration(wall), time.Duration(used)}
	}
	tb.Fatal("the program has ended")
	return Measurement{}
}

// PeakMemory is the most memory that the program had, in MiB; 0 where the system does
// not tell.
func (p *Program) PeakMemory(tb testing.TB) float64 {
	tb.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "VmHWM:" {
			kib, err := strconv.ParseFloat(f[1], 64)
			if err != nil {
				tb.Fatal(err)
			}
			return kib / 1024
		}
	}
	return 0
}

// Result is how one program did beside another: the times of the first over those
// of the second.
type Result struct {
	Median float64 // of the turns' ratios
	Best   float64 // the shortest turn of the one over that of the other: what noise lengthens least
	CPU    float64 // of the least that a turn used
	Turns  int
}

// Compare has two programs take turns, after one each that does not count. Before
// each turn of either it calls between, where that is not nil.
func Compare(tb testing.TB, turns int, one, other *Program, between func()) Result {
	tb.Helper()
	var ratios []float64
	var a, b []Measurement
	for i := range turns + 1 {
		var s [2]Measurement
		for n := range s {
			if between != nil {
				between()
			}
			which := (n + i) % 2 // who is first changes
			s[which] = [2]*Program{one, other}[which].RunOnce(tb)
		}
		if i == 0 {
			continue
		}
		a, b = append(a, s[0]), append(b, s[1])
		ratios = append(ratios, float64(s[0].Wall)/float64(s[1].Wall))
	}
	slices.Sort(ratios)
	wall, used := func(s Measurement) time.Duration { return s.Wall }, func(s Measurement) time.Duration { return s.CPU }
	return Result{
		Median: ratios[len(ratios)/2], Turns: turns,
		Best: float64(minimum(a, wall)) / float64(minimum(b, wall)), CPU: float64(minimum(a, used)) / float64(max(1, minimum(b, used))),
	}
}

func minimum(all []Measurement, of func(Measurement) time.Duration) time.Duration {
	return of(slices.MinFunc(all, func(x, y Measurement) int { return int(of(x) - of(y)) }))
}

// String says it in one line.
func (r Result) String() string {
	return fmt.Sprintf("%.2f × the time (median of %d pairs %.2f), %.2f × the CPU", r.Best, r.Turns, r.Median, r.CPU)
}
