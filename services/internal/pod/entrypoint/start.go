//go:build linux

package entrypoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/pod/proc"
)

// Exit codes of a shell for a command that could not be started.
const (
	notFound      = 127
	notExecutable = 126
)

// start starts the command. On failure the error is the kernel's and the code is a
// shell's exit code.
func (w *runner) start(s *streams) (pid, code int, err error) {
	args, err := w.args()
	if err != nil {
		return 0, notExecutable, err
	}
	path, args, err := findProgram(args)
	if err != nil {
		return 0, exitCode(err), kernelError(err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, notExecutable, err
	}
	defer null.Close() //nolint:errcheck // only read
	env := w.env()
	pid, err = w.table.Start(proc.Command{
		Path: path, Args: args, Env: env,
		Files: []uintptr{null.Fd(), s.stdout.to.Fd(), s.stderr.to.Fd()},
	})
	if errors.Is(err, syscall.ENOENT) {
		return 0, notExecutable, fmt.Errorf("its interpreter: %w", err) // the file itself was found
	}
	if err != nil {
		return 0, exitCode(err), proc.TooLong(err, args, env)
	}
	return pid, 0, nil
}

// findProgram returns the file of a program, and its arguments.
func findProgram(args []string) (path string, with []string, err error) {
	path, err = exec.LookPath(args[0])
	if errors.Is(err, fs.ErrPermission) && strings.Contains(args[0], "/") {
		return viaInterpreter(args)
	}
	if errors.Is(err, exec.ErrDot) {
		err = nil
	}
	return path, args, err
}

// viaInterpreter returns how to start a script that lacks the right to be executed, as
// one whose archive kept no modes does: by the interpreter that its first line names.
func viaInterpreter(args []string) (path string, with []string, err error) {
	f, err := os.Open(args[0])
	if err != nil {
		return "", nil, syscall.EACCES
	}
	defer f.Close() //nolint:errcheck // only read
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", nil, syscall.EACCES
	}
	head := make([]byte, maxInterpreter)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return "", nil, err
	}
	with = interpreter(string(head[:n]))
	if len(with) == 0 {
		return "", nil, errNotExecutable
	}
	return with[0], append(append(with, args[0]), args[1:]...), nil
}

// errNotExecutable is the remedy for a file that is no script with an interpreter.
var errNotExecutable = errors.New("it is not executable: chmod +x it, or put its interpreter before it")

// env returns the environment of the command: this one, with the collector's address for
// OpenTelemetry's libraries unless the user has set another.
func (w *runner) env() []string {
	all := os.Environ()
	endpoint, err := os.ReadFile(pod.PathIn(w.settings.Dir, pod.OTLPURL))
	if err != nil {
		return all // the collector does not listen
	}
	for i, v := range all {
		if v == pod.EnvOTLPEndpoint+"="+pod.DefaultOTLP {
			all[i] = pod.EnvOTLPEndpoint + "=" + strings.TrimSpace(string(endpoint))
		}
	}
	return all
}

// args returns the command, after writing the script that is part of it.
func (w *runner) args() ([]string, error) {
	s := w.settings
	if !s.Script {
		return s.Args, nil
	}
	path := pod.PathIn(s.Dir, scriptFile)
	err := w.out.retryWhileFull(func() error { return os.WriteFile(path, []byte(s.Args[0]), 0o755) }) //nolint:gosec // it is executed
	if err != nil {
		return nil, err
	}
	shell := s.Shell
	if len(shell) == 0 && !strings.HasPrefix(s.Args[0], "#!") {
		shell = []string{"/bin/sh"}
	}
	return append(append(append([]string(nil), shell...), path), s.Args[1:]...), nil
}

// scriptFile is where the text of a script is written, below the volume.
const scriptFile = "run/script"

func commandName(s Settings) string {
	if s.Script {
		return "the script"
	}
	return fmt.Sprintf("%q", s.Args[0])
}

func exitCode(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, syscall.ENOENT) {
		return notFound
	}
	return notExecutable
}

// kernelError returns the kernel's error for a command, or the kernel's error for a
// command that was not found.
func kernelError(err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		return syscall.ENOENT
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	return err
}
