package launch

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

// retainedObjects is the document of an attempt whose objects stay in the cluster for a
// time after its end. They hold no slot, since none of their pods runs.
type retainedObjects struct {
	Engine string      `json:"engine,omitempty"` // key of the engine; empty for the default one
	Ref    cluster.Ref `json:"ref"`
	Until  time.Time   `json:"until"`
}

// retentionFor returns how long the objects of an attempt stay after its end. The rule
// is the descriptor's, or else keep. Under the rule failed, the objects of a failed run
// stay for the time failed. The objects of a canceled run or a retried attempt do not
// stay.
func retentionFor(p Plan, run store.Run, keep descriptors.Keep, failed time.Duration) time.Duration {
	if run.Attempt != p.Run.Attempt || run.Phase != event.PhaseFinished || run.Outcome == event.Canceled {
		return 0
	}
	k := p.Keep
	if k.Rule == "" {
		k = keep
	}
	switch {
	case k.Rule == descriptors.KeepFor:
		return k.For
	case k.Rule == descriptors.KeepFailed && run.Outcome == event.Failed:
		return failed
	}
	return 0
}

// retainable reports whether an attempt with that many roles has a pod or Job worth
// retaining: its Job has ended, or with several roles a pod has ended, or with one role
// all pods have. A Job that was given up while it waited for a node or an image is not
// retained, since it starts as soon as it has one. A single pod whose node does not
// answer is not retained either, since it may still run.
func retainable(seen cluster.Snapshot, roles int) bool {
	if jobEnded(seen.Job) {
		return true
	}
	if roles > 1 {
		return slices.ContainsFunc(seen.Pods, cluster.BenchmarkEnded)
	}
	_, failing := cluster.Condition(seen.Job, batchv1.JobFailureTarget) // a failing Job creates no more pods
	return terminated(seen) && (len(seen.Pods) > 0 || failing)
}

// terminated reports whether all pods of an attempt have ended.
func terminated(seen cluster.Snapshot) bool { return !slices.ContainsFunc(seen.Pods, cluster.Alive) }

func jobEnded(j *batchv1.Job) bool {
	for _, t := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
		if _, ok := cluster.Condition(j, t); ok {
			return true
		}
	}
	return false
}

// ParseKeep parses the setting keep.
func ParseKeep(text string) (descriptors.Keep, error) {
	switch text {
	case "", descriptors.KeepNever:
		return descriptors.Keep{Rule: descriptors.KeepNever}, nil
	case descriptors.KeepFailed:
		return descriptors.Keep{Rule: descriptors.KeepFailed}, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return descriptors.Keep{},
			fmt.Errorf("executor.keep: %q, want %s, %s or a time such as 1h", text, descriptors.KeepNever, descriptors.KeepFailed)
	}
	return descriptors.Keep{Rule: descriptors.KeepFor, For: d}, nil
}
