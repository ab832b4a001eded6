package mpirun_test

import (
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/parsers/internal/mpirun"
)

func TestErrorsOfLaunchersAreKept(t *testing.T) {
	t.Parallel()
	const rule = "--------------------------------------------------------------------------\n"
	const fatal = "[a:1] *** MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,"
	for text, want := range map[string]string{
		rule + "mpirun was unable to launch it as it could not access\nor execute it:\n\nNode: a\n" + rule + "2 failed\n": "" +
			"mpirun was unable to launch it as it could not access or execute it:  Node: a",
		"srun: error: a: task 0: Exited with exit code 1\nmore\n":    "srun: error: a: task 0: Exited with exit code 1",
		"=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n": "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
		fatal + "\n":                        fatal,
		"bash: mpirun: command not found\n": "bash: mpirun: command not found",
		"# Benchmarking PingPong\n1 2 3\nWarning: Permanently added 'a' to the list of known hosts.\n": "",
	} {
		var e mpirun.Errors
		for line := range strings.SplitSeq(text, "\n") {
			e.See([]byte(line))
		}
		if e.Last() != want {
			t.Errorf("%q:\n%q, want\n%q", text, e.Last(), want)
		}
	}
}

func TestTheNumberOfAProcessIsRemoved(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"[1,0]<stdout>:  8  1.2": "  8  1.2", "[1,1]<stderr>:x": "x", "[prterun-a-1@1,0]<stdout>: x": " x", "[a] text": "[a] text", "": "",
	} {
		if got := string(mpirun.Untag([]byte(line))); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
