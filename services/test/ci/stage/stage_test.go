package stage_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/golden"
	"github.com/benchmark-ai/bai/services/test/ci/gotest"
	"github.com/benchmark-ai/bai/services/test/ci/stage"
)

func passes(context.Context) stage.Result { return stage.Result{} }

func fails(context.Context) stage.Result { return stage.Result{Err: errors.New("it is broken")} }

// ran returns the names of the stages that ran, and the states of all.
func ran(ctx context.Context, stages []stage.Stage) (names []string, states map[string]stage.State) {
	var mu sync.Mutex
	for i, s := range stages {
		stages[i].Run = func(ctx context.Context) stage.Result {
			mu.Lock()
			defer mu.Unlock()
			names = append(names, s.Name)
			return s.Run(ctx)
		}
	}
	states = map[string]stage.State{}
	for _, o := range stage.Run(ctx, stages, &bytes.Buffer{}) {
		states[o.Stage.Name] = o.State
	}
	return names, states
}

func TestStagesOfALaneRunInOrderAlsoAfterAFailure(t *testing.T) {
	t.Parallel()
	names, states := ran(t.Context(), []stage.Stage{
		{Name: "format", Lane: "a", Run: fails}, {Name: "lint", Lane: "a", Run: passes}, {Name: "tests", Lane: "a", Run: passes},
	})
	if diff := cmp.Diff([]string{"format", "lint", "tests"}, names); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]stage.State{"format": stage.Failed, "lint": stage.Passed, "tests": stage.Passed}, states); diff != "" {
		t.Error(diff)
	}
}

func TestAStageWhoseConditionFailedIsNotRun(t *testing.T) {
	t.Parallel()
	names, states := ran(t.Context(), []stage.Stage{
		{Name: "build", Lane: "a", Run: fails},
		{Name: "tests", Lane: "b", After: []string{"build"}, Run: passes},
		{Name: "more tests", Lane: "b", After: []string{"tests"}, Run: passes},
		{Name: "clear", Lane: "b", Always: true, Run: passes},
	})
	if slices.Contains(names, "tests") || slices.Contains(names, "more tests") || !slices.Contains(names, "clear") {
		t.Errorf("ran %q", names)
	}
	if states["tests"] != stage.NotRun || states["more tests"] != stage.NotRun || states["clear"] != stage.Passed {
		t.Errorf("%v", states)
	}
}

func TestAStageRunsBehindOthersWhateverBecameOfThem(t *testing.T) {
	t.Parallel()
	names, states := ran(t.Context(), []stage.Stage{
		{Name: "build", Lane: "a", Run: passes},
		{Name: "tests", Lane: "a", Run: fails},
		{Name: "cluster", Lane: "b", Behind: []string{"tests", "not chosen"}, Run: passes},
	})
	if diff := cmp.Diff([]string{"build", "tests", "cluster"}, names); diff != "" {
		t.Error(diff)
	}
	if states["tests"] != stage.Failed || states["cluster"] != stage.Passed {
		t.Errorf("%v", states)
	}
}

func TestAStageThatClearsUpRunsAlsoWhenTheCheckWasToldToStop(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	names, states := ran(ctx, []stage.Stage{
		{Name: "tests", Lane: "a", Run: passes},
		{Name: "clear", Lane: "a", Always: true, Run: func(ctx context.Context) stage.Result { return stage.Result{Err: ctx.Err()} }},
	})
	if diff := cmp.Diff([]string{"clear"}, names); diff != "" {
		t.Error(diff)
	}
	if states["tests"] != stage.NotRun || states["clear"] != stage.Passed {
		t.Errorf("%v", states)
	}
}

func TestLanesRunSideBySide(t *testing.T) {
	t.Parallel()
	met := make(chan struct{})
	meets := func(ctx context.Context) stage.Result {
		select {
		case met <- struct{}{}:
		case <-met:
		case <-ctx.Done():
		}
		return stage.Result{Err: ctx.Err()}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	outcomes := stage.Run(ctx, []stage.Stage{{Name: "one", Lane: "a", Run: meets}, {Name: "two", Lane: "b", Run: meets}}, &bytes.Buffer{})
	if !stage.Ok(outcomes) {
		t.Errorf("%+v", outcomes)
	}
}

func TestTheReportNamesEachFailureOnOneScreen(t *testing.T) {
	t.Parallel()
	failed := stage.Result{CPU: 401 * time.Second, Tests: gotest.Report{Passed: 310, Failed: 2, Skipped: 4, Failures: []gotest.Failure{
		{Package: "github.com/benchmark-ai/bai/services/watcher", Test: "TestAPodThatIsGone/its_node_too", Why: []string{"    decide_test.go:90: phase is running", "        want finished"}},
		{Package: "github.com/benchmark-ai/bai/services/puller", Why: []string{"puller.go:3:1: undefined: x"}},
	}}}
	outcomes := []stage.Outcome{
		{Stage: stage.Stage{Name: "format", Budget: time.Minute}, State: stage.Passed, Took: 4200 * time.Millisecond},
		{Stage: stage.Stage{Name: "lint", Budget: time.Minute}, State: stage.Failed, Took: 61 * time.Second, Result: stage.Result{Err: errors.New("make lint: exit status 2\nlint services\nservices/a.go:3:1: no comment")}},
		{Stage: stage.Stage{Name: "make test"}, State: stage.Failed, Took: 4*time.Minute + 7*time.Second, Result: failed},
		{Stage: stage.Stage{Name: "Kubernetes"}, State: stage.NotRun, Result: stage.Result{Err: errors.New(`it needs the stage "begin cluster", which did not pass`)}},
	}
	text := stage.Report(outcomes, 6*time.Minute, "bin/ci")
	for _, o := range outcomes {
		text += o.Line() + "\n"
	}
	golden.Check(t, "testdata/report.txt", []byte(text))
	if lines := strings.Count(text, "\n"); lines > 40 {
		t.Errorf("%d lines do not fit on one screen", lines)
	}
}
