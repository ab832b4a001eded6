package main_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"github.com/benchmark-ai/bai/client-lib/internal/baitest"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// endSubmitted makes each submitted run end so, with its data.
func endSubmitted(p *baitest.Platform, end *baiv1.Change, data *baiv1.Completeness) {
	end.Phase = baiv1.Phase_PHASE_FINISHED
	p.OnSubmit(func(id string) {
		p.Change(id, &baiv1.Change{Phase: baiv1.Phase_PHASE_RUNNING})
		p.Change(id, end)
		p.SetCompleteness(id, data)
	})
}

func expect(t *testing.T, got result, code int, notes string) {
	t.Helper()
	if got.code != code || !strings.Contains(got.err, notes) {
		t.Errorf("exit %d, want %d and %q on standard error\n%s", got.code, code, notes, got)
	}
	for line := range strings.Lines(got.err) {
		if strings.Contains(line, "Usage:") {
			t.Errorf("the usage is dumped:\n%s", got)
		}
	}
}

func TestTheExitCodeOfRunSaysHowTheRunEnded(t *testing.T) {
	whole := &baiv1.Completeness{Complete: true}
	for name, tt := range map[string]struct {
		end  *baiv1.Change
		data *baiv1.Completeness
		code int
		says string
	}{
		"it succeeded": {&baiv1.Change{Outcome: baiv1.Outcome_OUTCOME_SUCCEEDED}, whole, 0, ""},
		"the user failed": {
			&baiv1.Change{Outcome: baiv1.Outcome_OUTCOME_FAILED, FailureClass: baiv1.FailureClass_FAILURE_CLASS_USER, Reason: "NonZeroExit", Message: "exited with 3"},
			whole, 1, "failed: NonZeroExit (user): exited with 3 (see baictl logs 01kdyt1q880000000000000001)\n",
		},
		"a node failed": {
			&baiv1.Change{Outcome: baiv1.Outcome_OUTCOME_FAILED, FailureClass: baiv1.FailureClass_FAILURE_CLASS_INFRA, Reason: "JobDisappeared"},
			whole, 1, "failed: JobDisappeared (infra) (see",
		},
		"the platform failed": {
			&baiv1.Change{Outcome: baiv1.Outcome_OUTCOME_FAILED, FailureClass: baiv1.FailureClass_FAILURE_CLASS_PLATFORM, Reason: "Poison"},
			whole, 3, "failed: Poison (platform) (see",
		},
		"a deadline was over": {
			&baiv1.Change{Outcome: baiv1.Outcome_OUTCOME_FAILED, FailureClass: baiv1.FailureClass_FAILURE_CLASS_TIMEOUT, Reason: "DeadlineExceeded"},
			whole, 4, "failed: DeadlineExceeded (timeout) (see",
		},
		"it was canceled": {&baiv1.Change{Outcome: baiv1.Outcome_OUTCOME_CANCELED}, whole, 5, "run 01kdyt1q880000000000000001 was canceled\n"},
		"its data are not there": {
			&baiv1.Change{Outcome: baiv1.Outcome_OUTCOME_SUCCEEDED},
			&baiv1.Completeness{Samples: 1, Lines: 2, Missing: 3, Awaited: []string{"log of benchmark/0"}, Dropped: 4},
			3, "the data of run 01kdyt1q880000000000000001 are not complete after 0.1s: 1 sample, 2 lines, 4 lines dropped; 3 missing; awaited: log of benchmark/0 (look again:",
		},
		"nobody knows about its data": {&baiv1.Change{Outcome: baiv1.Outcome_OUTCOME_SUCCEEDED}, nil, 3, "does not say"},
		"it failed and its data are not there": {
			&baiv1.Change{Outcome: baiv1.Outcome_OUTCOME_FAILED, Reason: "X"}, nil, 1, "are not complete",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := baitest.Start(t)
			endSubmitted(p, tt.end, tt.data)
			wait := "100ms"
			if tt.data == whole { // waits until the platform has all data
				wait = "5m"
			}
			expect(t, runPiped(t, p.Addr(), "run", "good.toml", "--data-timeout", wait), tt.code, tt.says)
			if tt.data == whole {
				expect(t, runPiped(t, p.Addr(), "watch", "01kdyt1q880000000000000001"), tt.code, tt.says)
				expect(t, runPiped(t, p.Addr(), "get", "01kdyt1q880000000000000001"), 0, "")
				expect(t, runPiped(t, p.Addr(), "logs", "-f", "01kdyt1q880000000000000001"), 0, "")
			}
		})
	}
}

