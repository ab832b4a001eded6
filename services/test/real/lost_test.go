package real_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// absentNode creates a Node object without a machine: pods that require it are bound to
// it, and no kubelet ever reports their state.
func absentNode(t *testing.T, w fixture) string {
	t.Helper()
	name := "ghost-" + w.scope
	w.cluster.Apply(t, fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":%q,"labels":{"ghost":%q}},
"spec":{"taints":[{"key":"ghost","effect":"NoSchedule"}]}}`, name, w.scope))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), waitTimeout)
		defer cancel()
		if out, err := w.cluster.Try(ctx, "delete", "node", name); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	w.cluster.Run(t, "patch", "node", name, "--subresource=status", "--type=merge", "-p",
		`{"status":{"capacity":{"cpu":"4","memory":"4Gi","pods":"10"},"allocatable":{"cpu":"4","memory":"4Gi","pods":"10"},`+
			`"conditions":[{"type":"Ready","status":"True","reason":"Test","lastHeartbeatTime":"`+time.Now().UTC().Format(time.RFC3339)+`"}]}}`)
	return name
}

// TestWhatALostNodeHeldIsFreed has two runs on a node that is lost, one that the
// cluster gives up and one that its user cancels. Each ends, nothing of it is
// left, and its slot is another's.
func TestWhatALostNodeHeldIsFreed(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "[kubernetes]\nlost = \"5s\"\n[executor]\nreconcile = \"2s\"\n[executor.pods]\ngrace = \"2s\"\n", "--slots", "2")
	node := absentNode(t, w)
	there := failureCase{hardware: fmt.Sprintf("memory = \"64Mi\"\nnode_selector = { ghost = %q }\ntolerations = [{ key = \"ghost\", operator = \"Exists\" }]", w.scope), limits: `deadline = "1h"`}
	dir := t.TempDir()
	runs := map[string]string{}
	for _, name := range []string{"given up", "canceled"} {
		run, err := w.submit(t.Context(), filepath.Join(dir, name+".toml"), there.descriptor())
		if err != nil {
			t.Fatal(err)
		}
		runs[name] = run
		w.cluster.Run(t, "-n", w.scope, "wait", "--for=create", "--timeout=5m", "pods", "-l", "benchmark-ai.dev/run="+run)
		w.cluster.Run(t, "-n", w.scope, "wait", "--for=condition=PodScheduled", "--timeout=5m", "pods", "-l", "benchmark-ai.dev/run="+run)
	}
	if out, code := w.baictl(t, "cancel", runs["canceled"]); code != 0 {
		t.Fatalf("cancel: exit code %d\n%s", code, out)
	}
	begun := time.Now()
	for name, want := range map[string]runStatus{
		"given up": {Outcome: "failed", FailureClass: "infra", Reason: "NodeLost"},
		"canceled": {Outcome: "canceled", Reason: "CanceledByUser"},
	} {
		if out, code := w.baictl(t, "watch", runs[name], "--timeout", "10m"); code == 3 || code == 4 {
			t.Errorf("%s: exit code %d\n%s", name, code, out)
		}
		end, err := w.get(t.Context(), runs[name])
		if err != nil || end.Outcome != want.Outcome || end.FailureClass != want.FailureClass || end.Reason != want.Reason {
			t.Errorf("%s: it is %+v, want %+v; %v", name, end, want, err)
		}
		t.Logf("%s: %s %s after %s: %s", name, end.Outcome, end.Reason, time.Since(begun).Round(time.Second), end.Message)
	}
	if why, _ := w.baictl(t, "why", runs["canceled"]); !strings.Contains(strings.Join(strings.Fields(why), " "), "waiting for node "+node) {
		t.Errorf("the canceled run's user is not told of the node:\n%s", why)
	}
	awaitCleared(t, w.cluster, w.scope)
	run, err := w.submit(t.Context(), filepath.Join(dir, "after.toml"), failureCase{code: `"true"`}.descriptor())
	if err != nil {
		t.Fatal(err)
	}
	if out, code := w.baictl(t, "watch", run, "--timeout", "10m"); code != 0 {
		t.Errorf("a run after them: exit code %d\n%s", code, out)
	}
}

// TestOneDeleteRemovesAllOfARun runs without a service that could delete the rest.
func TestOneDeleteRemovesAllOfARun(t *testing.T) {
	t.Parallel()
	f := newFleet(t, fleetOptions{settings: "[executor.pods]\ngrace = \"2s\"\n", args: []string{"--slots", "2"}})
	importBenchImage(t, f.fixture)
	run, err := f.submit(t.Context(), filepath.Join(t.TempDir(), "run.toml"), mpiSleep)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.awaitRunning(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	for _, r := range f.members {
		if r.service == "executor" {
			r.Stop(t)
		}
	}
	f.cluster.Run(t, "-n", f.scope, "delete", "configmap", "bai-"+run+"-1", "--wait=false")
	awaitCleared(t, f.cluster, f.scope)
	for _, r := range f.members {
		if !r.IsRunning() {
			r.Begin(t)
		}
	}
	if out, code := f.baictl(t, "watch", run, "--timeout", "10m"); code != 1 {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if end, err := f.get(t.Context(), run); err != nil || end.FailureClass != "infra" || end.Reason != "JobDeleted" && end.Reason != "JobDisappeared" {
		t.Errorf("it is %+v, want JobDeleted; %v", end, err)
	}
}
