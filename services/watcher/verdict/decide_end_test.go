package verdict_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/watcher/verdict"
)

// roleJob returns the Job of a role of a descriptor; end is the value of its label.
func roleJob(name, end string, with ...func(*batchv1.Job)) batchv1.Job {
	j := job(append([]func(*batchv1.Job){role(name)}, with...)...)
	j.Name = "bai-r1-1-" + name
	if end != "" {
		j.Labels[cluster.LabelEnd] = end
	}
	return *j
}

// rolePod returns a pod of such a Job.
func rolePod(name, end, index string, with ...func(*corev1.Pod)) corev1.Pod {
	p := podOfRole(name, with...)
	p.Name, p.Annotations = name+"-"+index, map[string]string{batchv1.JobCompletionIndexAnnotation: index}
	if end != "" {
		p.Labels[cluster.LabelEnd] = end
	}
	return p
}

// The run of a load generator and an observer, whose end it waits for, a server, and a pod that prepares something. The main
// job is that of the observer.
func TestTheEndOfARunWithRoles(t *testing.T) {
	const awaited, free = cluster.EndAwaited, cluster.EndFree
	containerRuns, runs := runs, runs(cluster.ContainerBenchmark, 5)
	server, prepares := rolePod("server", "", "0", runs), rolePod("prepares", free, "0", runs)
	load, observer := rolePod("load", awaited, "0", runs), rolePod("observer", "", "0", runs)
	others := func(load ...func(*batchv1.Job)) []batchv1.Job {
		return []batchv1.Job{roleJob("load", awaited, load...), roleJob("prepares", free), roleJob("server", "")}
	}
	waitsForLoad := func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: cluster.ContainerWait, Args: []string{"--within=30m0s", "tcp://bai-r1-1-load-0.bai-r1-1-pods.default.svc:1"}}}
		containerRuns(cluster.ContainerWait, 3)(p)
	}
	for name, tt := range map[string]struct {
		job      *batchv1.Job
		others   []batchv1.Job
		pods     []corev1.Pod
		canceled bool
		want     string
	}{
		"all run": {
			pods: pods(server, prepares, load, observer), want: "running: running the benchmark",
		},
		"a pod that prepares something may end well": {
			pods: pods(server, rolePod("prepares", free, "0", exitsAt(10, 0)), load, observer), want: "running: running the benchmark",
		},
		"and may not fail": {
			pods: pods(server, rolePod("prepares", free, "0", exitsAt(10, 1)), load, observer),
			want: "failed user NonZeroExit: the prepares 0 on n1 ended with exit code 1",
		},
		"a server may not end": {
			pods: pods(rolePod("server", "", "1", exitsAt(10, 0)), prepares, load, observer),
			want: "failed user EndedEarly: the server 1 on n1 has ended before the benchmark did",
		},
		"the observer goes on after the load": {
			others: others(complete(10)), pods: pods(server, prepares, rolePod("load", awaited, "0", exitsAt(10, 0)), observer),
			want: "running: running the benchmark",
		},
		"the load goes on after the observer": {
			job: job(role("observer"), complete(10)), pods: pods(server, prepares, load, rolePod("observer", "", "0", exitsAt(10, 0))),
			want: "running: running the benchmark",
		},
		"the run ends with both of them": {
			job: job(role("observer"), complete(10)), others: others(complete(12)),
			pods: pods(server, prepares, rolePod("load", awaited, "0", exitsAt(12, 0)), rolePod("observer", "", "0", exitsAt(10, 0))),
			want: "succeeded: the benchmark finished (exit code 0)",
		},
		"a load that fails beside the observer ends the run at once": {
			pods: pods(server, prepares, rolePod("load", awaited, "2", exitsAt(12, 3)), observer),
			want: "failed user NonZeroExit: the load 2 on n1 ended with exit code 3",
		},
		"a load that fails after the observer ended well does, too": {
			job: job(role("observer"), complete(10)), pods: pods(server, prepares, rolePod("load", awaited, "0", exitsAt(12, 3)), rolePod("observer", "", "0", exitsAt(10, 0))),
			want: "failed user NonZeroExit: the load 0 on n1 ended with exit code 3",
		},
		"a run that is canceled between the two ends is canceled": {
			job: job(role("observer"), complete(10)), canceled: true,
			pods: pods(server, prepares, load, rolePod("observer", "", "0", exitsAt(10, 0))),
			want: "canceling: waiting until its objects are deleted",
		},
		"a load that ends before the observer found it ready fails the run": {
			others: others(complete(10)), pods: pods(server, prepares, rolePod("load", awaited, "0", exitsAt(10, 0)), rolePod("observer", "", "0", waitsForLoad)),
			want: "failed user EndedEarly: the load 0 on n1 has ended before the observer 0 on n1 found it ready",
		},
		"it may wait for another pod": {
			others: others(complete(10)), pods: pods(server, prepares, rolePod("load", awaited, "1", exitsAt(10, 0)), rolePod("observer", "", "0", scheduled(), waitsForLoad)),
			want: "running: the benchmark ended (exit code 0); collecting the rest of its output",
		},
		"an observer whose image never comes ends the run, whatever runs": {
			pods: pods(server, prepares, load, rolePod("observer", "", "0", scheduled(), waiting(cluster.ContainerBenchmark, "ImagePullBackOff", "not found"))),
			want: "failed user ImagePullBackOff: container benchmark cannot be started: ImagePullBackOff: not found; timed out after 10m0s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := verdict.Observation{
				Seen: cluster.Snapshot{Job: tt.job, Others: tt.others, Pods: tt.pods}, Now: at(700).Time, Canceled: tt.canceled,
				PendingDeadline: 10 * time.Minute, Grace: 3 * time.Second,
			}
			if s.Seen.Job == nil {
				s.Seen.Job = job(role("observer"))
			}
			if s.Seen.Others == nil {
				s.Seen.Others = others()
			}
			if diff := cmp.Diff(tt.want, verdictLine(verdict.Decide(s))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The observer waits for the load, which waits for the servers.
func TestTheRoleAtTheBeginningOfAChainIsNamed(t *testing.T) {
	waitsFor := func(targets ...string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: cluster.ContainerWait, Args: append([]string{"--within=30m0s"}, targets...)}}
			runs(cluster.ContainerWait, 3)(p)
		}
	}
	const network = ".bai-r1-1-pods.default.svc"
	server := rolePod("server", "", "0", runs(cluster.ContainerBenchmark, 5))
	load := rolePod("load", cluster.EndAwaited, "0", scheduled(), waitsFor("tcp://bai-r1-1-server-0"+network+":7", "tcp://bai-r1-1-server-1"+network+":7"))
	observer := rolePod("observer", "", "0", scheduled(), waitsFor("tcp://bai-r1-1-load-0"+network+":8"))
	for name, tt := range map[string]struct {
		now  int
		want string
	}{
		"while they wait":     {10, "pending: waiting until server 0 (port 7), server 1 (port 7) are ready"},
		"once it is too late": {12, "failed user NotReady: server 0 (port 7), server 1 (port 7) did not answer within limits.pending_deadline, 6s"},
	} {
		t.Run(name, func(t *testing.T) {
			s := verdict.Observation{
				Seen: cluster.Snapshot{
					Job: job(role("observer")), Others: []batchv1.Job{roleJob("load", cluster.EndAwaited), roleJob("server", "")},
					Pods: pods(server, observer, load),
				},
				Now: at(tt.now).Time, PendingDeadline: time.Hour, ReadyDeadline: 6 * time.Second, Grace: time.Second,
			}
			if diff := cmp.Diff(tt.want, verdictLine(verdict.Decide(s))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheRoleThatIsNeverReadyIsNamed(t *testing.T) {
	for target, want := range map[string]string{
		"tcp://bai-r1-1-server-0.bai-r1-1-pods.default.svc:5201":   "server 0 (port 5201)",
		"http://bai-r1-1-server-1.bai-r1-1-pods.default.svc:80/x":  "server 1 (port 80, /x)",
		"tcp://bai-r1-1-server-12.bai-r1-1-pods.default.svc:2223":  "server 12 (by its file or its log)",
		"tcp://bai-r1-1-0.bai-r1-1-pods.default.svc:1":             "client 0 (port 1)",
		"http://bai-r1-1-server.default.svc:8080/ping":             "http://bai-r1-1-server.default.svc:8080/ping",
		"tcp://bai-r1-1-server-next-0.bai-r1-1-pods.default.svc:1": "tcp://bai-r1-1-server-next-0.bai-r1-1-pods.default.svc:1",
	} {
		asks := func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: cluster.ContainerWait, Args: []string{"--within=30m0s", target}}}
		}
		s := verdict.Observation{
			Seen: cluster.Snapshot{
				Job: job(role("client")), Others: []batchv1.Job{roleJob("server", "")},
				Pods: pods(rolePod("server", "", "0", runs(cluster.ContainerBenchmark, 5)), rolePod("client", "", "0", asks, scheduled(), runs(cluster.ContainerWait, 3))),
			},
			Now: at(11).Time, PendingDeadline: time.Hour, ReadyDeadline: 6 * time.Second, Grace: time.Second,
		}
		want = "failed user NotReady: " + want + " did not answer within limits.pending_deadline, 6s"
		if diff := cmp.Diff(want, verdictLine(verdict.Decide(s))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
