package verdict_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/watcher/verdict"
)

func TestDecide(t *testing.T) {
	tests := map[string]struct {
		job      *batchv1.Job
		pods     []corev1.Pod
		events   []corev1.Event
		before   cluster.Snapshot
		gone     int // seconds since the attempt is gone; 0 if it is not
		canceled bool
		now      int
		want     string
	}{
		"a job without a pod is pending, not failed": {
			job: job(), now: 1,
			want: "pending: waiting for its pod",
		},
		"a job that gets no pod for long fails, and nobody knows why": {
			job: job(), now: 601,
			want: "failed infra PendingTooLong: waiting for its pod; timed out after 10m0s",
		},
		"a job whose pod has gone is about to say why, and waits for none": {
			job: job(), before: cluster.Snapshot{Job: job(), Pods: pods(newPod(scheduled()))}, now: 601,
			want: "",
		},
		"a job that counts a pod that has gone waits for none": {
			job: job(counts()), now: 601,
			want: "",
		},
		"a pod of which nothing is known yet is pending": {
			job: job(), pods: pods(newPod()), now: 1,
			want: "pending: preparing the pod on n1",
		},
		"a pod that was made a moment ago is not worth a word": {
			job: job(), pods: pods(newPod(scheduled())), now: 1,
			want: "",
		},
		"a pod that is being prepared": {
			job: job(), pods: pods(newPod(scheduled())), now: 2,
			want: "pending: preparing the pod on n1",
		},
		"a pod whose image is being brought, in the node's own words": {
			job: job(), pods: pods(newPod(scheduled(), waiting(cluster.ContainerBenchmark, "PodInitializing", ""))), now: 9,
			events: clusterMessage(5, "Pulling", `Pulling image "image:1"`),
			want:   `pending: n1: Pulling image "image:1"`,
		},
		"a benchmark without a result has failed, with the words of the parser": {
			job: job(failed(12, "BackoffLimitExceeded")), now: 13,
			pods: pods(newPod(scheduled(), ended(corev1.PodFailed), exits(cluster.ContainerBenchmark, pod.ExitNoResults, "", "NoResults: the output has no result that parser iperf3 reads: no JSON\n"))),
			want: "failed user NoResults: the benchmark left no results: the output has no result that parser iperf3 reads: no JSON",
		},
		"a benchmark may end with the same code": {
			job: job(failed(12, "BackoffLimitExceeded")), now: 13,
			pods: pods(newPod(scheduled(), ended(corev1.PodFailed), exits(cluster.ContainerBenchmark, pod.ExitNoResults, "", "bad input\n"))),
			want: "failed user NonZeroExit: the benchmark ended with exit code 65: bad input",
		},
		"an image that was brought, and how long that took": {
			job: job(), pods: pods(newPod(scheduled(), waiting(cluster.ContainerBenchmark, "PodInitializing", ""))), now: 9,
			events: slices.Concat(clusterMessage(3, "Pulling", `Pulling image "image:1"`), clusterMessage(8, "Pulled", `Successfully pulled image "image:1" in 5.1s`)),
			want:   `pending: n1: Successfully pulled image "image:1" in 5.1s`,
		},
		"an image that was there already is not worth a word": {
			job: job(), pods: pods(newPod(scheduled())), now: 9,
			events: clusterMessage(5, "Pulled", `Container image "image:1" already present on machine`),
			want:   "pending: preparing the pod on n1",
		},
		"an image's own entrypoint promises less of its output": {
			job: job(), pods: pods(newPod(scheduled(), unwrapped(), runs(cluster.ContainerBenchmark, 3))), now: 4,
			want: "running: running the benchmark, by the entrypoint of its image: output is read from the container's log, which the node may cut",
		},
		"a pod that no node takes waits, with the scheduler's words": {
			job: job(), pods: pods(newPod(unscheduled("0/2 nodes are available: 2 Insufficient cpu."))), now: 30,
			want: "pending Unschedulable: no node can take its pod: Unschedulable: 0/2 nodes are available: 2 Insufficient cpu.",
		},
		"a pod that no node takes for long is the cluster's fault": {
			job: job(), pods: pods(newPod(unscheduled("2 Insufficient nvidia.com/gpu"))), now: 602,
			want: "failed infra Unschedulable: no node can take its pod: Unschedulable: 2 Insufficient nvidia.com/gpu; timed out after 10m0s",
		},
		"a pod for a kind of node that there is not is the user's fault": {
			job: job(), pods: pods(newPod(unscheduled("0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."))), now: 602,
			want: "failed user Unschedulable: no node can take its pod: Unschedulable: 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.; timed out after 10m0s",
		},
		"a pod that is larger than any node is the user's fault": {
			job: job(), pods: pods(newPod(unscheduled("0/2 nodes are available: 2 Insufficient nvidia.com/gpu. no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."))), now: 602,
			want: "failed user Unschedulable: no node is large enough for its pod: Unschedulable: 0/2 nodes are available: 2 Insufficient nvidia.com/gpu. no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.; timed out after 10m0s",
		},
		"a pod for which a node is large enough, and busy, is the cluster's fault": {
			job: job(), pods: pods(newPod(unscheduled("0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling."))), now: 602,
			want: "failed infra Unschedulable: no node can take its pod: Unschedulable: 0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling.; timed out after 10m0s",
		},
		"a pod for which the nodes that are well are too small is the cluster's fault": {
			job: job(), pods: pods(newPod(unscheduled("0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint {node.kubernetes.io/unreachable: }. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."))), now: 602,
			want: "failed infra Unschedulable: no node can take its pod: Unschedulable: 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint {node.kubernetes.io/unreachable: }. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.; timed out after 10m0s",
		},
		"a pod without a node of its own is the user's fault where the cluster has none for it": {
			job: job(), now: 602,
			pods: pods(newPod(scheduled()), newPod(apart, unscheduled("0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules."))),
			want: "failed user Unschedulable: no node can take 1 of its 2 pods: the run lacks 1 node, since each of its 2 pods has a node of its own (hardware.apart), and the cluster has 1 node; Unschedulable: 0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules.; timed out after 10m0s",
		},
		"an image that cannot be had now may be had later": {
			job: job(), pods: pods(newPod(scheduled(), waiting(cluster.ContainerBenchmark, "ErrImagePull", "not found"))), now: 30,
			want: "pending ImagePullBackOff: container benchmark cannot be started: ErrImagePull: not found",
		},
		"an image that cannot be had for long is the user's fault": {
			job: job(), pods: pods(newPod(scheduled(), waiting(cluster.ContainerBenchmark, "ImagePullBackOff", "not found"))), now: 601,
			want: "failed user ImagePullBackOff: container benchmark cannot be started: ImagePullBackOff: not found; timed out after 10m0s",
		},
		"an image of ours that cannot be had is not": {
			job: job(), pods: pods(newPod(scheduled(), waiting(cluster.ContainerInstall, "ImagePullBackOff", "not found"))), now: 601,
			want: "failed platform ImagePullBackOff: container bai-install cannot be started: ImagePullBackOff: not found; timed out after 10m0s",
		},
		"an image's name that is none fails at once": {
			job: job(), pods: pods(newPod(scheduled(), waiting(cluster.ContainerBenchmark, "InvalidImageName", "UPPER"))), now: 2,
			want: "failed user ImagePullBackOff: container benchmark cannot be started: InvalidImageName: UPPER",
		},
		"a secret that is missing is told": {
			job: job(), pods: pods(newPod(scheduled(), waiting(cluster.ContainerBenchmark, "CreateContainerConfigError", `secret "x" not found`))), now: 30,
			want: `pending ConfigError: container benchmark cannot be started: CreateContainerConfigError: secret "x" not found`,
		},
		"a secret that is missing is told when the node has said so, and the pod has not yet": {
			job: job(), pods: pods(newPod(scheduled(), runs(cluster.ContainerCollect, 2), waiting(cluster.ContainerBenchmark, "PodInitializing", ""))), now: 30,
			events: ofContainer(cluster.ContainerBenchmark, warningAbout(9, "pod-0", "Failed", `Error: secret "x" not found`)),
			want:   `pending ConfigError: container benchmark cannot be started: secret "x" not found`,
		},
		"and is its user's fault once its time is up": {
			job: job(), pods: pods(newPod(scheduled(), runs(cluster.ContainerCollect, 2), waiting(cluster.ContainerBenchmark, "PodInitializing", ""))), now: 610,
			events: ofContainer(cluster.ContainerBenchmark, warningAbout(590, "pod-0", "Failed", `Error: secret "x" not found`)),
			want:   `failed user ConfigError: container benchmark cannot be started: secret "x" not found; timed out after 10m0s`,
		},
		"an image that a node could not have is told, too": {
			job: job(), pods: pods(newPod(scheduled(), waiting(cluster.ContainerBenchmark, "ContainerCreating", ""))), now: 30,
			events: ofContainer(cluster.ContainerBenchmark, append(warningAbout(9, "pod-0", "Failed", `Failed to pull image "example.org/none:1": not found`), warningAbout(9, "pod-0", "Failed", "Error: ErrImagePull")...)),
			want:   `pending ImagePullBackOff: container benchmark cannot be started: ErrImagePull: Failed to pull image "example.org/none:1": not found`,
		},
		"of a container that could not be made at first nothing is said once it runs": {
			job: job(), pods: pods(newPod(scheduled(), runs(cluster.ContainerBenchmark, 20))), now: 30,
			events: ofContainer(cluster.ContainerBenchmark, warningAbout(9, "pod-0", "Failed", `Error: secret "x" not found`)),
			want:   "running: running the benchmark",
		},
		"what is said of another container is not said of this one": {
			job: job(), pods: pods(newPod(scheduled(), waiting(cluster.ContainerBenchmark, "PodInitializing", ""))), now: 30,
			events: ofContainer(cluster.ContainerCollect, warningAbout(9, "pod-0", "Failed", `Error: secret "x" not found`)),
			want:   `pending: preparing the pod on n1; n1: Failed: Error: secret "x" not found`,
		},
		"a volume that could not be mounted right away may be on its way": {
			job: job(), pods: pods(newPod(scheduled(), waiting(cluster.ContainerInstall, "PodInitializing", ""))), now: 2,
			events: events("pod-0", "FailedMount", "secret not found"),
			want:   "",
		},
		"a volume that cannot be mounted is told": {
			job: job(), pods: pods(newPod(scheduled(), waiting(cluster.ContainerInstall, "PodInitializing", ""))), now: 30,
			events: events("pod-0", "FailedMount", "no such claim"),
			want:   "pending VolumeError: a volume cannot be mounted: no such claim",
		},
		"a file with a secret that is not there is the user's fault": {
			job: job(), pods: pods(newPod(scheduled(), waiting(cluster.ContainerInstall, "PodInitializing", ""))), now: 30 * 60,
			events: events("pod-0", "FailedMount", `MountVolume.SetUp failed for volume "secret-file-0" : secret "aws" not found`),
			want:   `failed user VolumeError: a file of env.secret_files cannot be mounted: MountVolume.SetUp failed for volume "secret-file-0" : secret "aws" not found; timed out after 10m0s`,
		},
		"a volume that could not be mounted at first is forgotten once a container runs": {
			job: job(), pods: pods(newPod(scheduled(), runs(cluster.ContainerCollect, 2), waiting(cluster.ContainerBenchmark, "PodInitializing", ""))), now: 30,
			events: events("pod-0", "FailedMount", "no such claim"),
			want:   "pending: preparing the pod on n1",
		},
		"a pod that a quota keeps out waits, with the API server's words": {
			job: job(), now: 30, events: events("bai-r1-1", "FailedCreate", `pods "x" is forbidden: exceeded quota: q`),
			want: `pending LaunchRefused: the cluster refuses its pod: pods "x" is forbidden: exceeded quota: q`,
		},
		"a pod that a policy keeps out never comes": {
			job: job(), now: 30, events: events("bai-r1-1", "FailedCreate", `pods "x" is forbidden: violates PodSecurity`),
			want: `failed user LaunchRefused: the cluster refuses its pod: pods "x" is forbidden: violates PodSecurity`,
		},
		"while the data are pulled the user is told": {
			job: job(), pods: pods(newPod(scheduled(), runs(cluster.ContainerPull, 2))), now: 30,
			want: "pending: copying its data sets to the machine",
		},
		"a collector that fails again and again before the benchmark is the platform's fault": {
			job: job(), pods: pods(newPod(scheduled(), waiting(cluster.ContainerCollect, "CrashLoopBackOff", "back-off"))), now: 601,
			want: "failed platform SidecarFailed: container bai-collect cannot be started: CrashLoopBackOff: back-off; timed out after 10m0s",
		},
		"a collector that fails beside a running benchmark ends nothing": {
			job: job(), pods: pods(newPod(scheduled(), waiting(cluster.ContainerCollect, "CrashLoopBackOff", "back-off"), runs(cluster.ContainerBenchmark, 3))), now: 7200,
			want: "running: running the benchmark",
		},
		"a pod that nobody schedules is told": {
			job: job(), pods: pods(newPod(scheduler("typo"))), now: 30,
			want: `pending: waiting for the scheduler "typo"`,
		},
		"and not waited for without end": {
			job: job(), pods: pods(newPod(scheduler("typo"))), now: 600,
			want: `failed infra PendingTooLong: waiting for the scheduler "typo"; timed out after 10m0s`,
		},
		"a pod that its node cannot prepare is told in the node's words": {
			job: job(), pods: pods(newPod(scheduled(), waiting(cluster.ContainerInstall, "ContainerCreating", ""))), now: 30,
			events: warningAbout(9, "pod-0", "FailedCreatePodSandBox", "no network"),
			want:   "pending: preparing the pod on n1; n1: FailedCreatePodSandBox: no network",
		},
		"and fails with them once its time is up": {
			job: job(), pods: pods(newPod(scheduled(), waiting(cluster.ContainerInstall, "ContainerCreating", ""))), now: 601,
			events: warningAbout(590, "pod-0", "FailedCreatePodSandBox", "no network"),
			want:   "failed infra PendingTooLong: preparing the pod on n1; FailedCreatePodSandBox: no network; timed out after 10m0s",
		},
		"an image that is not there in time fails, however long the data took": {
			job: job(), pods: pods(newPod(scheduled(), exits(cluster.ContainerPull, 0, "", ""), runs(cluster.ContainerCollect, 2), waiting(cluster.ContainerBenchmark, "PodInitializing", ""))), now: 610,
			want: "failed infra PendingTooLong: preparing the pod on n1; timed out after 10m0s",
		},
		"data may be pulled for as long as they need": {
			job: job(), pods: pods(newPod(scheduled(), runs(cluster.ContainerPull, 2), waiting(cluster.ContainerBenchmark, "PodInitializing", ""))), now: 7200,
			want: "pending: copying its data sets to the machine",
		},
		"a claim that there is not is the user's fault": {
			job: job(), pods: pods(newPod(unscheduled(`0/2 nodes are available: persistentvolumeclaim "x" not found.`))), now: 602,
			want: `failed user Unschedulable: no node can take its pod: Unschedulable: 0/2 nodes are available: persistentvolumeclaim "x" not found.; timed out after 10m0s`,
		},
		"a pod that somebody deletes is not its user's fault": {
			job: job(failed(20, "BackoffLimitExceeded")), pods: pods(newPod(deleting(35), grace(30), ended(corev1.PodFailed), exits(cluster.ContainerBenchmark, 143, "Error", ""))), now: 21,
			want: "failed infra JobDeleted: somebody deleted the benchmark, and it was not canceled",
		},
		"nor is one whose deletion took its last step a second after its end, which is all that is seen of it": {
			job: job(failed(20, "BackoffLimitExceeded")), pods: pods(newPod(deleting(11), grace(0), ended(corev1.PodFailed), exits(cluster.ContainerBenchmark, 143, "Error", ""))), now: 21,
			want: "failed infra JobDeleted: somebody deleted the benchmark, and it was not canceled",
		},
		"a pod that somebody deletes by force is not either": {
			job: job(failed(20, "BackoffLimitExceeded")), before: cluster.Snapshot{Pods: pods(newPod(deleting(9), grace(0), runs(cluster.ContainerBenchmark, 3)))}, now: 21,
			want: "failed infra JobDeleted: somebody deleted the benchmark, and it was not canceled",
		},
		"a pod that somebody deletes after it failed has failed": {
			job: job(failed(20, "BackoffLimitExceeded")), pods: pods(newPod(deleting(45), grace(30), ended(corev1.PodFailed), exits(cluster.ContainerBenchmark, 3, "Error", ""))), now: 21,
			want: "failed user NonZeroExit: the benchmark ended with exit code 3",
		},
		"a pod that its job deletes because another failed is not what failed": {
			job: job(failed(20, "BackoffLimitExceeded")), pods: pods(
				newPod(ended(corev1.PodFailed), exits(cluster.ContainerBenchmark, 3, "Error", "")),
				newPod(deleting(41), grace(30), ended(corev1.PodFailed), exitsAt(12, 143))), now: 21,
			want: "failed user NonZeroExit: the benchmark ended with exit code 3",
		},
		"a benchmark that runs is running": {
			job: job(), pods: pods(newPod(scheduled(), runs(cluster.ContainerCollect, 2), runs(cluster.ContainerBenchmark, 3))), now: 4,
			want: "running: running the benchmark",
		},
		"a benchmark that has just ended is not worth a word": {
			job: job(), pods: pods(newPod(scheduled(), exits(cluster.ContainerBenchmark, 0, "", ""))), now: 10,
			want: "",
		},
		"a benchmark that has ended still collects": {
			job: job(), pods: pods(newPod(scheduled(), exits(cluster.ContainerBenchmark, 3, "Error", ""))), now: 30,
			want: "running: the benchmark ended (exit code 3); collecting the rest of its output",
		},
		"a job that is complete has succeeded": {
			job: job(complete(20)), pods: pods(newPod(ended(corev1.PodSucceeded), exits(cluster.ContainerBenchmark, 0, "Completed", ""))), now: 21,
			want: "succeeded: the benchmark finished (exit code 0)",
		},
		"a job that is complete and has no pod any more has succeeded": {
			job: job(complete(20)), now: 21,
			want: "succeeded: the benchmark finished (exit code 0)",
		},
		"a job that is complete while its benchmark failed has not": {
			job: job(complete(20)), pods: pods(newPod(exits(cluster.ContainerBenchmark, 3, "Error", ""))), now: 21,
			want: "failed user NonZeroExit: the benchmark ended with exit code 3",
		},
		"an exit code is the user's": {
			job: job(failed(20, "BackoffLimitExceeded")), pods: pods(newPod(ended(corev1.PodFailed), exits(cluster.ContainerBenchmark, 3, "Error", "Traceback\nValueError: no\n"))),
			want: "failed user NonZeroExit: the benchmark ended with exit code 3: ValueError: no",
		},
		"a command that does not exist is told in the wrapper's words": {
			job: job(failed(20, "")), pods: pods(newPod(exits(cluster.ContainerBenchmark, 127, "Error", "exec /nope: no such file or directory"))),
			want: "failed user CommandNotFound: the benchmark's command was not found, or cannot be executed (exit code 127): exec /nope: no such file or directory",
		},
		"a command that cannot be executed": {
			job: job(failed(20, "")), pods: pods(newPod(exits(cluster.ContainerBenchmark, 126, "Error", ""))),
			want: "failed user CommandNotFound: the benchmark's command was not found, or cannot be executed (exit code 126)",
		},
		"an entrypoint that the runtime cannot start": {
			job: job(failed(20, "")), pods: pods(newPod(exits(cluster.ContainerBenchmark, 128, "StartError", `exec: "x": not found`))),
			want: `failed user CommandNotFound: the benchmark's command was not found, or cannot be executed (exit code 128): exec: "x": not found`,
		},
		"a signal": {
			job: job(failed(20, "")), pods: pods(newPod(exits(cluster.ContainerBenchmark, 137, "Error", ""))),
			want: "failed user Signaled: the benchmark was ended by signal 9 SIGKILL (exit code 137)",
		},
		"a signal that few know": {
			job: job(failed(20, "")), pods: pods(newPod(exits(cluster.ContainerBenchmark, 128+35, "Error", ""))),
			want: "failed user Signaled: the benchmark was ended by signal 35 (exit code 163)",
		},
		"an exit code beyond the signals": {
			job: job(failed(20, "")), pods: pods(newPod(exits(cluster.ContainerBenchmark, 255, "Error", ""))),
			want: "failed user NonZeroExit: the benchmark ended with exit code 255",
		},
		"too little memory is the user's, with the limit": {
			job: job(failed(20, "")), pods: pods(newPod(limit("1Gi"), exits(cluster.ContainerBenchmark, 137, "OOMKilled", ""))),
			want: "failed user OOMKilled: the benchmark ran out of memory (OOM), 1Gi (hardware.memory)",
		},
		"a deadline that passed is nobody's failure, whatever the exit code": {
			job: job(failed(20, "DeadlineExceeded"), deadline(60)), pods: pods(newPod(exits(cluster.ContainerBenchmark, 143, "Error", ""))),
			want: "failed timeout DeadlineExceeded: timed out after 1m (limits.deadline)",
		},
		"a deadline that passed while the pod was waiting": {
			job:  job(failed(20, "DeadlineExceeded")),
			want: "failed timeout DeadlineExceeded: timed out (limits.deadline)",
		},
		"a job that is to fail has not until its pods have ended": {
			job: job(target(20, "DeadlineExceeded")), pods: pods(newPod(scheduled(), runs(cluster.ContainerBenchmark, 3))), now: 30,
			want: "running: running the benchmark",
		},
		"a job that is to fail and whose pods have ended has failed": {
			job: job(target(20, "DeadlineExceeded")), pods: pods(newPod(ended(corev1.PodFailed))), now: 30,
			want: "failed timeout DeadlineExceeded: timed out (limits.deadline)",
		},
		"a pod that the platform ended when it was stopped is the platform's, whatever the exit code": {
			job: job(failed(20, "BackoffLimitExceeded")), pods: pods(newPod(reason("PlatformStopped", "x"), exits(cluster.ContainerBenchmark, 143, "Error", ""))),
			want: "failed platform PlatformStopped: the platform was stopped and ended this benchmark (with --keep-pods benchmarks go on)",
		},
		"a pod that failed before the platform was stopped is what failed": {
			job: job(failed(20, "BackoffLimitExceeded")), pods: pods(
				newPod(ended(corev1.PodFailed), exitsAt(3, 7)),
				newPod(reason("PlatformStopped", "x"), exitsAt(9, 143))), now: 21,
			want: "failed user NonZeroExit: the benchmark ended with exit code 7",
		},
		"a pod that was preempted is the cluster's, whatever the exit code": {
			job: job(failed(20, "")), pods: pods(newPod(disrupted("PreemptionByScheduler", "for p"), exits(cluster.ContainerBenchmark, 143, "Error", ""))),
			want: "failed infra Preempted: its pod had to leave node n1: PreemptionByScheduler: for p",
		},
		"a pod that was evicted by the API": {
			job: job(failed(20, "")), pods: pods(newPod(disrupted("EvictionByEvictionAPI", "drain"), exits(cluster.ContainerBenchmark, 143, "Error", ""))),
			want: "failed infra Evicted: its pod had to leave node n1: EvictionByEvictionAPI: drain",
		},
		"a pod whose node was lost": {
			job: job(failed(20, "")), pods: pods(newPod(disrupted("DeletionByTaintManager", "unreachable"))),
			want: "failed infra NodeLost: its pod had to leave node n1, which is lost or drained: DeletionByTaintManager: unreachable",
		},
		"a pod whose node does not even say that it went": {
			job: job(), pods: pods(newPod(deleting(20), disrupted("DeletionByTaintManager", "unreachable"), runs(cluster.ContainerBenchmark, 3))), now: 30,
			want: "failed infra NodeLost: its pod had to leave node n1, which is lost or drained: DeletionByTaintManager: unreachable",
		},
		"a pod that is told to leave is given its time": {
			job: job(), pods: pods(newPod(deleting(40), disrupted("EvictionByEvictionAPI", "drain"), runs(cluster.ContainerBenchmark, 3))), now: 30,
			want: "running: running the benchmark",
		},
		"a pod that was evicted and is gone was seen before": {
			job: job(failed(20, "BackoffLimitExceeded")), before: cluster.Snapshot{Pods: pods(newPod(disrupted("EvictionByEvictionAPI", "drain")))},
			want: "failed infra Evicted: its pod had to leave node n1: EvictionByEvictionAPI: drain",
		},
		"a pod that was evicted because its node was full": {
			job: job(failed(20, "")), pods: pods(newPod(reason("Evicted", "The node was low on resource: memory. Threshold exceeded."))),
			want: "failed infra Evicted: node n1 does not keep its pod: Evicted: The node was low on resource: memory. Threshold exceeded.",
		},
		"a pod that was evicted because it filled its disk is the user's": {
			job: job(failed(20, "")), pods: pods(newPod(disrupted("TerminationByKubelet", "x"), reason("Evicted", `Usage of EmptyDir volume "data" exceeds the limit "1Gi".`))),
			want: `failed user Evicted: its pod used more disk than its limit: Usage of EmptyDir volume "data" exceeds the limit "1Gi".`,
		},
		"a node that shut down": {
			job: job(failed(20, "")), pods: pods(newPod(reason("Terminated", "Pod was terminated in response to imminent node shutdown."))),
			want: "failed infra NodeLost: node n1 does not keep its pod: Terminated: Pod was terminated in response to imminent node shutdown.",
		},
		"a node that has no room after all": {
			job: job(failed(20, "")), pods: pods(newPod(reason("OutOfcpu", "no"))),
			want: "failed infra Evicted: node n1 does not keep its pod: OutOfcpu: no",
		},
		"a node where a port is taken after all": {
			job: job(failed(20, "")), pods: pods(newPod(reason("NodePorts", "node(s) didn't have free ports"))),
			want: "failed infra Evicted: node n1 does not keep its pod: NodePorts: node(s) didn't have free ports",
		},
		"a link that does not take an MTU is the user's": {
			job: job(failed(20, "")), pods: pods(newPod(exits(cluster.ContainerMTU, 1, "Error", "set the MTU of eth0 to 9000 (it is 1500): invalid argument"))),
			want: "failed user InitFailed: network.mtu could not be set: set the MTU of eth0 to 9000 (it is 1500): invalid argument (exit code 1)",
		},
		"data that could not be brought are the cluster's": {
			job: job(failed(20, "")), pods: pods(newPod(exits(cluster.ContainerPull, pod.PullInfra, "Error", "GET x: connection refused"))),
			want: "failed infra PullFailed: its data sets could not be copied to the machine: GET x: connection refused (exit code 75)",
		},
		"data that cannot be used are the user's": {
			job: job(failed(20, "")), pods: pods(newPod(exits(cluster.ContainerPull, pod.PullUser, "Error", "not an archive"))),
			want: "failed user PullFailed: its data sets could not be copied to the machine: not an archive (exit code 65)",
		},
		"what prepares the pod is the platform's": {
			job: job(failed(20, "")), pods: pods(newPod(exits(cluster.ContainerInstall, 1, "Error", "no space"))),
			want: "failed platform InitFailed: its pod could not be prepared: container bai-install: no space (exit code 1)",
		},
		"a collector that failed where nothing else did is the platform's": {
			job: job(failed(20, "")), pods: pods(newPod(exits(cluster.ContainerBenchmark, 0, "Completed", ""), exits(cluster.ContainerCollect, 2, "Error", "panic"))),
			want: "failed platform SidecarFailed: the collector of its output failed: panic (exit code 2)",
		},
		"a job that failed for no reason that anybody knows is told in the cluster's words": {
			job:  job(failed(20, "BackoffLimitExceeded")),
			want: "failed infra JobDisappeared: its job failed: BackoffLimitExceeded: too often; its pod is gone",
		},
		"a canceled run is canceling while anything of it is there": {
			job: job(jobDeleting(5), failed(20, "")), pods: pods(newPod(exits(cluster.ContainerBenchmark, 143, "Error", ""))), canceled: true,
			want: "canceling: waiting until its objects are deleted",
		},
		"a canceled run that answers TERM with exit code 0 is canceling": {
			job: job(jobDeleting(5), complete(20)), pods: pods(newPod(ended(corev1.PodSucceeded), exitsAt(6, 0))), canceled: true,
			want: "canceling: waiting until its objects are deleted",
		},
		"and canceled, once it is gone": {
			gone: 21, now: 21, canceled: true,
			before: cluster.Snapshot{Job: job(jobDeleting(5), complete(20)), Pods: pods(newPod(ended(corev1.PodSucceeded), exitsAt(6, 0)))},
			want:   "canceled CanceledByUser: canceled; its objects are deleted",
		},
		"what ends in the second of its deletion is canceled": {
			gone: 21, now: 21, canceled: true,
			before: cluster.Snapshot{Job: job(jobDeleting(5)), Pods: pods(newPod(exitsAt(5, 0)))},
			want:   "canceled CanceledByUser: canceled; its objects are deleted",
		},
		"what the kubelet cannot find any more, at a time that it does not tell, is canceled": {
			gone: 21, now: 21, canceled: true,
			before: cluster.Snapshot{Job: job(jobDeleting(5)), Pods: pods(newPod(containerNotFound()))},
			want:   "canceled CanceledByUser: canceled; its objects are deleted",
		},
		"what answers TERM with an exit code of its own is canceled": {
			gone: 21, now: 21, canceled: true,
			before: cluster.Snapshot{Job: job(jobDeleting(5), failed(20, "")), Pods: pods(newPod(exitsAt(6, 3)))},
			want:   "canceled CanceledByUser: canceled; its objects are deleted",
		},
		"a canceled run whose benchmark ended well before the deletion has succeeded": {
			gone: 21, now: 21, canceled: true,
			before: cluster.Snapshot{Job: job(jobDeleting(9)), Pods: pods(newPod(exitsAt(5, 0)))},
			want:   "succeeded: the benchmark finished (exit code 0)",
		},
		"a canceled run whose benchmark failed before the deletion has failed": {
			gone: 21, now: 21, canceled: true,
			before: cluster.Snapshot{Job: job(jobDeleting(9)), Pods: pods(newPod(exitsAt(5, 3)))},
			want:   "failed user NonZeroExit: the benchmark ended with exit code 3",
		},
		"a canceled run whose job failed before the deletion has failed": {
			job: job(jobDeleting(30), failed(20, "")), pods: pods(newPod(exitsAt(5, 3))), now: 31, canceled: true,
			want: "failed user NonZeroExit: the benchmark ended with exit code 3",
		},
		"a canceled run whose deadline passed before the deletion timed out": {
			job: job(jobDeleting(30), failed(20, "DeadlineExceeded")), pods: pods(newPod(exitsAt(19, 143))), now: 31, canceled: true,
			want: "failed timeout DeadlineExceeded: timed out (limits.deadline)",
		},
		"a pod without its job tells when it was deleted, by its grace": {
			gone: 21, now: 21, canceled: true,
			before: cluster.Snapshot{Pods: pods(newPod(deleting(35), grace(30), exitsAt(6, 0)))},
			want:   "canceled CanceledByUser: canceled; its objects are deleted",
		},
		"a canceled run that ended well before anybody deleted it ended well": {
			job: job(complete(20)), canceled: true,
			want: "succeeded: the benchmark finished (exit code 0)",
		},
		"a canceled run whose job is gone is canceling while a pod is there": {
			pods: pods(newPod(runs(cluster.ContainerBenchmark, 3))), canceled: true,
			want: "canceling: waiting until its objects are deleted",
		},
		"a canceled run whose pod is told to end has its grace": {
			job: job(), pods: pods(newPod(runs(cluster.ContainerBenchmark, 3), deleting(20))), canceled: true, now: 22,
			want: "canceling: waiting until its objects are deleted",
		},
		"a canceled run whose node does not say that its pod ended is told which": {
			job: job(), pods: pods(newPod(runs(cluster.ContainerBenchmark, 3), deleting(20))), canceled: true, now: 31,
			want: "canceling NodeLost: waiting for node n1 to report the end of the benchmark",
		},
		"a canceled run is canceled once it is gone": {
			gone: 1, now: 1, canceled: true,
			want: "canceled CanceledByUser: canceled; its objects are deleted",
		},
		"a job that is gone for a moment may come back": {
			gone: 10, now: 12,
			want: "",
		},
		"a job that is gone has disappeared": {
			gone: 10, now: 13,
			want: "failed infra JobDisappeared: its job was deleted from outside the platform",
		},
		"a job that was seen being deleted was deleted": {
			gone: 10, now: 13, before: cluster.Snapshot{Job: job(jobDeleting(5))},
			want: "failed infra JobDeleted: its job was deleted from outside the platform",
		},
		"a job that went before its pods was deleted": {
			gone: 10, now: 13, before: cluster.Snapshot{Pods: pods(newPod(scheduled()))},
			want: "failed infra JobDeleted: its job was deleted from outside the platform",
		},
		"a job that somebody deletes is not canceled": {
			job: job(jobDeleting(5)), pods: pods(newPod(runs(cluster.ContainerBenchmark, 3))), now: 6,
			want: "running JobDeleted: its job is being deleted from outside the platform",
		},
		"a pod without its job is being deleted": {
			pods: pods(newPod(scheduled())), now: 6,
			want: "pending JobDeleted: its job is being deleted from outside the platform",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := verdict.Observation{
				Seen: cluster.Snapshot{Job: tt.job, Pods: tt.pods, Events: tt.events}, LastSeen: tt.before, Canceled: tt.canceled,
				Now: at(tt.now).Time, PendingDeadline: 10 * time.Minute, Grace: 3 * time.Second,
			}
			if tt.gone > 0 {
				s.GoneSince = at(tt.gone).Time
			}
			if diff := cmp.Diff(tt.want, verdictLine(verdict.Decide(s))); diff != "" {
				t.Errorf("Decide (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhenToLookAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		observation verdict.Observation
		want        metav1.Time
	}{
		"at the end of the pending deadline": {
			verdict.Observation{Seen: cluster.Snapshot{Job: job(), Pods: pods(newPod(unscheduled("full")))}, Now: at(600).Time}, at(602),
		},
		"before, as other runs come and go": {
			verdict.Observation{Seen: cluster.Snapshot{Job: job(), Pods: pods(newPod(unscheduled("full")))}, Now: at(30).Time}, at(35),
		},
		"at the end of the grace": {
			verdict.Observation{GoneSince: at(10).Time, Now: at(11).Time}, at(13),
		},
		"once a state has lasted": {
			verdict.Observation{Seen: cluster.Snapshot{Job: job(), Pods: pods(newPod(scheduled()))}, Now: at(1).Add(time.Millisecond)},
			metav1.NewTime(at(1).Add(250 * time.Millisecond)),
		},
		"at the end of the pending deadline of what is being prepared": {
			verdict.Observation{Seen: cluster.Snapshot{Job: job(), Pods: pods(newPod(scheduled()))}, Now: at(30).Time}, at(601),
		},
		"when an autoscaler's word is not good any more": {
			verdict.Observation{Seen: cluster.Snapshot{Job: job(), Pods: pods(newPod(unscheduled("full"))), Events: []corev1.Event{scaler(20, "Nominated", "n2")}}, Now: at(30).Time}, at(1220),
		},
		"not at all while the benchmark runs": {
			verdict.Observation{Seen: cluster.Snapshot{Job: job(), Pods: pods(newPod(runs(cluster.ContainerBenchmark, 1)))}, Now: at(30).Time}, metav1.Time{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tt.observation.PendingDeadline, tt.observation.Grace = 10*time.Minute, 3*time.Second
			if got := verdict.Decide(tt.observation).RecheckAt; !got.Equal(tt.want.Time) {
				t.Errorf("again at %s, want %s", got, tt.want)
			}
		})
	}
}

// TestStatusesAreFacts: the same state gives an event with the same ID each time; another state gives another; its time is the cluster's.
func TestStatusesAreFacts(t *testing.T) {
	launched := event.Launched{Header: event.NewHeader("l", "r1", "pets", "ann", at(0).Time), Job: "bai-r1-1"}
	headerOf := func(message string, now int) event.Header {
		s := verdict.Observation{Seen: cluster.Snapshot{Job: job(), Pods: pods(newPod(unscheduled(message)))}, Now: at(now).Time, PendingDeadline: time.Hour}
		return verdict.EventsFor(launched, verdict.Decide(s), s)[0].Head()
	}
	first, again, other := headerOf("full", 3), headerOf("full", 30), headerOf("fuller", 30)
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("one state, two facts:\n%s", diff)
	}
	if first.ID == other.ID {
		t.Error("two states, one fact")
	}
	if !first.Time.Equal(at(2).Time) {
		t.Errorf("time %s, want that of the pod's condition, %s", first.Time, at(2))
	}
}
