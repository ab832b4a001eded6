package verdict_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/watcher/verdict"
)

// podOn returns a pod that was bound to a node, or "" for none, and ended, or runs if over is nil.
func podOn(node string, bound int, over *int) corev1.Pod {
	p := newPod()
	p.Spec.NodeName = node
	p.CreationTimestamp = at(0)
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at(bound)}}
	p.Status.Phase = corev1.PodRunning
	if over == nil {
		return p
	}
	p.Status.Phase = corev1.PodSucceeded
	ended := func(second int) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: at(second)}}
	}
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: cluster.ContainerCollect, State: ended(*over)}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: cluster.ContainerBenchmark, State: ended(*over - 2)}}
	return p
}

func TestTheMachinesOfAnAttemptAreItsNodesFromTheFirstBindingToTheLastEnd(t *testing.T) {
	priced := podOn("a", 2, new(30))
	priced.Annotations = map[string]string{cluster.AnnotationPrice: "3.06 USD"}
	asked := podOn("a", 2, new(30))
	asked.Spec.NodeSelector = map[string]string{corev1.LabelInstanceTypeStable: "t3.small"}
	node := func(label string) cluster.Occupancy {
		return cluster.Occupancy{Nodes: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{label: "p3.2xlarge"}}}}}
	}
	use := func(node string, from, until int) event.MachineUse {
		return event.MachineUse{Node: node, From: at(from).UTC(), Until: at(until).UTC()}
	}
	typed := func(name string) event.MachineUse {
		u := use("a", 2, 30)
		u.InstanceType = name
		return u
	}
	withPrice := use("a", 2, 30)
	withPrice.PricePerHour = "3.06 USD"
	for name, tt := range map[string]struct {
		pods      []corev1.Pod
		occupancy cluster.Occupancy
		since     time.Time
		want      []event.MachineUse
	}{
		"to the end of the collector, which ends last":             {pods: pods(podOn("a", 2, new(30))), want: []event.MachineUse{use("a", 2, 30)}},
		"a pod that runs ends with the attempt":                    {pods: pods(podOn("a", 2, nil)), since: at(40).Time, want: []event.MachineUse{use("a", 2, 40)}},
		"or now, if the end has no time":                           {pods: pods(podOn("a", 2, nil)), want: []event.MachineUse{use("a", 2, 50)}},
		"two pods on a node use one machine":                       {pods: pods(podOn("a", 9, new(30)), podOn("a", 2, new(20))), want: []event.MachineUse{use("a", 2, 30)}},
		"machines are in the order of their names":                 {pods: pods(podOn("b", 1, new(30)), podOn("a", 2, new(20))), want: []event.MachineUse{use("a", 2, 20), use("b", 1, 30)}},
		"a pod without a node uses none":                           {pods: pods(podOn("", 1, nil)), want: []event.MachineUse{}},
		"an attempt without pods has unknown machines":             {},
		"an end before the binding is that of a clock":             {pods: pods(podOn("a", 9, new(3))), want: []event.MachineUse{use("a", 9, 9)}},
		"the descriptor's price comes with the pod":                {pods: pods(priced), want: []event.MachineUse{withPrice}},
		"the node says of which type it is":                        {pods: pods(asked), occupancy: node(corev1.LabelInstanceTypeStable), want: []event.MachineUse{typed("p3.2xlarge")}},
		"an old node says it by the old label":                     {pods: pods(asked), occupancy: node(corev1.LabelInstanceType), want: []event.MachineUse{typed("p3.2xlarge")}},
		"a node without a label is of the type that was asked for": {pods: pods(asked), occupancy: node("other"), want: []event.MachineUse{typed("t3.small")}},
	} {
		t.Run(name, func(t *testing.T) {
			s := verdict.Observation{Seen: cluster.Snapshot{Pods: tt.pods}, Occupancy: tt.occupancy, Now: at(50).Time}
			v := verdict.Verdict{Phase: event.PhaseFinished, Outcome: event.Succeeded, Since: tt.since}
			f, ok := verdict.EventsFor(event.Launched{}, v, s)[0].(event.Finished)
			if diff := cmp.Diff(tt.want, f.Machines); !ok || diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			v.Outcome, v.Class = event.Failed, event.ClassInfra
			r, ok := verdict.EventsFor(event.Launched{Retries: 1}, v, s)[0].(event.Retried)
			if diff := cmp.Diff(tt.want, r.Machines); !ok || diff != "" {
				t.Errorf("of an attempt that is retried (-want +got):\n%s", diff)
			}
		})
	}
}
