package kube_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
)

func TestThePodOfAnOperatorHasAMeasuredContainer(t *testing.T) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"of": "bai-r1-1"}}}
	p.Spec.Containers = []corev1.Container{{Name: "sidecar", Command: []string{"a"}}, {Name: "node", Command: []string{"b"}}}
	for container, annotations := range map[string]map[string]string{"sidecar": nil, "node": {"kubectl.kubernetes.io/default-container": "node"}} {
		one := p.DeepCopy()
		one.Annotations = annotations
		for range 2 { // client-go may transform an object again
			if _, err := kube.StripUnlabeled(one); err != nil {
				t.Fatal(err)
			}
		}
		i := map[string]int{"sidecar": 0, "node": 1}[container]
		if one.Annotations[cluster.AnnotationContainer] != container || one.Spec.Containers[i].Name != cluster.ContainerBenchmark || !cluster.RunsWithoutEntrypoint(*one) {
			t.Errorf("%s: %+v", container, one)
		}
	}
	left, err := kube.StripUnlabeled(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"a": "b"}}, Spec: p.Spec})
	if diff := cmp.Diff(any(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}), left); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}
