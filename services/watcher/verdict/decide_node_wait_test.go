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

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

func notReady(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }

func tainted(n *corev1.Node) {
	n.Spec.Taints = []corev1.Taint{{Key: "gpu", Value: "a", Effect: corev1.TaintEffectNoSchedule}}
}

func selects(kind string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"kind": kind} }
}

func tolerates(t corev1.Toleration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{t} }
}

func TestWhoWaitsForOtherRunsIsQueued(t *testing.T) {
	const (
		ended = "failed infra Unschedulable: no node can take its pod: Unschedulable: 0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules.; timed out after 10m0s"
		waits = "queued NodesInUse: waiting until 1 other run on n1 ends"
	)
	n1, n2 := readyNode("n1", "small", "4"), readyNode("n2", "large", "8")
	occupied := func(nodes []corev1.Node, ps ...corev1.Pod) cluster.Occupancy {
		return cluster.Occupancy{Nodes: nodes, Pods: ps}
	}
	nodes := []corev1.Node{n1, n2}
	for name, tt := range map[string]struct {
		pods      []corev1.Pod
		events    []corev1.Event
		occupancy cluster.Occupancy
		want      string
	}{
		"another run is on a node that it could use": {
			pods: pods(homeless("a", "1")), occupancy: occupied(nodes, podOf("r2", "n1")), want: waits,
		},
		"two others are": {
			pods: pods(homeless("a", "1")), occupancy: occupied(nodes, podOf("r2", "n1"), podOf("r2", "n2"), podOf("r3", "n2")),
			want: "queued NodesInUse: waiting until 2 other runs on n1, n2 end",
		},
		"its own pods on a node are not waited for": {
			pods: pods(homeless("a", "1")), occupancy: occupied(nodes, podOf("r1", "n1")), want: ended,
		},
		"nothing of the platform is on any node": {
			pods: pods(homeless("a", "1")), occupancy: occupied(nodes), want: ended,
		},
		"the others are on nodes without its labels": {
			pods: pods(homeless("a", "1", selects("large"))), occupancy: occupied(nodes, podOf("r2", "n1")), want: ended,
		},
		"the others are on nodes that are too small for it": {
			pods: pods(homeless("a", "6")), occupancy: occupied(nodes, podOf("r2", "n1")), want: ended,
		},
		"the others are on a node that takes no pods any more": {
			pods: pods(homeless("a", "1")), occupancy: occupied([]corev1.Node{readyNode("n1", "small", "4", cordoned)}, podOf("r2", "n1")), want: ended,
		},
		"the others are on a node that is lost": {
			pods: pods(homeless("a", "1")), occupancy: occupied([]corev1.Node{readyNode("n1", "small", "4", notReady)}, podOf("r2", "n1")), want: ended,
		},
		"the others are on a node whose taint it does not tolerate": {
			pods: pods(homeless("a", "1")), occupancy: occupied([]corev1.Node{readyNode("n1", "small", "4", tainted)}, podOf("r2", "n1")), want: ended,
		},
		"the others are on a node whose taint it tolerates": {
			pods:      pods(homeless("a", "1", tolerates(corev1.Toleration{Key: "gpu", Operator: corev1.TolerationOpExists}))),
			occupancy: occupied([]corev1.Node{readyNode("n1", "small", "4", tainted)}, podOf("r2", "n1")), want: waits,
		},
		"one of its pods could never have a node": {
			pods: pods(homeless("a", "1"), homeless("b", "9")), occupancy: occupied(nodes, podOf("r2", "n1")),
			want: "failed infra Unschedulable: no node can take 2 of its 2 pods: Unschedulable: 0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules.; timed out after 10m0s",
		},
		"no node is of the kind that it asks for, in the scheduler's words": {
			pods:      pods(homeless("a", "1"), newPod(unscheduled("0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."))),
			occupancy: occupied(nodes, podOf("r2", "n1")),
			want:      "failed user Unschedulable: no node can take 2 of its 2 pods: Unschedulable: 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.; timed out after 10m0s",
		},
		"another run holds a node, lacks one itself, and was submitted later": {
			pods: pods(homeless("a", "1")), occupancy: occupied(nodes, podOf("r2", "n1"), podOf("r2", "")), want: waits,
		},
		"one that was submitted before is not waited for, as it may wait for this one": {
			pods: pods(homeless("a", "1")), occupancy: occupied(nodes, podOf("r0", "n1"), podOf("r0", "")), want: ended,
		},
		"one that was submitted before and has its nodes is": {
			pods: pods(homeless("a", "1")), occupancy: occupied(nodes, podOf("r0", "n1"), podOf("r2", "")), want: waits,
		},
		"where nodes cannot be listed, every other run counts": {
			pods:      pods(homeless("a", "1", selects("large"))),
			occupancy: cluster.Occupancy{UnknownReason: "forbidden", Pods: pods(podOf("r2", "n1"))}, want: waits,
		},
		"but those that ask for other nodes": {
			pods:      pods(homeless("a", "1", selects("large"))),
			occupancy: cluster.Occupancy{UnknownReason: "forbidden", Pods: pods(podOf("r2", "n1", selects("small")))}, want: ended,
		},
		"one machine takes every pod": {
			pods:      pods(homeless("a", "64", selects("large"))),
			occupancy: cluster.Occupancy{OneMachine: true, Nodes: []corev1.Node{n1}, Pods: pods(podOf("r2", "n1"))}, want: waits,
		},
		"a quota that other runs use up is waited for": {
			events: refusedBy(`pods "a" is forbidden: exceeded quota: team, requested: pods=1, used: pods=2, limited: pods=2`), occupancy: occupied(nodes, podOf("r2", "n1")),
			want: "queued NodesInUse: waiting for the namespace's quota until 1 other run on n1 ends",
		},
		"one that no other run of the platform uses is not": {
			events:    refusedBy(`pods "a" is forbidden: exceeded quota: team, requested: pods=1, used: pods=2, limited: pods=2`),
			occupancy: occupied(nodes),
			want:      `failed user LaunchRefused: the cluster refuses its pod: pods "a" is forbidden: exceeded quota: team, requested: pods=1, used: pods=2, limited: pods=2; timed out after 10m0s`,
		},
		"nor is one that nobody uses": {
			events:    refusedBy(`pods "a" is forbidden: exceeded quota: team, requested: gpu=1, used: gpu=0, limited: gpu=0`),
			occupancy: occupied(nodes, podOf("r2", "n1")),
			want:      `failed user LaunchRefused: the cluster refuses its pod: pods "a" is forbidden: exceeded quota: team, requested: gpu=1, used: gpu=0, limited: gpu=0; timed out after 10m0s`,
		},
		"nor one that is too small for the pod": {
			events:    refusedBy(`pods "a" is forbidden: exceeded quota: team, requested: cpu=3,pods=1, used: cpu=500m,pods=1, limited: cpu=2,pods=9`),
			occupancy: occupied(nodes, podOf("r2", "n1")),
			want:      `failed user LaunchRefused: the cluster refuses its pod: pods "a" is forbidden: exceeded quota: team, requested: cpu=3,pods=1, used: cpu=500m,pods=1, limited: cpu=2,pods=9; timed out after 10m0s`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := verdict.Observation{
				Seen: cluster.Snapshot{Job: job(), Pods: tt.pods, Events: tt.events}, Occupancy: tt.occupancy,
				Now: at(3000).Time, PendingDeadline: 10 * time.Minute, Grace: 3 * time.Second,
			}
			s.Seen.Job.Labels = map[string]string{cluster.LabelRun: "r1"}
			if diff := cmp.Diff(tt.want, verdictLine(verdict.Decide(s))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func refusedBy(words string) []corev1.Event {
	return events("bai-r1-1", "FailedCreate", words)
}

func TestTheWaitForOtherRunsIsNoPartOfThePendingDeadline(t *testing.T) {
	for name, tt := range map[string]struct {
		turn verdict.NodeWait
		now  int
		want string
	}{
		"without a wait":           {verdict.NodeWait{}, 602, "failed"},
		"with one that is over":    {verdict.NodeWait{Ended: time.Hour}, 602, "pending"},
		"once that has passed too": {verdict.NodeWait{Ended: time.Hour}, 3600 + 602, "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			s := verdict.Observation{
				Seen: cluster.Snapshot{Job: job(), Pods: pods(homeless("a", "1"))}, NodeWait: tt.turn, Now: at(tt.now).Time, PendingDeadline: 10 * time.Minute,
			}
			v := verdict.Decide(s)
			if got := verdictLine(v)[:len(tt.want)]; got != tt.want {
				t.Errorf("%s, want %s", verdictLine(v), tt.want)
			}
		})
	}
}

func TestAJobInAQueueOfKueueIsQueuedForAsLongAsThatTakes(t *testing.T) {
	yes := true
	inQueue := func(j *batchv1.Job) {
		j.Spec.Suspend, j.Labels = &yes, map[string]string{cluster.LabelKueueQueue: "team-a"}
	}
	byHand := func(j *batchv1.Job) { j.Spec.Suspend = &yes }
	for name, tt := range map[string]struct {
		job  *batchv1.Job
		want string
	}{
		"in a queue":          {job(inQueue), "queued QueueSuspended: waiting in the cluster's queue team-a"},
		"suspended otherwise": {job(byHand), "failed infra Unschedulable: waiting in the cluster's queue; timed out after 10m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			s := verdict.Observation{Seen: cluster.Snapshot{Job: tt.job}, Now: at(86400).Time, PendingDeadline: 10 * time.Minute}
			if diff := cmp.Diff(tt.want, verdictLine(verdict.Decide(s))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
