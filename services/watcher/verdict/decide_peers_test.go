package verdict_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/watcher/verdict"
)

// peerPod returns a pod of a run of two, whose pods wait for each other's addresses.
func peerPod(role string, with ...func(*corev1.Pod)) corev1.Pod {
	p := podOfRole(role, with...)
	p.Annotations = map[string]string{cluster.AnnotationPods: "2"}
	return p
}

func reachable(p *corev1.Pod) { p.Status.PodIPs = []corev1.PodIP{{IP: "10.1.0.1"}} }

func TestPodsWaitForEachOthersAddresses(t *testing.T) {
	t.Parallel()
	waits, late := runs(cluster.ContainerHosts, 3), runs(cluster.ContainerHosts, 30)
	for name, tt := range map[string]struct {
		pods  []corev1.Pod
		now   int
		want  string
		again int // seconds; zero for never
	}{
		"which takes a moment": {
			pods: pods(peerPod("client", scheduled(), waits, reachable), peerPod("server", scheduled(), waits, reachable)), now: 3, want: "", again: 4,
		},
		"which the run says if it takes longer": {
			pods: pods(peerPod("client", scheduled(), waits, reachable), peerPod("server", scheduled(), waits)), now: 5,
			want: "pending: waiting for the addresses of 1 of its 2 pods", again: 63,
		},
		"the wait begins with the last pod": {
			pods: pods(peerPod("client", scheduled(), waits, reachable), peerPod("server", scheduled(), late)), now: 80,
			want: "pending: waiting for the addresses of 1 of its 2 pods", again: 90,
		},
		"and ends with the pending deadline": {
			pods: pods(peerPod("client", scheduled(), waits, reachable), peerPod("server", scheduled(), waits)), now: 63,
			want: "failed infra PendingTooLong: waiting for the addresses of 1 of its 2 pods; timed out after 1m0s",
		},
		"the platform is at fault if it has not shared those that there are": {
			pods: pods(peerPod("client", scheduled(), waits, reachable), peerPod("server", scheduled(), waits, reachable)), now: 63,
			want: "failed platform PendingTooLong: waiting until its 2 pods know each other's addresses; timed out after 1m0s",
		},
		"a pod whose data are pulled is waited for": {
			pods: pods(peerPod("client", scheduled(), waits, reachable), peerPod("server", scheduled(), runs(cluster.ContainerPull, 3))), now: 3000,
			want: "pending: copying its data sets to the machine",
		},
		"a pod without a node is what the run waits for": {
			pods: pods(peerPod("client", scheduled(), waits, reachable), peerPod("server", unscheduled("0/2 nodes are available: Insufficient cpu."))), now: 40,
			want: "pending Unschedulable: no node can take 1 of its 2 pods: Unschedulable: 0/2 nodes are available: Insufficient cpu.", again: 45,
		},
		"also while another one has its hosts file": {
			pods: pods(
				peerPod("client", scheduled(), exits(cluster.ContainerHosts, 0, "", ""), runs(cluster.ContainerBenchmark, 12), reachable),
				peerPod("server", scheduled(), waits, reachable),
			), now: 12,
			want: "running: waiting until its 2 pods know each other's addresses", again: 63,
		},
		"a hosts file that cannot be written is the platform's fault": {
			pods: pods(
				peerPod("server", ended(corev1.PodFailed), exits(cluster.ContainerHosts, 1, "Error", "read the addresses: line 2")),
				peerPod("client", scheduled(), waits),
			), now: 12,
			want: "failed platform InitFailed: its pod could not be prepared: container bai-hosts: read the addresses: line 2 (exit code 1)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := verdict.Decide(verdict.Observation{
				Seen: cluster.Snapshot{Job: job(role("client")), Pods: tt.pods}, Now: at(tt.now).Time, PendingDeadline: time.Minute, Grace: time.Second,
			})
			if diff := cmp.Diff(tt.want, verdictLine(v)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var again time.Time
			if tt.again > 0 {
				again = at(tt.again).Time
			}
			if !v.RecheckAt.Equal(again) {
				t.Errorf("decides again at %s, want %s", v.RecheckAt, again)
			}
		})
	}
}