func TestADescriptorThatIsNoTOMLIsComparedWithNothing(t *testing.T) {
	p := baitest.Start(t)
	p.Add(&baiv1.Run{Name: "hello", Owner: "ann", DescriptorToml: helloText})
	p.Add(&baiv1.Run{Name: "broken", Owner: "ann", DescriptorToml: "[info\n"})
	broken := filepath.Join(t.TempDir(), "broken.toml")
	if err := os.WriteFile(broken, []byte("[info\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, runPiped(t, p.Addr(), "diff", broken, "hello"), 2, broken+":1:6: ")
	expect(t, runPiped(t, p.Addr(), "diff", "good.toml", "broken"), 2, "descriptor of the run:1:6: ")
}

func TestWhatIsNotThereIsSaidInOneLine(t *testing.T) {
	silent, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() }) // it takes connections and never says a word
	const dead = "127.0.0.1:1"               // a port that the kernel gives to nobody by itself
	checks := make(chan func())
	n := 0
	for _, args := range []string{
		"list", "get x", "cancel x y", "logs x", "logs -f x", "metrics x", "watch x", "version", "submit good.toml bad.toml", "run good.toml",
	} {
		for _, addr := range []string{dead, silent.Addr().String()} {
			n++
			cmd := command(t, addr, strings.Fields(args)...)
			var notes strings.Builder
			cmd.Stderr = &notes
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			go func(begin time.Time) { // they mostly wait: all at once
				_ = cmd.Wait()
				took := time.Since(begin)
				checks <- func() {
					wantUnreachable(t, args, addr, result{code: cmd.ProcessState.ExitCode(), err: notes.String()}, took)
				}
			}(time.Now())
		}
	}
	for range n {
		(<-checks)()
	}
}

func wantUnreachable(t *testing.T, args, addr string, got result, took time.Duration) {
	t.Helper()
	expect(t, got, 3, "the platform at "+addr+" cannot be reached: ")
	if strings.Count(got.err, "\n") != 1 || !strings.Contains(got.err, "is `bai standalone` running?") {
		t.Errorf("%s: not one line that helps:\n%s", args, got)
	}
	if took > time.Minute { // 2 s, and what a busy machine adds
		t.Errorf("%s: took %s", args, took)
	}
}

func TestWhatTheServerSaysBecomesAnExitCode(t *testing.T) {
	fault := &baiv1.Fault{File: "good.toml", Line: 3, Column: 1, Path: "data", Code: "BAI0060", Message: "file:// is not\nallowed", Remedy: "use https"}
	for name, tt := range map[string]struct {
		method string
		sent   error
		args   string
		code   int
		says   string
	}{
		"faults": {
			"SubmitRun", baitest.Status(codes.InvalidArgument, "invalid", fault, fault), "submit good.toml", 2,
			"good.toml:3:1: data: file:// is not allowed (use https)\ngood.toml:3:1: data: file:// is not allowed (use https)\nbaictl: 2 faults\n",
		},
		"a bad request":     {"ListRuns", baitest.Status(codes.InvalidArgument, "bad page token"), "list", 2, "bad page token"},
		"a failing server":  {"ListRuns", baitest.Status(codes.Internal, "disk\nfull"), "list", 3, "list runs: the platform failed (Internal): disk full\n"},
		"a full disk":       {"SubmitRun", baitest.Status(codes.ResourceExhausted, "the platform's disk is full: free some space"), "submit good.toml", 3, "baictl: submit \"good.toml\": the platform's disk is full: free some space\n"},
		"a set":             {"SubmitRun", baitest.Status(codes.Unimplemented, "no sets here"), "run good.toml", 3, "no sets here"},
		"an older platform": {"GetVersion", baitest.Status(codes.Unimplemented, "unknown method"), "version", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := baitest.Start(t)
			p.Fail(tt.method, tt.sent)
			expect(t, runPiped(t, p.Addr(), strings.Fields(tt.args)...), tt.code, tt.says)
		})
	}
}

func TestASubmissionThatMayStillBeRunSaysHowToRepeatIt(t *testing.T) {
	p := baitest.Start(t)
	for range 1000 {
		p.Fail("SubmitRun", baitest.Status(codes.Unavailable, "no broker", &baiv1.RunFailure{RunId: "r1"}))
	}
	expect(t, runPiped(t, p.Addr(), "submit", "good.toml", "--idempotency-key", "k7"), 3,
		"run r1 may still be run: submit again with --idempotency-key k7, or look: baictl get r1")
}

func TestASubmissionWhoseAnswerWasLostNamesItsKey(t *testing.T) {
	p := baitest.Start(t)
	for range 1000 {
		p.Fail("SubmitRun", baitest.Status(codes.Unavailable, "the gateway stops"))
	}
	expect(t, runPiped(t, p.Addr(), "submit", "good.toml", "--idempotency-key", "k7"), 3, "submit again with --idempotency-key k7")
}

