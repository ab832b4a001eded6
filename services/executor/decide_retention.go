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

// Retained is a document of an attempt whose objects stay in the cluster for a while
// after its end. They hold no slot: nothing of them runs.
type Retained struct {
	Ref   cluster.Ref `json:"ref"`
	Until time.Time   `json:"until"`
}

// retentionFor says for how long an attempt's objects stay after its end: what the
// descriptor asks for, else the settings. What was canceled, or is followed by
// another attempt, goes at once.
func retentionFor(p Plan, run store.Run, s Settings) time.Duration {
	if run.Attempt != p.Run.Attempt || run.Phase != event.PhaseFinished || run.Outcome == event.Canceled {
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
		return s.Pods.RetentionPeriod()
	}
	return 0
}

// Retainable reports whether an attempt of so many roles has something to be looked at after
// its end: its Job has ended, or a pod where there are several roles, or all pods. A Job
// that is given up while it waits for a node or an image begins as soon as it has one,
// and must not be kept; nor is a single pod that may still run, because its node does
// not answer.
func Retainable(seen cluster.Snapshot, roles int) bool {
	if jobEnded(seen.Job) {
		return true
	}
	if roles > 1 {
		return slices.ContainsFunc(seen.Pods, cluster.BenchmarkEnded)
	}
	_, failing := cluster.Condition(seen.Job, batchv1.JobFailureTarget) // which makes no more of them
	return Terminated(seen) && (len(seen.Pods) > 0 || failing)
}

// Terminated reports whether all pods of an attempt have ended.
func Terminated(seen cluster.Snapshot) bool { return !slices.ContainsFunc(seen.Pods, cluster.Alive) }

func jobEnded(j *batchv1.Job) bool {
	for _, t := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
		if _, ok := cluster.Condition(j, t); ok {
			return true
		}
	}
	return false
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
