package verdict

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/watcher/verdict/objects"
)

// ofManifest reports whether a job stands for an object of a manifest that ends the run. Its controller may start pods again, so that a
// failed pod says nothing about the run.
func ofManifest(j *batchv1.Job) bool {
	return j != nil && j.Annotations[cluster.AnnotationSucceeded] != ""
}

// podsOfCopy returns the pods that may show why a job failed: those of its copy, if it is an object of a manifest.
func podsOfCopy(j *batchv1.Job, pods []corev1.Pod) []corev1.Pod {
	if !ofManifest(j) {
		return pods
	}
	number := j.Labels[cluster.LabelCopy]
	return slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool { return p.Labels[cluster.LabelCopy] != number })
}

// objectFailure is the verdict on an object of a manifest that failed, and no pod shows why.
func objectFailure(s Observation, c batchv1.JobCondition) Verdict {
	words := objects.JoinReasonMessage(c.Reason, c.Message)
	if words != "" {
		words = ": " + words
	}
	return failedVerdict(event.ClassUser, event.ObjectFailed, c.LastTransitionTime.Time, "object %s failed%s",
		s.Seen.Job.Name, words+lostOutput(s))
}

// copyFailed: an object of the manifest beside the main one has failed. The run needs all of them.
func copyFailed(s Observation) (Verdict, bool) {
	if !ofManifest(s.Seen.Job) || s.Seen.Job.DeletionTimestamp != nil {
		return Verdict{}, false
	}
	for _, j := range awaitedJobs(s) {
		one := s
		one.Seen.Job = j
		if v, ok := failed(one); ok {
			return v, true
		}
	}
	return Verdict{}, false
}
