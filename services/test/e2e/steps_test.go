package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// step returns the table of a step whose command is a script.
func step(name, when, script, keys string) string {
	return fmt.Sprintf("[[steps]]\nname = %q\nwhen = %q\ncommand = '''\n#!/bin/sh -eu\n%s\n'''\n%s\n", name, when, script, keys)
}

// withSteps returns a descriptor of a script with a metric, and steps.
func withSteps(script string, tables ...string) string {
	text := command("#!/bin/sh -eu\n" + script + "\n")
	return text + "[[output.metrics]]\nname = \"answer\"\nunits = \"count\"\npattern = 'answer=(\\d+)'\n" + strings.Join(tables, "\n")
}

// The steps are not in the order in which they run. A metric's pattern is not searched in what
// they write.
func TestStepsRunBeforeTheBenchmarkAndAfterItAndPassOnTheirOutput(t *testing.T) {
	t.Parallel()
	p := start(t)
	run := p.submit(withSteps(
		`read -r n < /bai-steps/second/n; echo "answer=$n"`,
		step("report", "after", `echo "report $(cat /bai-steps/first/n /bai-steps/second/n | tr '\n' ' ')answer=1"; ls $BAI_STEP_OUTPUT`, "needs = [\"first\"]"),
		step("second", "before", `echo "second $WORD"; echo $(($(cat /bai-steps/first/n) + 1)) > $BAI_STEP_OUTPUT/n`, "needs = [\"first\"]\nvars = { WORD = \"w\" }"),
		step("first", "before", `echo "first answer=2"; echo 41 > $BAI_STEP_OUTPUT/n`, ""),
	))
	r := p.awaitComplete(run)
	lines := p.lines(run)
	if r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
		t.Fatalf("ended as %v\n%s", r, strings.Join(lines, "\n"))
	}
	for _, line := range []string{"out first answer=2", "out second w", "out answer=42", "out report 41 42 answer=1"} {
		if !slices.Contains(lines, line) {
			t.Errorf("no line %q:\n%s", line, strings.Join(lines, "\n"))
		}
	}
	if diff := cmp.Diff(map[string][]float64{"answer": {42}}, p.metricValues(run)); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
	wantNoPod(t, p, run)
}

func TestAStepThatFailsEndsTheRunAndIsNamed(t *testing.T) {
	t.Parallel()
	p := start(t)
	for name, tt := range map[string]struct {
		script          string
		steps           []string
		reason, message string
		without         string // a line that nothing may have written
	}{
		"one before the benchmark": {
			"echo ran",
			[]string{step("bad", "before", "echo sorry; exit 3", ""), step("next", "before", "echo ran", "")},
			"StepFailed", "step bad ended with exit code 3: sorry", "out ran",
		},
		"one after it": {
			"true",
			[]string{step("check", "after", "exit 4", ""), step("last", "after", "echo ran", "")},
			"StepFailed", "step check ended with exit code 4", "out ran",
		},
		"one before it that takes too long": {
			"echo ran",
			[]string{step("slow", "before", "sleep 600", "deadline = \"1s\"")},
			"StepFailed", "step slow timed out after 1s (deadline)", "out ran",
		},
		"one after it that takes too long and does not end at a signal": {
			"true",
			[]string{step("slow", "after", "trap '' TERM; while :; do sleep 1; done", "deadline = \"1s\"")},
			"StepFailed", "step slow timed out after 1s (deadline)", "",
		},
		"none, if the benchmark fails": {
			"exit 5",
			[]string{step("check", "after", "echo ran", ""), step("last", "after", "echo ran", "")},
			"NonZeroExit", "exit code 5", "out ran",
		},
		"none, if the entrypoint of the benchmark is killed": {
			"kill -9 $PPID; sleep 600",
			[]string{step("check", "after", "echo ran", "")},
			"Signaled", "signal 9", "out ran",
		},
		"one whose output is a link": {
			"echo ran",
			[]string{step("link", "before", "ln -s /etc/passwd $BAI_STEP_OUTPUT/x", "")},
			"StepFailed", "is neither a file nor a folder", "out ran",
		},
	} {
		run := p.submit(withSteps(tt.script, tt.steps...))
		r := p.awaitComplete(run)
		if r.GetOutcome() != baiv1.Outcome_OUTCOME_FAILED || r.GetReason() != tt.reason || !strings.Contains(r.GetMessage(), tt.message) {
			t.Errorf("%s: ended as %v", name, r)
		}
		if lines := p.lines(run); tt.without != "" && slices.Contains(lines, tt.without) {
			t.Errorf("%s: %q was written:\n%s", name, tt.without, strings.Join(lines, "\n"))
		}
	}
}

// wayOut is a run with steps at its end, and how it ends.
type wayOut struct {
	script, keys string
	steps        []string
	cancel       bool // once it has printed that it is ready
	outcome      baiv1.Outcome
	message      string
}