func TestASetThatWasMadeAndCannotBeReadIsNamed(t *testing.T) {
	for _, verb := range []string{"submit", "run"} {
		p := baitest.Start(t)
		p.Fail("GetSet", baitest.Status(codes.Internal, "no disk"))
		got := runPiped(t, p.Addr(), verb, "sweep.toml")
		expect(t, got, 3, "was made, but cannot be read")
		expect(t, got, 3, "look: baictl set get ")
	}
}

func TestArgumentsThatAreNotTextAreRefused(t *testing.T) {
	p := baitest.Start(t)
	for _, args := range [][]string{{"get", "\xff"}, {"submit", "good.toml", "--label", "a=\xff"}} {
		expect(t, runPiped(t, p.Addr(), args...), 2, "is not UTF-8")
	}
	expect(t, runPiped(t, p.Addr(), "get", ""), 2, "an argument is empty")
}

func TestOneKeyIsOneRun(t *testing.T) {
	p := baitest.Start(t)
	first := runPiped(t, p.Addr(), "submit", "good.toml", "--idempotency-key", "k")
	again := runPiped(t, p.Addr(), "submit", "good.toml", "--idempotency-key", "k")
	if first.out == "" || first.out != again.out {
		t.Errorf("%s%s", first, again)
	}
	cmd := command(t, p.Addr(), "submit", "-", "--idempotency-key", "k")
	cmd.Stdin = strings.NewReader("another")
	expect(t, finish(t, cmd), 2, "used for another descriptor (it belongs to run 01kdyt1q880000000000000001)")
}

func TestTimeoutBoundsEverything(t *testing.T) {
	p := baitest.Start(t)
	id := p.Add(&baiv1.Run{})
	p.Change(id, &baiv1.Change{Phase: baiv1.Phase_PHASE_RUNNING})
	dead := baitest.Break(t, p.Addr(), 0, 0)
	dead.Down()
	// where the platform has to answer first, 200 ms would not always do
	for args, says := range map[string]string{
		"watch " + id:   "timed out after 5s: run " + id + " goes on (come back: baictl watch " + id + ", end it: baictl cancel " + id + ")\n",
		"logs -f " + id: "timed out after 5s: reading the log of run " + id + " (come back: baictl logs -f " + id + ")\n",
		"run good.toml": "timed out after 5s: run 01kdyt1q88000000000000000",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			expect(t, runPiped(t, p.Addr(), strings.Fields(args+" --timeout 5s")...), 4, says)
			expect(t, runPiped(t, dead.Addr(), strings.Fields(args+" --timeout 200ms")...), 4, "timed out after 0.2s")
		})
	}
	expect(t, runPiped(t, dead.Addr(), "list", "--timeout", "200ms"), 4, "list runs: timed out after 0.2s")
}

func TestOutputThatCannotBeWrittenIsAnError(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = full.Close() }() // nothing was written
	p := newFixture(t, newYear)
	for _, args := range []string{"list", "list -o name", "get hello -o json", "logs hello", "logs -f hello", "metrics hello -o csv", "watch hello", "watch hello -o json", "validate good.toml", "version"} {
		t.Run(args, func(t *testing.T) {
			cmd := command(t, p.Addr(), strings.Fields(args)...)
			var notes strings.Builder
			cmd.Stdout, cmd.Stderr = full, &notes
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			expect(t, result{code: wait(t, cmd), err: notes.String()}, 3, "write the output: write /dev/stdout: no space left on device\n")
		})
	}
}

func TestDescriptorsThatAreNoneAreRefusedAtOnce(t *testing.T) {
	p := baitest.Start(t)
	for name, text := range map[string]io.Reader{
		"endless": endlessReader{}, "empty": strings.NewReader(""), "binary": strings.NewReader("\x7fELF\x00\x01"), "not UTF-8": strings.NewReader("a = \"\xff\""),
	} {
		t.Run(name, func(t *testing.T) {
			cmd := command(t, p.Addr(), "validate", "-")
			cmd.Stdin = text
			expect(t, finish(t, cmd), 2, "<stdin>:1:")
		})
	}
	for _, verb := range []string{"submit", "run"} {
		cmd := command(t, p.Addr(), verb, "-")
		cmd.Stdin = endlessReader{}
		expect(t, finish(t, cmd), 2, "<stdin>:1:")
	}
	expect(t, runPiped(t, p.Addr(), "submit", "."), 2, "is a directory")
	if n := p.Calls("SubmitRun"); n != 0 {
		t.Errorf("%d submissions of what is no descriptor", n)
	}
}

// endlessReader is a descriptor of any size.
type endlessReader struct{}

func (endlessReader) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}

