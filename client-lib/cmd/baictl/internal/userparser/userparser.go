// Package userparser runs a parser of kind command on a file, by the rules of a run.
package userparser

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/parsers/command"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

// A CommandError says that a text is no command.
type CommandError struct{ Problem string }

// Error says why.
func (e *CommandError) Error() string { return e.Problem }

// Run runs a command, which is written as in a descriptor, with in as its standard input, until the deadline, or until stop is closed. The
// error is a *CommandError.
func Run(text string, in io.Reader, deadline time.Duration, stop <-chan struct{}) (report.Report, error) {
	argv, script, err := descriptors.Parser{Command: text}.Program()
	switch {
	case err != nil:
		return report.Report{}, &CommandError{err.Error()}
	case script != "":
		return report.Report{}, &CommandError{"write the script into a file, and name that"}
	case len(argv) == 0:
		return report.Report{}, &CommandError{"name a program"}
	case deadline <= 0:
		return report.Report{}, &CommandError{fmt.Sprintf("the deadline is %s: write a time as 1m", deadline)}
	}
	return command.Run(func(stdout, stderr *os.File) (command.Process, error) {
		return start(argv, in, stdout, stderr)
	}, deadline, stop), nil
}

// process is a parser that runs.
type process struct{ cmd *exec.Cmd }

// start starts a parser.
func start(argv []string, in io.Reader, stdout, stderr *os.File) (command.Process, error) { //nolint:ireturn // as command.Run wants it
	cmd := exec.Command(argv[0], argv[1:]...) //nolint:gosec,noctx // the user names the program; command.Run ends it
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, stdout, stderr
	cmd.Env = append(os.Environ(), "BAI_EXIT_CODE=0")
	cmd.WaitDelay = time.Second
	separate(cmd)
	if err := cmd.Start(); err != nil {
		return nil, shortened(err)
	}
	limitMemory(cmd.Process.Pid, command.DefaultMemory)
	return process{cmd}, nil
}

// shortened returns the end of an error of package exec, which begins with the path.
func shortened(err error) error {
	text := err.Error()
	if i := strings.LastIndex(text, ": "); i >= 0 {
		text = text[i+2:]
	}
	return fmt.Errorf("%s", text) //nolint:err113 // a text for people
}

// Wait implements command.Process.
func (p process) Wait() (code int, signal string) {
	_ = p.cmd.Wait()
	return p.cmd.ProcessState.ExitCode(), signalOf(p.cmd.ProcessState)
}

// Kill implements command.Process.
func (p process) Kill() { killGroup(p.cmd.Process) }
