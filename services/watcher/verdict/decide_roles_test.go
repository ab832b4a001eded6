package verdict_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/watcher/verdict"
)

func role(name string) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Labels = map[string]string{cluster.LabelRole: name} }
}

// podOfRole returns a pod of a role.
func podOfRole(name string, with ...func(*corev1.Pod)) corev1.Pod {
	p := newPod(with...)
	p.Name, p.Labels = name, map[string]string{cluster.LabelRole: name, batchv1.JobNameLabel: "bai-r1-1-" + name}
	return p
}

// workers returns the job of n workers.
func workers(n int32, with ...func(*batchv1.Job)) []batchv1.Job {
	j := job(append(with, role("worker"))...)
	j.Name, j.UID, j.Spec.Parallelism = "bai-r1-1-worker", "other-uid", &n
	return []batchv1.Job{*j}
}

// ofContainer has events be about a container of their pod.
func ofContainer(name string, events []corev1.Event) []corev1.Event {
	for i := range events {
		events[i].InvolvedObject.FieldPath = "spec.containers{" + name + "}"
	}
	return events
}

// warningAbout is a warning about a pod, of a time.
func warningAbout(when int, about, reason, message string) []corev1.Event {
	e := clusterMessage(when, reason, message, about)
	e[0].Type = corev1.EventTypeWarning
	return e
}

// workerPod returns a worker's pod.
func workerPod(index string, with ...func(*corev1.Pod)) corev1.Pod {
	p := podOfRole("worker", with...)
	p.Name, p.Annotations = "worker-"+index, map[string]string{batchv1.JobCompletionIndexAnnotation: index}
	p.Spec.NodeName = "n" + index
	return p
}

// exitsAt is how a pod's benchmark ended, and when.
func exitsAt(when int, code int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		exits(cluster.ContainerBenchmark, code, "", "")(p)
		p.Status.ContainerStatuses[0].State.Terminated.FinishedAt = at(when)
	}
}

func scaler(when int, reason, message string) corev1.Event {
	return corev1.Event{
		InvolvedObject: corev1.ObjectReference{Name: "pod-0"}, Reason: reason, Message: message, LastTimestamp: at(when),
	}
}

func TestAServerMustBeReadyWithinThePendingDeadlineOfItsDescriptor(t *testing.T) {
	client := job(role("client"))
	asks := func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: cluster.ContainerWait, Args: []string{"--within=30m0s", "http://server:8080/ping"}}}
	}
	waits := podOfRole("client", asks, scheduled(), runs(cluster.ContainerWait, 3))
	for name, tt := range map[string]struct {
		server   corev1.Pod
		deadline time.Duration
		now      int
		want     string
		again    int // seconds; zero for never
	}{
		"it has its time": {
			server: podOfRole("server", runs(cluster.ContainerBenchmark, 5)), deadline: 6 * time.Second, now: 10,
			want: "pending: waiting until its other pods are ready", again: 11,
		},
		"which begins when all of them run": {
			server: podOfRole("server", runs(cluster.ContainerBenchmark, 5)), deadline: 6 * time.Second, now: 11,
			want: "failed user NotReady: http://server:8080/ping did not answer within limits.pending_deadline, 6s",
		},
		"a server whose data are pulled is waited for": {
			server: podOfRole("server", scheduled(), runs(cluster.ContainerPull, 2)), deadline: 6 * time.Second, now: 3000,
			want: "pending: waiting until its other pods are ready",
		},
		"without a time of its own the client decides": {
			server: podOfRole("server", runs(cluster.ContainerBenchmark, 5)), now: 3000,
			want: "pending: waiting until its other pods are ready",
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := verdict.Decide(verdict.Observation{
				Seen: cluster.Snapshot{Job: client, Pods: pods(tt.server, waits)}, Now: at(tt.now).Time,
				PendingDeadline: time.Hour, ReadyDeadline: tt.deadline, Grace: time.Second,
			})
			if diff := cmp.Diff(tt.want, verdictLine(v)); diff != "" {
				t.Errorf("Decide (-want +got):\n%s", diff)
			}
			if tt.again > 0 && !v.RecheckAt.Equal(at(tt.again).Time) {
				t.Errorf("again at %s, want %s", v.RecheckAt, at(tt.again))
			}
		})
	}
}

