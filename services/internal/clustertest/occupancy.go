package clustertest

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

func occupies(b *fixture) {
	b.create(b.job("while true; do sleep 0.02; done"))
	node := b.await("the benchmark", isRunning).Pods[0].Spec.NodeName
	b.awaitOccupancy("its pod on its node", func(o cluster.Occupancy, pods []corev1.Pod) bool {
		known := slices.ContainsFunc(o.Nodes, func(n corev1.Node) bool { return n.Name == node })
		return len(pods) == 1 && pods[0].Spec.NodeName == node && known && o.UnknownReason == ""
	})
	if err := b.cluster.Delete(b.Context(), b.ref()); err != nil {
		b.Fatal(err)
	}
	b.awaitOccupancy("no pod", func(_ cluster.Occupancy, pods []corev1.Pod) bool { return len(pods) == 0 })
}

func endedOccupiesNothing(b *fixture) {
	b.create(b.job("exit 0"))
	b.awaitEnd()
	b.awaitOccupancy("no pod", func(_ cluster.Occupancy, pods []corev1.Pod) bool { return len(pods) == 0 })
}

// awaitOccupancy waits until ok of the occupancy, and of the pods of the run in it.
func (b *fixture) awaitOccupancy(what string, ok func(cluster.Occupancy, []corev1.Pod) bool) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), b.suite.Timeout)
	defer cancel()
	for {
		o, err := b.cluster.Occupancy(ctx)
		pods := slices.DeleteFunc(slices.Clone(o.Pods), func(p corev1.Pod) bool { return p.Labels[cluster.LabelRun] != b.run })
		if err == nil && ok(o, pods) {
			return
		}
		if !sleep(ctx) {
			b.Fatalf("%s: not in time; the last were %d pods, %v", what, len(pods), err)
		}
	}
}
