package real_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// stepAtEnd is a step that always runs.
const stepAtEnd = "\n[[steps]]\nname = \"drop\"\nwhen = \"always\"\ncommand = '''\n#!/bin/sh\nsleep 3\necho dropped\n'''\n"

// TestAStepThatAlwaysRunsDoesSoOnEveryWayOut has a run with such a step end in each way, side by side. If a pod is
// deleted without notice, it runs in that pod or in another one, perhaps in both. The deadline is so long that the
// command begins before it on a slow machine, too: an attempt without a command runs no step.
func TestAStepThatAlwaysRunsDoesSoOnEveryWayOut(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "[executor.pods]\ngrace = \"4s\"\n", "--slots", "20")
	var all sync.WaitGroup
	dir := t.TempDir()
	for name, h := range map[string]failureCase{
		"success":            {code: `"true"`, want: runStatus{Outcome: "succeeded"}},
		"failure":            {code: `"sh -c 'exit 3'"`, want: runStatus{Outcome: "failed", Reason: "NonZeroExit"}},
		"failure of a step":  {limits: "[[steps]]\nname = \"bad\"\nwhen = \"before\"\ncommand = \"false\"", want: runStatus{Outcome: "failed", Reason: "StepFailed"}},
		"deadline":           {limits: `deadline = "1m"`, want: runStatus{Outcome: "failed", Reason: "DeadlineExceeded"}},
		"cancel":             {act: cancelRun, want: runStatus{Outcome: "canceled", Reason: "CanceledByUser"}},
		"eviction":           {act: evictPod, want: runStatus{Outcome: "failed", Reason: "Evicted"}},
		"a pod that is gone": {act: forceDeletePod, want: runStatus{Outcome: "failed"}},
		"another pod fails":  {descriptorText: twoRoles("sleep 5; exit 3", "sleep 600"), want: runStatus{Outcome: "failed", Reason: "NonZeroExit"}},
		"another pod serves": {descriptorText: twoRoles("sleep 600", "sleep 5"), want: runStatus{Outcome: "succeeded"}},
	} {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
			defer cancel()
			end, log, err := w.endWithStep(ctx, filepath.Join(dir, name+".toml"), h)
			times := strings.Count(log, "dropped")
			if err != nil || end.Outcome != h.want.Outcome || h.want.Reason != "" && end.Reason != h.want.Reason || strings.Contains(end.Message, "drop") {
				t.Errorf("%s: it is %+v; %v", name, end, err)
			}
			if times < 1 || times > 1 && name != "a pod that is gone" {
				t.Errorf("%s: the step ran %d times:\n%s", name, times, log)
			}
		})
	}
	all.Wait()
	awaitCleared(t, w.cluster, w.scope)
}

// twoRoles is a descriptor of two pods with a command each. The end of the second one ends the run.
func twoRoles(first, second string) string {
	return fmt.Sprintf(`spec_version = "1.0"
[info]
description = "two pods"
[hardware]
cpus = "20m"
[env]
docker_image = "debian:12-slim"
[[roles]]
name = "first"
benchmark_code = "sh -c '%s'"
[[roles]]
name = "second"
benchmark_code = "sh -c '%s'"
`, first, second)
}

// endWithStep runs a case, and returns the end and the log of its run, which has the step's line.
func (w fixture) endWithStep(ctx context.Context, file string, h failureCase) (end runStatus, log string, err error) {
	run, err := w.submit(ctx, file, h.descriptor()+stepAtEnd)
	if err != nil {
		return end, "", err
	}
	if h.act != nil {
		if err := w.awaitRunning(ctx, run); err != nil {
			return end, "", err
		}
		if err := h.act(ctx, w, run); err != nil {
			return end, "", err
		}
	}
	if out, _, err := w.try(ctx, "watch", run, "--timeout", "10m"); err != nil {
		return end, out, err
	}
	for end, err = w.get(ctx, run); err == nil && !strings.Contains(log, "dropped") && ctx.Err() == nil; time.Sleep(time.Second) {
		log, _, err = w.try(ctx, "logs", run)
	}
	return end, log, err
}

func forceDeletePod(ctx context.Context, w fixture, run string) error {
	p, err := w.podNamed(ctx, run, "")
	if err != nil {
		return err
	}
	out, err := w.cluster.Try(ctx, "-n", w.scope, "delete", "pod", p.Metadata.Name, "--force", "--grace-period=0")
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}