func TestDecideOfSeveralRoles(t *testing.T) {
	client, launcher, serves := role("client"), role("launcher"), podOfRole("server", runs(cluster.ContainerBenchmark, 2))
	for name, tt := range map[string]struct {
		job    *batchv1.Job
		pods   []corev1.Pod
		events []corev1.Event
		now    int
		want   string

		others   []batchv1.Job
		canceled bool
	}{
		"a client that waits for its server does not run yet": {
			job: job(client), pods: pods(serves, podOfRole("client", scheduled(), runs(cluster.ContainerWait, 3))), now: 30,
			want: "pending: waiting until its other pods are ready",
		},
		"a client that runs": {
			job: job(client), pods: pods(serves, podOfRole("client", runs(cluster.ContainerBenchmark, 5))), now: 30,
			want: "running: running the benchmark",
		},
		"a server that dies fails the run at once, with its reason": {
			job: job(client), pods: pods(podOfRole("server", exitsAt(10, 3)), podOfRole("client", runs(cluster.ContainerBenchmark, 5))), now: 30,
			want: "failed user NonZeroExit: the server on n1 ended with exit code 3",
		},
		"a server that dies while its client waits does too": {
			job: job(client), pods: pods(podOfRole("server", exitsAt(10, 137)), podOfRole("client", runs(cluster.ContainerWait, 3))), now: 30,
			want: "failed user Signaled: the server on n1 was ended by signal 9 SIGKILL (exit code 137)",
		},
		"a server that ends well, but before its client, fails the run": {
			job: job(client), pods: pods(podOfRole("server", exitsAt(10, 0)), podOfRole("client", runs(cluster.ContainerBenchmark, 5))), now: 30,
			want: "failed user EndedEarly: the server on n1 has ended before the benchmark did",
		},
		"a server whose data cannot be had fails the run": {
			job: job(client), pods: pods(podOfRole("server", ended(corev1.PodFailed), exits(cluster.ContainerPull, 75, "", "no store")), podOfRole("client", runs(cluster.ContainerWait, 3))), now: 30,
			want: "failed infra PullFailed: its data sets could not be copied to the machine: no store (exit code 75)",
		},
		"a server whose node is lost is nobody's fault": {
			job: job(client), pods: pods(podOfRole("server", ended(corev1.PodFailed), disrupted("DeletionByTaintManager", "gone")), podOfRole("client", runs(cluster.ContainerBenchmark, 3))), now: 30,
			want: "failed infra NodeLost: its pod had to leave node n1, which is lost or drained: DeletionByTaintManager: gone",
		},
		"a server that somebody deletes is not its user's fault": {
			job: job(client), pods: pods(podOfRole("server", deleting(9), exitsAt(10, 143)), podOfRole("client", runs(cluster.ContainerBenchmark, 3))), now: 30,
			want: "failed infra JobDeleted: somebody deleted the server on n1, and it was not canceled",
		},
		"of workers that are deleted the first is meant, though the other has ended and has no grace left": {
			job: job(launcher), pods: pods(workerPod("0", deleting(7), grace(0), exitsAt(8, 0), ended(corev1.PodSucceeded)), workerPod("1", deleting(3605), grace(3600), exitsAt(8, 0)), podOfRole("launcher", runs(cluster.ContainerBenchmark, 5))), now: 30,
			want: "failed infra JobDeleted: somebody deleted the worker 1 on n1, and it was not canceled",
		},
		"of workers that are deleted one that has ended since may be the first, because its deletion has the time of its end": {
			job: job(launcher), pods: pods(workerPod("0", deleting(9), grace(4)), workerPod("1", deleting(8), grace(0), exitsAt(8, 255), ended(corev1.PodFailed))), now: 30,
			want: "failed infra JobDeleted: somebody deleted the worker 0 on n0 or the worker 1 on n1, and it was not canceled",
		},
		"nor does it matter once the run is canceled": {
			job: job(client), pods: pods(podOfRole("server", deleting(9), exitsAt(10, 143)), podOfRole("client", runs(cluster.ContainerBenchmark, 3))), now: 30, canceled: true,
			want: "canceling: waiting until its objects are deleted",
		},
		"what ends with the client that has ended well has not failed": {
			job: job(client, complete(9)), pods: pods(podOfRole("server", exitsAt(10, 143)), podOfRole("client", exitsAt(9, 0))), now: 30,
			want: "succeeded: the benchmark finished (exit code 0)",
		},
		"a client that fails after its server is not the cause": {
			job: job(client, failed(11, "")), pods: pods(podOfRole("server", exitsAt(8, 1)), podOfRole("client", exitsAt(10, 2))), now: 30,
			want: "failed user NonZeroExit: the server on n1 ended with exit code 1",
		},
		"a server that is ended after its client failed is not the cause": {
			job: job(client, failed(11, "")), pods: pods(podOfRole("server", exitsAt(12, 143)), podOfRole("client", exitsAt(10, 2))), now: 30,
			want: "failed user NonZeroExit: the client on n1 ended with exit code 2",
		},
		"a server that is not ready in time is the user's fault": {
			job: job(client, failed(11, "")), pods: pods(serves, podOfRole("client", ended(corev1.PodFailed), exits(cluster.ContainerWait, 1, "Error", "bai-pod: 1 of 1 did not answer"))), now: 30,
			want: "failed user NotReady: another pod of the run was not ready in time: bai-pod: 1 of 1 did not answer (exit code 1)",
		},
		"of several workers the first to fail is the cause, and named": {
			job: job(launcher), pods: pods(workerPod("0", exitsAt(9, 2)), workerPod("1", exitsAt(8, 1)), podOfRole("launcher", runs(cluster.ContainerBenchmark, 5))), now: 30,
			want: "failed user NonZeroExit: the worker 1 on n1 ended with exit code 1",
		},
		"the rank that failed first is what mpirun says": {
			job: job(launcher, failed(11, "")), pods: pods(workerPod("0", runs(cluster.ContainerBenchmark, 2)), podOfRole("launcher", exits(cluster.ContainerBenchmark, 9, "Error",
				"mpirun noticed that process rank 3 with PID 0 on node w-1 exited on signal 9 (Killed).\n----"))), now: 30,
			want: "failed user NonZeroExit: the launcher on n1 ended with exit code 9: mpirun noticed that process rank 3 with PID 0 on node w-1 exited on signal 9 (Killed).; rank 3 on w-1 failed first",
		},
		"a program that mpirun cannot start is named": {
			job: job(launcher, failed(11, "")), pods: pods(workerPod("0", runs(cluster.ContainerBenchmark, 2)), podOfRole("launcher", exits(cluster.ContainerBenchmark, 134, "Error", recordedMPI(t, "openmpi-4-not-found")))), now: 30,
			want: `failed user CommandNotFound: the launcher on n1 could not start "nosuchprog" on vm: mpirun did not find it, or may not execute it (exit code 134)`,
		},
		"what the program says is told, not the frame that mpirun puts below": {
			job: job(launcher, failed(11, "")), pods: pods(workerPod("0", runs(cluster.ContainerBenchmark, 2)), podOfRole("launcher", exits(cluster.ContainerBenchmark, 1, "Error",
				"ModuleNotFoundError: No module named 'mpi4py'\n"+strings.Repeat("-", 74)+"\nPrimary job  terminated normally, but 1 process returned\na non-zero exit code.\n"+strings.Repeat("-", 74)+"\n  Process name: [[5463,1],1]\n  Exit code:    1\n"+strings.Repeat("-", 74)))), now: 30,
			want: "failed user NonZeroExit: the launcher on n1 ended with exit code 1: ModuleNotFoundError: No module named 'mpi4py'; rank 1 failed first",
		},
		"some pods of a gang that have no node are counted": {
			job: job(launcher), pods: pods(workerPod("0", scheduled()), workerPod("1", unscheduled("0/2 nodes are available")), podOfRole("launcher", unscheduled("x"))), now: 30,
			want: "pending Unschedulable: no node can take 2 of its 3 pods: Unschedulable: 0/2 nodes are available",
		},
		"workers that the cluster refuses are said though the launcher is there": {
			job: job(launcher), others: workers(2), pods: pods(podOfRole("launcher", scheduled(), runs(cluster.ContainerWait, 3))), now: 30,
			events: events("bai-r1-1-worker", "FailedCreate", "exceeded quota: x"),
			want:   "pending LaunchRefused: the cluster refuses 2 of its 3 pods: exceeded quota: x",
		},
		"so is one of several": {
			job: job(launcher), others: workers(2), pods: pods(workerPod("0", scheduled()), podOfRole("launcher", scheduled(), runs(cluster.ContainerWait, 3))), now: 30,
			events: clusterMessage(5, "FailedCreate", "exceeded quota: x", "bai-r1-1-worker"),
			want:   "pending LaunchRefused: the cluster refuses 1 of its 3 pods: exceeded quota: x",
		},
		"workers that a policy keeps out end the run": {
			job: job(launcher), others: workers(2), pods: pods(podOfRole("launcher", scheduled(), runs(cluster.ContainerWait, 3))), now: 30,
			events: events("bai-r1-1-worker", "FailedCreate", `pods "x" is forbidden: violates PodSecurity`),
			want:   `failed user LaunchRefused: the cluster refuses 2 of its 3 pods: pods "x" is forbidden: violates PodSecurity`,
		},
		"workers that were refused and came are not": {
			job: job(launcher), others: workers(1), pods: pods(workerPod("0", scheduled()), podOfRole("launcher", scheduled(), runs(cluster.ContainerWait, 3))), now: 30,
			events: clusterMessage(5, "FailedCreate", "exceeded quota: x", "bai-r1-1-worker"),
			want:   "pending: waiting until its other pods are ready",
		},
		"a priority class that there is not is the platform's fault": {
			job: job(), now: 30, events: events("bai-r1-1", "FailedCreate", `pods "x" is forbidden: no PriorityClass with name fast was found`),
			want: `failed platform LaunchRefused: the cluster refuses its pod: pods "x" is forbidden: no PriorityClass with name fast was found`,
		},
		"workers whose job failed and whose pod is gone end the run": {
			job: job(launcher), others: workers(2, failed(20, "BackoffLimitExceeded")), pods: pods(workerPod("0", scheduled()), podOfRole("launcher", runs(cluster.ContainerBenchmark, 3))), now: 30,
			want: "failed infra JobDisappeared: the job of the worker failed: BackoffLimitExceeded: too often; its pod is gone",
		},
		"the pod of such a job may be heard of after it": {
			job: job(launcher), others: workers(2, failed(20, "BackoffLimitExceeded")), pods: pods(workerPod("0", scheduled()), podOfRole("launcher", runs(cluster.ContainerBenchmark, 3))), now: 21,
			want: "",
		},
		"workers whose time is up": {
			job: job(launcher), others: workers(1, failed(20, "DeadlineExceeded")), pods: pods(podOfRole("launcher", runs(cluster.ContainerBenchmark, 3))), now: 30,
			want: "failed timeout DeadlineExceeded: timed out (limits.deadline)",
		},
		"a server that says that it is not ready is told while its client waits": {
			job: job(client), pods: pods(podOfRole("server", scheduled(), runs(cluster.ContainerBenchmark, 2)), podOfRole("client", scheduled(), runs(cluster.ContainerWait, 3))), now: 30,
			events: warningAbout(9, "server", "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 500"),
			want:   "pending: waiting until its other pods are ready; the server on n1: Unhealthy: Readiness probe failed: HTTP probe failed with statuscode: 500",
		},
		"a job that the cluster's own queue holds back waits": {
			job: job(func(j *batchv1.Job) { yes := true; j.Spec.Suspend = &yes }), now: 30,
			want: "pending Unschedulable: waiting in the cluster's queue",
		},
		"a node that is being added is waited for": {
			job: job(), pods: pods(newPod(unscheduled("full"))), now: 30, events: []corev1.Event{scaler(20, "TriggeredScaleUp", "pool 1->2")},
			want: "pending NodeScaling: a node is being added for its pod: pool 1->2",
		},
		"the clock waits while an autoscaler adds a node": {
			job: job(), pods: pods(newPod(unscheduled("full"))), now: 1399, events: []corev1.Event{scaler(200, "TriggeredScaleUp", "pool 1->2")},
			want: "pending NodeScaling: a node is being added for its pod: pool 1->2",
		},
		"an autoscaler's word is good for a while": {
			job: job(), pods: pods(newPod(unscheduled("full"))), now: 1400, events: []corev1.Event{scaler(200, "TriggeredScaleUp", "pool 1->2")},
			want: "pending Unschedulable: no node can take its pod: Unschedulable: full",
		},
		"a node that never comes is not waited for without end": {
			job: job(), pods: pods(newPod(unscheduled("full"))), now: 1802, events: []corev1.Event{scaler(200, "TriggeredScaleUp", "pool 1->2")},
			want: "failed infra Unschedulable: no node can take its pod: Unschedulable: full; timed out after 10m0s",
		},
		"the clock goes on where an autoscaler gives up, whose words are told": {
			job: job(), pods: pods(newPod(unscheduled("full"))), now: 881,
			events: []corev1.Event{scaler(20, "TriggeredScaleUp", "pool 1->2"), scaler(300, "NotTriggerScaleUp", "max size")},
			want:   "pending Unschedulable: no node can take its pod: Unschedulable: full; the autoscaler adds none: max size",
		},
		"an autoscaler that gives up is believed": {
			job: job(), pods: pods(newPod(unscheduled("full"))), now: 882,
			events: []corev1.Event{scaler(20, "TriggeredScaleUp", "pool 1->2"), scaler(300, "NotTriggerScaleUp", "max size")},
			want:   "failed infra Unschedulable: no node can take its pod: Unschedulable: full; the autoscaler adds none: max size; timed out after 10m0s",
		},
		"an autoscaler that tries another pool is given its time again": {
			job: job(), pods: pods(newPod(unscheduled("full"))), now: 1200,
			events: []corev1.Event{scaler(20, "TriggeredScaleUp", "pool 1->2"), scaler(300, "FailedScaleUp", "no stock"), scaler(400, "TriggeredScaleUp", "other 0->1")},
			want:   "pending NodeScaling: a node is being added for its pod: other 0->1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := verdict.Observation{
				Seen: cluster.Snapshot{Job: tt.job, Others: tt.others, Pods: tt.pods, Events: tt.events}, Now: at(tt.now).Time, Canceled: tt.canceled,
				PendingDeadline: 10 * time.Minute, Grace: 3 * time.Second,
			}
			if diff := cmp.Diff(tt.want, verdictLine(verdict.Decide(s))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheEndOfARunIsThatOfItsLastRole(t *testing.T) {
	s := verdict.Observation{Seen: cluster.Snapshot{Job: job(role("client"), complete(10)), Pods: pods(podOfRole("server", exitsAt(12, 143)), podOfRole("client", exitsAt(9, 0)))}}
	got, ok := verdict.EventsFor(event.Launched{}, verdict.Verdict{Phase: event.PhaseFinished, Outcome: event.Succeeded}, s)[0].(event.Finished)
	if !ok || got.ExitCode == nil || *got.ExitCode != 0 || !got.Ended.Equal(at(9).Time) {
		t.Errorf("it ended as %+v", got)
	}
}

// recordedMPI returns the recorded last output of an mpirun.
func recordedMPI(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/mpi/" + name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAProgramThatMpirunCannotStartIsTheReason(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"openmpi-4-not-found":      `"nosuchprog" on vm: mpirun did not find it, or may not execute it`,
		"openmpi-4-not-accessible": `"/no/such/prog" on vm: mpirun did not find it, or may not execute it`,
		"openmpi-4-not-executable": `"./noexec" on vm: mpirun did not find it, or may not execute it`,
		"openmpi-5-not-found":      `"train me" on w-1.example.svc: mpirun did not find it, or may not execute it`,
		"mpich-not-found":          `"nosuchprog" on w-0.w: no such file or directory`,
		"intel-not-executable":     `"./noexec" on w-1: permission denied`,
		"mpich-without-proxy":      "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := podOfRole("launcher", exits(cluster.ContainerBenchmark, 134, "Error", recordedMPI(t, name)))
			got := verdict.Decide(verdict.Observation{Seen: cluster.Snapshot{Job: job(role("launcher"), failed(11, "")), Pods: pods(p)}, Now: metav1.Now().Time})
			if want == "" && got.Reason == event.CommandNotFound || want != "" && (got.Reason != event.CommandNotFound || got.Class != event.ClassUser || !strings.Contains(got.Message, " could not start "+want+" (exit code 134)")) {
				t.Errorf("%s %s: %s", got.Class, got.Reason, got.Message)
			}
		})
	}
}

