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