func TestStepsThatRunAlwaysRunOnceOnEveryWayOut(t *testing.T) {
	t.Parallel()
	p := start(t)
	for name, tt := range map[string]wayOut{
		"success": {script: "echo ran", outcome: baiv1.Outcome_OUTCOME_SUCCEEDED, message: "exit code 0"},
		"success with a step after the benchmark": {
			script: "echo ran", steps: []string{step("check", "after", "echo checked > $BAI_STEP_OUTPUT/x", "")},
			outcome: baiv1.Outcome_OUTCOME_SUCCEEDED, message: "exit code 0",
		},
		"failure": {script: "exit 3", outcome: baiv1.Outcome_OUTCOME_FAILED, message: "exit code 3"},
		"failure of a step before the benchmark": {
			script: "echo ran", steps: []string{step("bad", "before", "exit 4", "")},
			outcome: baiv1.Outcome_OUTCOME_FAILED, message: "step bad ended with exit code 4",
		},
		"cancel": {script: "echo ready; sleep 600", cancel: true, outcome: baiv1.Outcome_OUTCOME_CANCELED, message: "canceled"},
		"cancel in a step before the benchmark": {
			script: "echo ran", steps: []string{step("long", "before", "echo ready; sleep 600", "")},
			cancel: true, outcome: baiv1.Outcome_OUTCOME_CANCELED, message: "canceled",
		},
		"the deadline":                 {script: "sleep 600", keys: "[limits]\ndeadline = \"1s\"\n", outcome: baiv1.Outcome_OUTCOME_FAILED, message: "limits.deadline"},
		"an entrypoint that is killed": {script: "kill -9 $PPID; sleep 600", outcome: baiv1.Outcome_OUTCOME_FAILED, message: "signal 9"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.run(t, p)
		})
	}
}

// run plays the way out with steps that are not in the order in which they run, one of which fails.
func (tt wayOut) run(t *testing.T, p *platform) {
	t.Helper()
	steps := append(slices.Clone(tt.steps),
		step("last", "always", "echo last after $(cat /bai-steps/first/n)", "needs = [\"first\"]"),
		step("not", "always", "echo never", "needs = [\"broken\"]"),
		step("broken", "always", "echo sorry; exit 9", ""),
		step("first", "always", "echo first; echo 1 > $BAI_STEP_OUTPUT/n", ""))
	run := p.submit(withSteps(tt.script, steps...) + tt.keys)
	if tt.cancel {
		p.awaitReady(run)
		p.cancel(run)
	}
	r := p.awaitComplete(run)
	if r.GetOutcome() != tt.outcome || !strings.Contains(r.GetMessage(), tt.message) {
		t.Errorf("ended as %v", r)
	}
	if want := "; at the end step broken ended with exit code 9: sorry"; strings.Count(r.GetMessage(), want) != 1 {
		t.Errorf("its message is %q, want one %q", r.GetMessage(), want)
	}
	got := slices.DeleteFunc(p.lines(run), func(line string) bool {
		return !strings.Contains(line, "first") && !strings.Contains(line, "last") && !strings.Contains(line, "never")
	})
	slices.Sort(got)
	if diff := cmp.Diff([]string{"out first", "out last after 1"}, got); diff != "" {
		t.Errorf("the steps at the end (-want +got):\n%s", diff)
	}
}

// In a run of several pods the step runs in the pod of the last role that ends the run, whichever pod's end was the reason.
func TestAStepThatAlwaysRunsRunsOnceInARunOfSeveralPods(t *testing.T) {
	t.Parallel()
	p := start(t)
	const serves, works = "echo served; exec sleep 600", "echo ready; exec sleep 600"
	for name, tt := range map[string]struct {
		server, client string
		cancel         bool
		outcome        baiv1.Outcome
		message        string
	}{
		"success":                 {server: serves, client: "echo ready", outcome: baiv1.Outcome_OUTCOME_SUCCEEDED, message: "exit code 0"},
		"failure of its role":     {server: serves, client: "echo ready; exit 3", outcome: baiv1.Outcome_OUTCOME_FAILED, message: "exit code 3"},
		"failure of another role": {server: "echo served; sleep 1; exit 4", client: works, outcome: baiv1.Outcome_OUTCOME_FAILED, message: "exit code 4"},
		"cancel":                  {server: serves, client: works, cancel: true, outcome: baiv1.Outcome_OUTCOME_CANCELED, message: "canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := p.submit(withRoles(
				role("server", "", tt.server, "replicas = 2\nready = { log = '^served$' }"),
				role("client", "", tt.client, "starts_after = [\"server\"]"),
			) + step("drop", "always", "echo dropped by $BAI_ROLE", ""))
			if tt.cancel {
				p.awaitReady(run)
				p.cancel(run)
			}
			r := p.awaitComplete(run)
			if r.GetOutcome() != tt.outcome || !strings.Contains(r.GetMessage(), tt.message) || strings.Contains(r.GetMessage(), "drop") {
				t.Errorf("ended as %v", r)
			}
			lines := slices.DeleteFunc(p.lines(run), func(line string) bool { return !strings.Contains(line, "dropped") })
			if diff := cmp.Diff([]string{"out dropped by client"}, lines); diff != "" {
				t.Errorf("the step at the end (-want +got):\n%s", diff)
			}
		})
	}
}
