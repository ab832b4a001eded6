package openfoam_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/parsers/openfoam"
	"github.com/benchmark-ai/bai/services/parsers/report"
	"github.com/benchmark-ai/bai/services/parsers/report/reporttest"
)

func parse(tb testing.TB, text string) report.Report {
	tb.Helper()
	return reporttest.Parse(tb, openfoam.Kind(), text)
}

func capture(tb testing.TB, name string) string {
	tb.Helper()
	return reporttest.Capture(tb, name+".txt")
}

// say returns the state of a report, and its metrics but those of fields. A star marks headlines.
func say(r report.Report) string {
	said := reporttest.State(r)
	for _, m := range r.Metrics {
		if len(m.Labels) == 0 {
			said += fmt.Sprintf("; %s %.12g", m.Name, m.Value)
		}
		if m.Headline {
			said += "*"
		}
	}
	return said
}

// without leaves out the output of time.
func without(text string) string {
	lines := strings.SplitAfter(text, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool {
		return slices.ContainsFunc([]string{"real ", "user ", "sys ", "\t"}, func(begin string) bool { return strings.HasPrefix(line, begin) })
	}), "")
}

func TestTimesAreThoseThatTimeAndTheSolverPrint(t *testing.T) {
	t.Parallel()
	serial := capture(t, "icofoam-time-p")
	for name, test := range map[string]struct{ text, want string }{
		"time -p": {
			serial, "ok; wall_clock_time 0.14*; user_time 0.03; system_time 0.01; execution_time 0.02; clock_time 0; steps 10",
		},
		"time -v, parallel": {
			capture(t, "icofoam-parallel-time-v"),
			"ok; wall_clock_time 2.58*; user_time 0.32; system_time 0.9; execution_time 0.28; clock_time 2; steps 10",
		},
		"above one hour": {
			strings.Replace(capture(t, "icofoam-parallel-time-v"), "0:02.58", "26:03:04", 1),
			"ok; wall_clock_time 93784*; user_time 0.32; system_time 0.9; execution_time 0.28; clock_time 2; steps 10",
		},
		"without time": {without(capture(t, "icofoam-parallel-time-v")), "ok; execution_time 0.28*; clock_time 2*; steps 10"},
		"the time of bash": {
			without(serial) + "\nreal\t61m1.5s\nuser\t0m0.030s\nsys\t0m0.010s\n",
			"ok; wall_clock_time 3661.5*; user_time 0.03; system_time 0.01; execution_time 0.02; clock_time 0; steps 10",
		},
	} {
		if got := say(parse(t, test.text)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestFieldsHaveTheirLastResidualsAndAllIterations(t *testing.T) {
	t.Parallel()
	r := parse(t, capture(t, "icofoam-time-p"))
	var got []string
	for _, m := range r.Metrics {
		if field := m.Labels["field"]; field != "" {
			got = append(got, fmt.Sprintf("%s %s %.9g", field, m.Name, m.Value))
		}
	}
	want := []string{
		"Ux initial_residual 0.00311534", "Ux final_residual 7.91266e-06", "Ux solver_iterations 143",
		"Uy initial_residual 0.0067391", "Uy final_residual 5.92713e-06", "Uy solver_iterations 135",
		"p initial_residual 0.00572417", "p final_residual 4.29578e-07", "p solver_iterations 452",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTheVersionIsThatOfTheBannerOrOfTheBuild(t *testing.T) {
	t.Parallel()
	text := capture(t, "icofoam-time-p")
	const build, banner = "Build  : OPENFOAM=1912 patch=200626", "Version:           "
	for name, test := range map[string]struct{ text, want string }{
		"Debian":               {text, "1912"},
		"openfoam.com":         {strings.Replace(text, build, "Build  : _f3950763fe-20191219 OPENFOAM=1912", 1), "1912"},
		"openfoam.com, banner": {strings.Replace(text, banner, "Version:  v2312    ", 1), "v2312"},
		"openfoam.org":         {strings.Replace(text, build, "Build  : 10-c4cf895ad8fa", 1), "10-c4cf895ad8fa"},
		"openfoam.org, banner": {
			strings.NewReplacer(build, "Build  : 10-c4cf895ad8fa", banner, "Version:  10       ").Replace(text), "10",
		},
		"the end of a log alone": {text[strings.Index(text, "Time = 0.05\n"):], ""},
	} {
		if got := parse(t, test.text).Version; got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestTimesOfAllVersionsAreRead(t *testing.T) {
	t.Parallel()
	text := without(capture(t, "icofoam-time-p"))
	const last = "ExecutionTime = 0.02 s  ClockTime = 0 s\n\nEnd"
	if !strings.Contains(text, last) {
		t.Fatal("the capture has changed")
	}
	const bad = "partial cannot read ExecutionTime = "
	for line, want := range map[string]string{
		"62.25 s  ClockTime = 63 s":          "ok; execution_time 62.25*; clock_time 63*; steps 10",
		"1.2e+06 s  ClockTime = 1.3e+06 s":   "ok; execution_time 1200000*; clock_time 1300000*; steps 10",
		"01:02.25  ClockTime = 01:03":        "ok; execution_time 62.25*; clock_time 63*; steps 10",
		"2-01:00:02  ClockTime = 2-01:00:03": "ok; execution_time 176402*; clock_time 176403*; steps 10",
		"nan s  ClockTime = 0 s":             bad + "nan s ClockTime = 0 s; steps 10",
		"1.5 h  ClockTime = 2 h":             bad + "1.5 h ClockTime = 2 h; steps 10",
		"1:2:3:4  ClockTime = 01:03":         bad + "1:2:3:4 ClockTime = 01:03; steps 10",
		"-1 s  ClockTime = 0 s":              bad + "-1 s ClockTime = 0 s; steps 10",
	} {
		if got := say(parse(t, strings.Replace(text, last, "ExecutionTime = "+line+"\n\nEnd", 1))); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

func TestAFailureIsToldInTheWordsOfTheTool(t *testing.T) {
	t.Parallel()
	whole := capture(t, "icofoam-time-p")
	const (
		times  = "; wall_clock_time 0.14*; user_time 0.03; system_time 0.01; execution_time 0.02; clock_time 0; steps 10"
		noMesh = `failed FOAM FATAL ERROR: Cannot find file "points" in directory "polyMesh" in times "0" down to constant`
	)
	for name, test := range map[string]struct{ text, want string }{
		"fatal error":    {capture(t, "no-mesh"), noMesh},
		"fatal IO error": {capture(t, "unknown-solver-time-v"), "failed FOAM FATAL IO ERROR: Unknown symmetric matrix solver type nope"},
		"of a process":   {capture(t, "unknown-solver-parallel"), "failed FOAM FATAL IO ERROR: Unknown symmetric matrix solver type nope"},
		"signal": {
			capture(t, "floating-point-time-v"), "failed Foam::sigFpe: floating point exception; wall_clock_time 0.26*; user_time 0.09; " +
				"system_time 0.09; execution_time 0.04; clock_time 0; steps 13",
		},
		"signal to a process": {
			capture(t, "floating-point-parallel"), "failed Foam::sigFpe: floating point exception; wall_clock_time 3.65*; user_time 0.31; " +
				"system_time 0.81; execution_time 0.9; clock_time 2; steps 13",
		},
		"mpirun alone":    {capture(t, "no-slots"), "failed There are not enough slots available in the system to satisfy the 64"},
		"message missing": {"Build  : 10\n--> FOAM FATAL ERROR: \n", "failed FOAM FATAL ERROR"},
		"message with the letter of another line": {
			"Build  : 10\n[0] --> FOAM FATAL IO ERROR: (openfoam-2206)\n[0] Entry 'nu' not found in dictionary\n",
			"failed FOAM FATAL IO ERROR: Entry 'nu' not found in dictionary",
		},
		"abort after End": {
			strings.Replace(whole, "\nEnd\n", "\nEnd\n\nMPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\n", 1),
			"failed MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD" + times,
		},
		"time says so": {"time: cannot run icoFoam: No such file or directory\n", "failed time: cannot run icoFoam: No such file or directory"},
		"after the solver": {
			whole + capture(t, "no-mesh"), noMesh + times,
		},
	} {
		if got := say(parse(t, test.text)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestLinesOfMpirunAboutFailedProcessesAreFailures(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"mpirun noticed that process rank 0 with PID 7 on node vm exited on signal 9 (Killed).",
		"mpirun detected that one or more processes exited with non-zero status, thus causing",
		"mpirun was unable to launch the specified application as it could not access",
		"prterun noticed that process rank 1 with PID 7 on node vm exited on",
		"Primary job  terminated normally, but 1 process returned",
		"ORTE was unable to reliably start one or more daemons.",
		"=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
		"srun: error: node1: task 0: Exited with exit code 1",
	} {
		r := parse(t, strings.Replace(capture(t, "icofoam-time-p"), "\nEnd\n", "\n"+line+"\n", 1))
		if r.State != report.Failed || r.Reason != report.Clip(line) {
			t.Errorf("%s: %s %s", line, r.State, r.Reason)
		}
	}
}

func TestTheLastSolverThatHasEndedCounts(t *testing.T) {
	t.Parallel()
	mesh, parts := capture(t, "blockmesh"), capture(t, "decomposepar")
	serial, parallel := capture(t, "icofoam-time-p"), capture(t, "icofoam-parallel-time-v")
	const (
		first  = "; wall_clock_time 0.14*; user_time 0.03; system_time 0.01; execution_time 0.02; clock_time 0; steps 10"
		second = "; wall_clock_time 2.58*; user_time 0.32; system_time 0.9; execution_time 0.28; clock_time 2; steps 10"
		end    = "partial the solver did not print End"
	)
	cut := parallel[:strings.Index(parallel, "Time = 0.03\n")]
	for name, test := range map[string]struct{ text, want string }{
		"programs around it":    {mesh + "real 9.00\nuser 9.00\nsys 9.00\n" + parts + parallel + mesh, "ok" + second},
		"two solvers":           {serial + parallel, "ok" + second},
		"the second is cut off": {serial + cut, end + "; the values are those of the run before" + first},
		"the first is cut off":  {cut + serial, "ok" + first},
		"the first failed":      {capture(t, "no-mesh") + serial, "ok" + first},
		"time of another alone": {
			without(serial) + mesh + "real 9.00\nuser 9.00\nsys 9.00\n", "ok; execution_time 0.02*; clock_time 0*; steps 10",
		},
		"no solver":           {mesh, "empty no solver has ended a step: no line ExecutionTime"},
		"nothing of OpenFOAM": {"hello\nEnd\n", "empty no result in the text"},
		"time is cut off": {
			strings.TrimSuffix(serial, "sys 0.01\n"),
			"partial the output of time is cut off; wall_clock_time 0.14*; user_time 0.03; execution_time 0.02; clock_time 0; steps 10",
		},
		"killed without a word": {cut, end + "; execution_time 0.25*; clock_time 2*; steps 5"},
		"a line of a step alone": {
			"DICPCG:  Solving for p, Initial residual = 1, Final residual = 0.1, No Iterations 21\n",
			"partial no solver has ended a step: no line ExecutionTime",
		},
	} {
		if got := say(parse(t, test.text)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// TestTheNumberOfAProcessBeforeEachLineIsLeftOut has a log as mpirun --tag-output writes it; time, around mpirun, has no tag.
func TestTheNumberOfAProcessBeforeEachLineIsLeftOut(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"icofoam-parallel-time-v", "floating-point-parallel", "icofoam-time-p"} {
		text := capture(t, file)
		want := parse(t, text)
		for _, tag := range []string{"[1,0]<stdout>:", "[1,0]<stdout>: ", "[prterun-a-host-with-a-name-that-is-long-4242@1,0]<stderr>: "} {
			var tagged strings.Builder
			for line := range strings.Lines(text) {
				if line[0] != '\t' && !strings.HasPrefix(line, "mpirun ") {
					line = tag + line
				}
				tagged.WriteString(line)
			}
			if diff := cmp.Diff(want, parse(t, tagged.String())); diff != "" || !openfoam.Kind().Looks([]byte(tagged.String())) {
				t.Errorf("%s with %s (-want +got):\n%s", file, tag, diff)
			}
		}
	}
}

func TestParserOfOpenFOAMPassesTheSuite(t *testing.T) {
	reporttest.Suite{
		Kind:   openfoam.Kind(),
		Own:    []string{"icofoam-time-p.txt", "icofoam-parallel-time-v.txt", "no-mesh.txt", "blockmesh.txt"},
		Others: []string{"{}", "[]", "real 1.00\nuser 0.00\nsys 0.00\n", "Build  : 7\n", "\nExecutionTime = 3\n"},
		Cuts: []reporttest.Cut{
			{File: "icofoam-time-p.txt", End: "\nEnd", Also: []string{"execution_time", "clock_time"}},
			{File: "icofoam-parallel-time-v.txt", End: "\nEnd", Also: []string{"execution_time", "clock_time"}},
		},
	}.Run(t)
}

func FuzzParse(f *testing.F) {
	reporttest.Fuzz(f, openfoam.Kind())
}

func BenchmarkParse(b *testing.B) {
	whole := capture(b, "icofoam-time-p")
	begin, end := strings.Index(whole, "Time = 0.005\n"), strings.Index(whole, "End\n")
	text := whole[:begin] + strings.Repeat(whole[begin:end], 1000) + whole[end:]
	reporttest.Benchmark(b, openfoam.Kind(), text)
}
