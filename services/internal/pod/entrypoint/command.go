//go:build linux

package entrypoint

import (
	"cmp"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/pod/parse"
	"github.com/benchmark-ai/bai/services/internal/pod/proc"
	"github.com/benchmark-ai/bai/services/parsers/command"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

// commandRunner returns how to run parsers of kind command after a benchmark with an exit code. A signal to end, also one that has ended
// the benchmark, leaves them the rest of its grace.
func (w *runner) commandRunner(code int) parse.RunCommand {
	return func(p pod.Parser, stdin *os.File) report.Report {
		ctx, cancel := w.out.contextAfterStop(func() time.Duration { return time.Until(w.out.stopTime()) })
		defer cancel()
		return command.Run(func(stdout, stderr *os.File) (command.Process, error) {
			return w.startParser(p, code, stdin, stdout, stderr)
		}, cmp.Or(p.Deadline, command.DefaultDeadline), ctx.Done())
	}
}

// parserProcess is the process of a parser.
type parserProcess struct {
	pid    int
	exited <-chan proc.Exit
}

// Wait implements command.Process.
func (p parserProcess) Wait() (code int, signal string) {
	e := <-p.exited
	if e.Signal != 0 {
		signal = proc.SignalName(e.Signal)
	}
	return e.Code, signal
}

// Kill implements command.Process.
func (p parserProcess) Kill() { _ = syscall.Kill(-p.pid, syscall.SIGKILL) }

// startParser starts a parser of kind command, in the environment of the benchmark.
func (w *runner) startParser(p pod.Parser, code int, stdin, stdout, stderr *os.File) (command.Process, error) { //nolint:ireturn // as command.Run wants it
	env := append(w.env(), pod.EnvExitCode+"="+strconv.Itoa(code))
	args := expandAll(p.Command, os.LookupEnv)
	path, args, err := findProgram(args)
	if err != nil {
		return nil, kernelError(err)
	}
	pid, exited, err := w.table.StartAlone(proc.Command{
		Path: path, Args: args, Env: env, Files: []uintptr{stdin.Fd(), stdout.Fd(), stderr.Fd()},
	})
	if err != nil {
		return nil, proc.TooLong(err, args, env)
	}
	memory := uint64(cmp.Or(p.Memory, command.DefaultMemory)) //nolint:gosec // the descriptor has no negative one
	_ = unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: memory, Max: memory}, nil)
	return parserProcess{pid, exited}, nil
}