func TestTheRankThatFailedFirst(t *testing.T) {
	for says, want := range map[string]string{
		"=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   RANK 2 PID 31 RUNNING AT w-0.w\n=   KILLED BY SIGNAL: 6":                                                 "rank 2 on w-0.w failed first",
		"=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 31 RUNNING AT w-0.w\n=   EXIT CODE: 3":                                                               "a process on w-0.w failed first",
		"prterun noticed that process rank 1 with PID 5 on node h exited on signal 11":                                                                                          "rank 1 on h failed first",
		"mpirun has exited due to process rank 3 with PID 0 on\nnode w-1 exiting improperly.":                                                                                   "rank 3 on w-1 failed first",
		"MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD\nwith errorcode 7.":                                                                                     "rank 2 failed first",
		"MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD\nwith errorcode 7.\n\nprterun has exited due to process rank 2 with PID 9 on node h exiting improperly": "rank 2 on h failed first",
		"application called MPI_Abort(MPI_COMM_WORLD, 7) - process 5":                                                                                                           "rank 5 failed first",
		"Process name: [[5463,1],2]\n  Exit code:    3":                                                                                                                         "rank 2 failed first",
		"Process name: [prterun-h-1@1,4] Exit code: 3":                                                                                                                          "rank 4 failed first",
		"rank 5 says hello": "",
	} {
		p := podOfRole("launcher", exits(cluster.ContainerBenchmark, 1, "Error", says))
		s := verdict.Observation{Seen: cluster.Snapshot{Job: job(role("launcher"), failed(11, "")), Pods: pods(p)}, Now: metav1.Now().Time}
		if got := verdict.Decide(s).Message; want == "" && strings.Contains(got, "failed first") || want != "" && !strings.HasSuffix(got, "; "+want) {
			t.Errorf("%q: %q, want %q", says, got, want)
		}
	}
}
