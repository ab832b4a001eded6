package verdict_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/watcher/verdict"
)

// copyOf returns an object of a manifest of a copy.
func copyOf(number string, with ...func(*batchv1.Job)) *batchv1.Job {
	j := job(with...)
	j.Labels = map[string]string{cluster.LabelRole: "benchmark", cluster.LabelCopy: number}
	j.Annotations = map[string]string{cluster.AnnotationSucceeded: "condition=Succeeded"}
	if number != "0" {
		j.Name, j.Labels[cluster.LabelEnd] = j.Name+"-"+number, cluster.EndAwaited
	}
	return j
}

// podOfCopy returns a pod of a copy.
func podOfCopy(number string, with ...func(*corev1.Pod)) corev1.Pod {
	p := newPod(with...)
	p.Labels = map[string]string{cluster.LabelRole: "benchmark", cluster.LabelCopy: number}
	return p
}

func TestTheObjectsOfAManifestSayHowItsRunEnds(t *testing.T) {
	unseen := func(j *batchv1.Job) *batchv1.Job { j.Annotations[cluster.AnnotationUnseen] = "true"; return j }
	selecting := func(j *batchv1.Job) *batchv1.Job {
		j.Annotations[cluster.AnnotationPodSelector] = "of=bai-r1-1"
		return j
	}
	failing := exits(cluster.ContainerBenchmark, 3, "Error", "")
	for name, row := range map[string]struct {
		seen cluster.Snapshot
		want string
	}{
		"an object that has succeeded, whatever became of its pods": {
			cluster.Snapshot{Job: copyOf("0", complete(9)), Pods: pods(podOfCopy("0", failing))},
			"succeeded: all objects of the manifest have succeeded",
		},
		"a pod that failed, while its object may start another": {
			cluster.Snapshot{Job: copyOf("0"), Pods: pods(podOfCopy("0", runs(cluster.ContainerBenchmark, 5)))}, "running: running the benchmark",
		},
		"an object that failed, and its pod shows why": {
			cluster.Snapshot{Job: copyOf("0", failed(9, "Failed")), Pods: pods(podOfCopy("0", failing))}, "failed user NonZeroExit: the benchmark ended with exit code 3",
		},
		"an object that failed, and no pod shows why": {
			cluster.Snapshot{Job: copyOf("0", failed(9, "Failed"))}, "failed user ObjectFailed: object bai-r1-1 failed: Failed: too often",
		},
		"a copy that failed, while the others go on": {
			cluster.Snapshot{Job: copyOf("0"), Others: []batchv1.Job{*copyOf("1", failed(9, "Failed"))}, Pods: pods(podOfCopy("0", runs(cluster.ContainerBenchmark, 5)))},
			"failed user ObjectFailed: object bai-r1-1-1 failed: Failed: too often",
		},
		"a copy that failed by its own pod": {
			cluster.Snapshot{Job: copyOf("0", complete(9)), Others: []batchv1.Job{*copyOf("1", failed(9, "Failed"))}, Pods: pods(podOfCopy("1", failing))},
			"failed user NonZeroExit: the benchmark ended with exit code 3",
		},
		"a copy that has not ended yet": {
			cluster.Snapshot{Job: copyOf("0", complete(9)), Others: []batchv1.Job{*copyOf("1")}, Pods: pods(podOfCopy("1", runs(cluster.ContainerBenchmark, 5)))},
			"running: running the benchmark",
		},
		"all copies": {
			cluster.Snapshot{Job: copyOf("0", complete(9)), Others: []batchv1.Job{*copyOf("1", complete(8))}}, "succeeded: all objects of the manifest have succeeded",
		},
		"an object whose pods are not seen": {
			cluster.Snapshot{Job: unseen(copyOf("0"))}, "running: running the objects of the manifest, whose pods the platform does not see",
		},
		"an object whose selector no pod meets, for as long as it likes": {
			cluster.Snapshot{Job: selecting(copyOf("0"))}, "running: running the objects of the manifest; no pod has the labels of=bai-r1-1",
		},
		"an object that failed, and a pod that it selects shows why": {
			cluster.Snapshot{Job: selecting(copyOf("0", failed(9, "Failed"))), Pods: pods(podOfCopy("0", failing))},
			"failed user NonZeroExit: the benchmark ended with exit code 3",
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := verdict.Decide(verdict.Observation{Seen: row.seen, Now: at(60 * 60).Time, PendingDeadline: 60})
			if diff := cmp.Diff(row.want, verdictLine(v)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