func TestCtrlCDetaches(t *testing.T) {
	p := baitest.Start(t)
	id := p.Add(&baiv1.Run{})
	p.Change(id, &baiv1.Change{Phase: baiv1.Phase_PHASE_RUNNING})
	p.Log(id, &baiv1.LogLine{Text: "running"})
	p.OnSubmit(func(id string) { p.Change(id, &baiv1.Change{Phase: baiv1.Phase_PHASE_RUNNING}) })
	back := "interrupted: run %[1]s goes on (come back: baictl watch %[1]s, end it: baictl cancel %[1]s)\r\n"
	for args, says := range map[string]string{
		"watch " + id:              fmt.Sprintf(back, id),
		"watch " + id + " -o json": fmt.Sprintf(back, id),
		"run good.toml":            fmt.Sprintf(back, "01kdyt1q880000000000000002"),
		"logs -f " + id:            "interrupted: reading the log of run " + id + " (come back: baictl logs -f " + id + ")\r\n",
	} {
		s := open(t, command(t, p.Addr(), strings.Fields(args)...), 80)
		s.await("running")
		s.press("\x03")
		if code := s.end(); code != 4 || !strings.HasSuffix(s.received(), says) {
			t.Errorf("%s: exit %d, want 4 and %q at the end of:\n%q", args, code, says, s.received())
		}
	}
	if p.Calls("CancelRun") != 0 {
		t.Error("a run was canceled")
	}
}

func TestASecondCtrlCEndsBaictlAtOnce(t *testing.T) {
	p := baitest.Start(t)
	id := p.Add(&baiv1.Run{})
	for range 20000 {
		p.Log(id, &baiv1.LogLine{Text: strings.Repeat("x", 100)})
	}
	cmd := command(t, p.Addr(), "logs", "-f", id)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 100)); err != nil { // and no more: the pipe fills up
		t.Fatal(err)
	}
	waitUntilFull(t, out)
	until(t, "its end", func() bool {
		_ = cmd.Process.Signal(os.Interrupt) // fails once it has ended
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WNOHANG, nil)
		if err != nil {
			t.Fatal(err)
		}
		if pid != 0 && (!status.Signaled() || status.Signal() != syscall.SIGINT) {
			t.Errorf("ended with %v, want by the signal", status)
		}
		return pid != 0
	})
}

// waitUntilFull waits until nothing more goes into a pipe.
func waitUntilFull(t *testing.T, out io.Reader) {
	t.Helper()
	pipe, ok := out.(*os.File)
	if !ok {
		t.Fatalf("the pipe is a %T", out)
	}
	last, still := 0, 0
	until(t, "a full pipe", func() bool {
		now, err := unix.IoctlGetInt(int(pipe.Fd()), unix.TIOCINQ)
		if err != nil {
			t.Fatal(err)
		}
		still++
		if now != last {
			last, still = now, 0
		}
		return now > 60<<10 && still > 50
	})
}

func TestDataOfWhichSomeWereDroppedAreNotCalledComplete(t *testing.T) {
	p := baitest.Start(t)
	id := p.Add(&baiv1.Run{Phase: baiv1.Phase_PHASE_FINISHED, Outcome: baiv1.Outcome_OUTCOME_SUCCEEDED})
	p.SetCompleteness(id, &baiv1.Completeness{Complete: true, Samples: 3, Lines: 4, Dropped: 97})
	got := runPiped(t, p.Addr(), "get", id)
	if want := "3 samples, 4 lines, 97 lines dropped\n"; got.code != 0 || !strings.Contains(got.out, want) || strings.Contains(got.out, "complete") {
		t.Errorf("want %q, and nothing called complete: %s", want, got)
	}
}

func TestALogLineCannotPlayWithTheTerminal(t *testing.T) {
	p := baitest.Start(t)
	id := p.Add(&baiv1.Run{Phase: baiv1.Phase_PHASE_FINISHED, Outcome: baiv1.Outcome_OUTCOME_SUCCEEDED})
	const line = "\x1b]0;mine\x07a\tb\x1b[2J 50%\r100% \u202eevil \u009b31m café"
	p.Log(id, &baiv1.LogLine{Text: line})
	p.SetCompleteness(id, &baiv1.Completeness{Complete: true, Lines: 1})
	const safe = `\x1b]0;mine\aa` + "\t" + `b\x1b[2J 50%\r100% \u202eevil \u009b31m café` + "\n"
	for args, want := range map[string]string{"": safe, "-f": safe, "--raw": line + "\n", "-f --raw": line + "\n"} {
		got := runPiped(t, p.Addr(), append([]string{"logs", id}, strings.Fields(args)...)...)
		if got.code != 0 || got.out != want {
			t.Errorf("logs %s: %d, %q, want %q", args, got.code, got.out, want)
		}
	}
	if wide := runPiped(t, p.Addr(), "logs", id, "-o", "wide"); !strings.HasSuffix(wide.out, safe) {
		t.Errorf("-o wide: %q", wide.out)
	}
}
