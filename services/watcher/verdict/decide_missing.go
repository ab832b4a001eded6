package verdict

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// MissesJob reports whether one of several jobs of an attempt is gone, before its end: the main one, or one that was seen before.
func MissesJob(before, seen cluster.Snapshot) bool {
	_, missing := missingJob(Observation{Seen: seen, LastSeen: before})
	return missing
}

// WithMainJob returns a snapshot of a launched attempt without a main job if the snapshot has the job of another role in its place: a watch
// that does not know the main one, as one that is gone, takes the first for it.
func WithMainJob(s cluster.Snapshot, l event.Launched) cluster.Snapshot {
	if j := s.Job; j != nil && j.Name != l.Job && (l.UID == "" || string(j.UID) != l.UID) {
		s.Job, s.Others = nil, append([]batchv1.Job{*j}, s.Others...)
	}
	return s
}

// roleDisappeared: of the jobs of several roles one is gone, and the run is not canceled. That counts only after s.Grace; until then no end
// of another role counts either, since the loss may have caused it.
func roleDisappeared(s Observation) (Verdict, bool) {
	j, missing := missingJob(s)
	if s.Canceled || !missing {
		return Verdict{}, false
	}
	if confirmed := s.MissingSince.Add(s.Grace); s.MissingSince.IsZero() || s.Now.Before(confirmed) {
		return Verdict{RecheckAt: confirmed}, true
	}
	reason, subject := event.JobDisappeared, "its job"
	if role := j.Labels[cluster.LabelRole]; role != "" {
		subject = "the job of the " + role
	}
	if j.DeletionTimestamp != nil || slices.ContainsFunc(s.Seen.Pods, func(p corev1.Pod) bool { return isPodOf(p, j) }) {
		reason = event.JobDeleted // before its pods
	}
	return failedVerdict(event.ClassInfra, reason, s.MissingSince, "%s was deleted from outside the platform", subject), true
}

// missingJob returns a job of an attempt of several roles that is gone, before it was complete, while another one exists. The controller of
// another object may replace its jobs, so that these do not count.
func missingJob(s Observation) (j batchv1.Job, missing bool) {
	if s.Seen.Job == nil && len(s.Seen.Others) > 0 {
		if s.LastSeen.Job != nil {
			j = *s.LastSeen.Job
		}
		_, complete := cluster.Condition(&j, batchv1.JobComplete)
		return j, !complete
	}
	for _, j := range s.LastSeen.Others {
		if _, complete := cluster.Condition(&j, batchv1.JobComplete); complete || s.Seen.Job == nil || metav1.GetControllerOf(&j) != nil {
			continue
		}
		if !slices.ContainsFunc(s.Seen.Others, func(o batchv1.Job) bool { return o.Name == j.Name }) {
			return j, true
		}
	}
	return batchv1.Job{}, false
}

// isPodOf reports whether a pod is of a job.
func isPodOf(p corev1.Pod, j batchv1.Job) bool {
	return j.Name != "" && p.Labels[batchv1.JobNameLabel] == j.Name
}

// addMissing returns the jobs that are seen, and after them those of before that are gone.
func addMissing(seen, before []batchv1.Job) []batchv1.Job {
	all := slices.Clip(seen)
	for _, j := range before {
		if !slices.ContainsFunc(seen, func(o batchv1.Job) bool { return o.Name == j.Name }) {
			all = append(all, j)
		}
	}
	return all
}
