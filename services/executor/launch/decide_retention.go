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

// retainedObjects is a document of an attempt whose objects stay in the cluster for a while
// after its end. They hold no slot: nothing of them runs.
type retainedObjects struct {
	Ref   cluster.Ref `json:"ref"`
	Until time.Time   `json:"until"`
}

// retentionFor returns for how long an attempt's objects stay after its end: as its
// descriptor asks, else as keep does, or for failed where only those of failed runs
// stay. Those of a canceled run, or one that another attempt follows, go at once.
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

// retainable reports whether an attempt of so many roles has pods or a Job to look at
// after its end: its Job has ended, or a pod where there are several roles, or all pods. A Job
// that is given up while it waits for a node or an image begins as soon as it has one,
// and must not be kept; nor is a single pod that may still run, because its node does
// not answer.
func retainable(seen cluster.Snapshot, roles int) bool {
	if jobEnded(seen.Job) {
		return true
	}
	if roles > 1 {
		return slices.ContainsFunc(seen.Pods, cluster.BenchmarkEnded)
	}
	_, failing := cluster.Condition(seen.Job, batchv1.JobFailureTarget) // which makes no more of them
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

// ParseKeep reads the setting of that name.
func ParseKeep(text string) (descriptors.Keep, error) {
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
