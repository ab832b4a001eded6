package command_test

import (
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/parsers/command"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

// fakeProcess ends when its function returns, or when it is killed.
type fakeProcess struct {
	code   chan int
	once   sync.Once
	killed chan struct{}
}

func (p *fakeProcess) Wait() (int, string) {
	select {
	case c := <-p.code:
		return c, ""
	case <-p.killed:
		return 137, "SIGKILL"
	}
}

func (p *fakeProcess) Kill() { p.once.Do(func() { close(p.killed) }) }

// starting returns how to start a fake parser.
func starting(body func(stdout, stderr *os.File, killed <-chan struct{}) int) func(stdout, stderr *os.File) (command.Process, error) {
	return func(stdout, stderr *os.File) (command.Process, error) {
		out, err1 := dup(stdout)
		errs, err2 := dup(stderr)
		p := &fakeProcess{code: make(chan int, 1), killed: make(chan struct{})}
		go func() {
			code := body(out, errs, p.killed)
			_, _ = out.Close(), errs.Close()
			p.code <- code
		}()
		return p, errors.Join(err1, err2)
	}
}

func TestAParserThatBreaksARuleIsKilled(t *testing.T) {
	t.Parallel()
	stopped := make(chan struct{})
	close(stopped)
	var left *os.File
	t.Cleanup(func() { _ = left.Close() })
	hang := func(_, _ *os.File, killed <-chan struct{}) int { <-killed; return 0 }
	for name, tt := range map[string]struct {
		body     func(stdout, stderr *os.File, killed <-chan struct{}) int
		deadline time.Duration
		stop     chan struct{}
		state    report.State
		reason   string
	}{
		"prints metrics": {func(out, _ *os.File, _ <-chan struct{}) int {
			_, _ = out.WriteString(`{"name": "a", "value": 1}`)
			return 0
		}, time.Minute, nil, report.OK, ""},
		"dies": {func(_, errs *os.File, _ <-chan struct{}) int {
			_, _ = errs.WriteString(strings.Repeat("x\n", 9000) + "no such key\n")
			return 3
		}, time.Minute, nil, report.Failed, `ended with exit code 3; its standard error ends with "x", "x", "no such key"`},
		"hangs":      {hang, time.Nanosecond, nil, report.Failed, "has not ended after 1ns (deadline), and was killed"},
		"is stopped": {hang, time.Minute, stopped, report.Failed, "was killed, because the run has to end"},
		"floods": {func(out, _ *os.File, _ <-chan struct{}) int {
			for {
				if _, err := out.WriteString(strings.Repeat("\n", 4096)); err != nil {
					return 1
				}
			}
		}, time.Minute, nil, report.Failed, `line 4194305 of its output is refused: with it there are more than 4 MiB: ""`},
		"leaves a process": {func(out, _ *os.File, _ <-chan struct{}) int {
			left, _ = dup(out)
			return 0
		}, time.Minute, nil, report.Failed, "left a process that keeps its output open"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if r := command.Run(starting(tt.body), tt.deadline, tt.stop); r.State != tt.state || r.Reason != tt.reason {
				t.Errorf("%s %s", r.State, r.Reason)
			}
		})
	}
}

// stuckProcess does not end, as one that waits for a device.
type stuckProcess struct{}

func (stuckProcess) Wait() (int, string) { select {} }
func (stuckProcess) Kill()               {}

func TestAParserThatDoesNotEndThoughItWasKilledIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	var out *os.File
	t.Cleanup(func() { _ = out.Close() })
	returned := make(chan report.Report, 1)
	go func() {
		returned <- command.Run(func(stdout, _ *os.File) (command.Process, error) {
			var err error
			out, err = dup(stdout)
			return stuckProcess{}, err
		}, time.Nanosecond, nil)
	}()
	select {
	case r := <-returned:
		if r.State != report.Failed || r.Reason != "has not ended after 1ns (deadline), and was killed" {
			t.Errorf("%s %s", r.State, r.Reason)
		}
	case <-time.After(time.Minute):
		t.Fatal("Run waits for a parser that does not end")
	}
}

func TestAParserThatCannotBeStartedHasFailed(t *testing.T) {
	t.Parallel()
	r := command.Run(func(_, _ *os.File) (command.Process, error) { return nil, os.ErrPermission }, time.Minute, nil)
	if r.State != report.Failed || r.Reason != "cannot be started: permission denied" {
		t.Errorf("%+v", r)
	}
}
