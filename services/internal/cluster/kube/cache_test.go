package kube_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
)

// TestTheCacheKnowsForWhomAPodWaits: a status names the pods.
func TestTheCacheKnowsForWhomAPodWaits(t *testing.T) {
	t.Parallel()
	targets, env := []string{"tcp://bai-r1-1-server-0.pods:7"}, []corev1.EnvVar{{Name: "A", Value: "b"}}
	pod := func(waitArgs, otherArgs []string, vars []corev1.EnvVar) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: cluster.ContainerWait, Args: waitArgs, Env: vars}},
			Containers:     []corev1.Container{{Name: cluster.ContainerBenchmark, Args: otherArgs, Env: vars}},
		}}
	}
	got, err := kube.StripUnused(pod(targets, []string{"x"}, env))
	if diff := cmp.Diff(any(pod(targets, nil, nil)), got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestTheCacheKeepsTheSumOfThePeersOfAPod: all pods of a run of a thousand have the addresses of a thousand.
func TestTheCacheKeepsTheSumOfThePeersOfAPod(t *testing.T) {
	t.Parallel()
	with := func(value string) *corev1.Pod {
		p := &corev1.Pod{}
		p.Annotations = map[string]string{"a": "b", cluster.AnnotationPeers: value}
		return p
	}
	const value = "a 10.1.0.1\nb 10.1.0.2\n"
	got, err := kube.StripUnused(with(value))
	if diff := cmp.Diff(any(with(cluster.PeersSum(value))), got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
