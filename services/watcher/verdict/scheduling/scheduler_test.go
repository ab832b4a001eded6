package scheduling_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/plan/transpile/placement"
	"github.com/benchmark-ai/bai/services/watcher/verdict/scheduling"
)

func TestNodesThatARunLacksAreCounted(t *testing.T) {
	t.Parallel()
	apart := corev1.Pod{Spec: corev1.PodSpec{Affinity: placement.Affinity("r1", 3, descriptors.Hardware{Apart: "node"}, placement.Exclusive)}}
	exclusive := corev1.Pod{Spec: corev1.PodSpec{Affinity: placement.Affinity("r1", 3, descriptors.Hardware{}, placement.Exclusive)}}
	const lacks = "the run lacks 1 node, since each of its 3 pods has a node of its own (hardware.apart)"
	for name, tt := range map[string]struct {
		pod     corev1.Pod
		message string
		waiting int
		want    string
		tooFew  bool
	}{
		"every node has a pod of the run": {
			pod: apart, waiting: 1, tooFew: true,
			message: "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules. preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod.",
			want:    lacks + ", and the cluster has 2 nodes; ",
		},
		"another node is busy": {
			pod: apart, waiting: 1,
			message: "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match pod anti-affinity rules. no new claims to deallocate, preemption: 0/3 nodes are available: 1 Insufficient cpu, 2 No preemption victims found for incoming pod.",
			want:    lacks + "; ",
		},
		"another node is the control plane": {
			pod: apart, waiting: 1, tooFew: true,
			message: "0/3 nodes are available: 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, 2 node(s) didn't match pod anti-affinity rules. preemption: 0/3 nodes are available: 1 Preemption is not helpful for scheduling, 2 No preemption victims found for incoming pod.",
			want:    lacks + ", and only 2 of the cluster's 3 nodes may have its pods; ",
		},
		"another node has taints that newer schedulers do not name": {
			pod: apart, waiting: 2, tooFew: true,
			message: "0/2 nodes are available: 1 node(s) didn't match pod anti-affinity rules, 1 node(s) had untolerated taint(s). no new claims to deallocate, preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling.",
			want:    "the run lacks 2 nodes, since each of its 3 pods has a node of its own (hardware.apart), and only 1 of the cluster's 2 nodes may have its pods; ",
		},
		"another node is of another kind": {
			pod: apart, waiting: 1, tooFew: true,
			message: "0/4 nodes are available: 2 node(s) didn't match Pod's node affinity/selector, 2 node(s) didn't match pod anti-affinity rules. preemption: 0/4 nodes are available: 2 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling.",
			want:    lacks + ", and only 2 of the cluster's 4 nodes may have its pods; ",
		},
		"another node is not well": {
			pod: apart, waiting: 1,
			message: "0/3 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/unreachable: }, 2 node(s) didn't match pod anti-affinity rules. preemption: 0/3 nodes are available: 1 Preemption is not helpful for scheduling, 2 No preemption victims found for incoming pod.",
			want:    lacks + "; ",
		},
		"no node is too small because of the run's own pods": {
			pod: apart, waiting: 3, message: "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
		},
		"pods of other runs are on all nodes": {
			pod: exclusive, waiting: 1, message: "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules. preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod.",
		},
		"a gang waits as a whole": {
			pod: apart, waiting: 3, message: "3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable.",
		},
	} {
		got, tooFew := scheduling.LackingNodes(tt.message, tt.pod, tt.waiting, 3)
		if got != tt.want || tooFew != tt.tooFew {
			t.Errorf("%s: %q, %v; want %q, %v", name, got, tooFew, tt.want, tt.tooFew)
		}
	}
}
