package real_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"
)

// TestWhatRanOnANodeThatStopsIsLost switches a node off, and has the platform's
// only slot be free again.
func TestWhatRanOnANodeThatStopsIsLost(t *testing.T) {
	w := newFixture(t, "[executor.pods]\ngrace = \"4s\"\n[kubernetes]\nlost = \"5s\"\n", "--slots", "1")
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() {
		if err := w.cluster.PowerOn(ctx, "node2"); err != nil {
			t.Error(err)
		}
		if out, err := w.cluster.Try(ctx, "wait", "node/node2", "--for=condition=Ready", "--timeout=5m"); err != nil {
			t.Errorf("the node does not come back: %v\n%s", err, out)
		}
		for late := time.Now().Add(waitTimeout); ; time.Sleep(kubectlInterval) {
			taints, err := w.cluster.Try(ctx, "get", "node/node2", "-o", "jsonpath={.spec.taints}")
			if err == nil && taints == "" {
				return
			}
			if time.Now().After(late) {
				t.Fatalf("the node is still not to be used: %s, %v", taints, err)
			}
		}
	})
	file := filepath.Join(t.TempDir(), "run.toml")
	h := failureCase{
		hardware: "memory = \"64Mi\"\nnode_selector = { \"kubernetes.io/hostname\" = \"node2\" }",
		act:      func(context.Context, fixture, string) error { return w.cluster.PowerOff("node2") },
		want:     runStatus{Outcome: "failed", FailureClass: "infra", Reason: "NodeLost"}, messagePattern: `node node2`,
	}
	end, took, err := w.provoke(t.Context(), file, h)
	if err := errors.Join(err, h.check(end)); err != nil {
		t.Error(err)
	}
	t.Logf("node stopped: %s %s %s, %.1f s later: %s", end.Outcome, end.FailureClass, end.Reason, took.Seconds(), end.Message)
	next := failureCase{
		hardware: "memory = \"64Mi\"\nnode_selector = { \"kubernetes.io/hostname\" = \"node1\" }", code: `"true"`,
		want: runStatus{Outcome: "succeeded"},
	}
	end, _, err = w.provoke(t.Context(), file, next)
	if err := errors.Join(err, next.check(end)); err != nil {
		t.Errorf("the run after it: %v", err)
	}
	awaitCleared(t, w.cluster, w.scope)
}
