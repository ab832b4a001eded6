package real_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"
)

// TestWhatRanOnANodeThatStopsIsLost switches a node off. It is the last test:
// the node stays off for as long as its cluster is up.
func TestWhatRanOnANodeThatStopsIsLost(t *testing.T) {
	w := newWorld(t, "[executor.pods]\ngrace = \"4s\"\n")
	h := hurt{
		hardware: "memory = \"64Mi\"\nnode_selector = { \"kubernetes.io/hostname\" = \"node2\" }",
		act:      func(context.Context, world, string) error { return w.bed.PowerOff("node2") },
		within:   time.Minute,
		want:     told{Outcome: "failed", FailureClass: "infra", Reason: "NodeLost"}, says: `node node2`,
	}
	end, took, err := w.hurt(t.Context(), filepath.Join(t.TempDir(), "run.toml"), h)
	if err := errors.Join(err, h.check(end, took)); err != nil {
		t.Error(err)
	}
	t.Logf("node stopped: %s %s %s, %.1f s later: %s", end.Outcome, end.FailureClass, end.Reason, took.Seconds(), end.Message)
}
