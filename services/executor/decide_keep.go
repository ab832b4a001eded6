package executor

import (
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Kept is a document of an attempt whose objects stay in the cluster for a while
// after its end. They hold no slot: nothing of them runs.
type Kept struct {
	Ref   cluster.Ref `json:"ref"`
	Until time.Time   `json:"until"`
}

// keepFor says for how long an attempt's objects stay after its end: what the
// descriptor asks for, else the settings. What was canceled, or is followed by
// another attempt, goes at once, and so does a run of several roles, whose
// servers and workers would go on otherwise.
func keepFor(p Plan, run store.Run, s Settings) time.Duration {
	if p.Jobs > 1 || run.Attempt != p.Run.Attempt || run.Phase != event.PhaseFinished || run.Outcome == event.Canceled {
		return 0
	}
	k := p.Keep
	if k.Rule == "" {
		k, _ = parseKeep(s.Keep) // it was validated
	}
	switch {
	case k.Rule == descriptors.KeepFor:
		return k.For
	case k.Rule == descriptors.KeepFailed && run.Outcome == event.Failed:
		return s.Pods.KeptFor()
	}
	return 0
}

// Still reports whether nothing of an attempt runs, or ever will: its Job says that
// it has ended, or all of its pods have. A Job that is given up while it waits for
// a node or an image begins as soon as it has one, and must not be kept.
func Still(seen cluster.Seen) bool {
	has := func(t batchv1.JobConditionType) bool { _, ok := cluster.Condition(seen.Job, t); return ok }
	if has(batchv1.JobComplete) || has(batchv1.JobFailed) {
		return true
	}
	if slices.ContainsFunc(seen.Pods, cluster.Alive) {
		return false
	}
	return len(seen.Pods) > 0 || has(batchv1.JobFailureTarget) // which makes no more of them
}

// parseKeep reads the setting of that name.
func parseKeep(text string) (descriptors.Keep, error) {
	switch text {
	case "", descriptors.KeepNever:
		return descriptors.Keep{Rule: descriptors.KeepNever}, nil
	case descriptors.KeepFailed:
		return descriptors.Keep{Rule: descriptors.KeepFailed}, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return descriptors.Keep{}, fmt.Errorf("executor.keep: %q, want %s, %s or a time such as 1h", text, descriptors.KeepNever, descriptors.KeepFailed)
	}
	return descriptors.Keep{Rule: descriptors.KeepFor, For: d}, nil
}
