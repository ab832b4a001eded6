package mpirun_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
	const long = "[prterun-a-host-with-a-name-that-is-long-4242@1,0]"
	for name, tt := range map[string]struct{ lines, want []string }{
		"Open MPI 4 adds no blank":          {[]string{"[1,0]<stdout>:x", "[1,0]<stdout>:  8  1.2", "[1,1]<stderr>: y"}, []string{"x", "  8  1.2", " y"}},
		"Open MPI 5 adds one":               {[]string{"[1,0]<stdout>: x", "[1,0]<stdout>:   8  1.2", "[1,1]<stderr>: "}, []string{"x", "  8  1.2", ""}},
		"and the name of the job":           {[]string{long + "<stdout>: x", long + "[a:17]<stderr>:  y"}, []string{"x", " y"}},
		"an empty line tells of no blank":   {[]string{"[1,0]<stdout>:", "[1,0]<stdout>:\n", "[1,0]<stdout>: x"}, []string{"", "\n", "x"}},
		"the first tag counts":              {[]string{"[1,0]<stderr>:[1]<stdout>:x"}, []string{"[1]<stdout>:x"}},
		"a line without one is as it was":   {[]string{"[a] text", "", " x", "[1,0]<stdlog>: x", "[1,0]<std"}, []string{"[a] text", "", " x", "[1,0]<stdlog>: x", "[1,0]<std"}},
		"a line of the launcher in between": {[]string{"a word", "[1,0]<stdout>: x"}, []string{"a word", "x"}},
	} {
		var tags mpirun.Tags
		var got []string
		for _, line := range tt.lines {
			got = append(got, string(tags.Remove([]byte(line))))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
