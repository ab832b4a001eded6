package peers_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/watcher/peers"
)

// newPod returns a pod of a run of two pods.
func newPod(host string, with ...func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod-" + host, Annotations: map[string]string{cluster.AnnotationPods: "2"}}}
	p.Spec.Hostname, p.Status.Phase = host, corev1.PodPending
	for _, w := range with {
		w(&p)
	}
	return p
}

// address gives a pod an address of each family.
func address(ips ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for _, ip := range ips {
			p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: ip})
		}
	}
}

// hosts is the state of the container that writes the hosts file.
func hosts(state corev1.ContainerState) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: cluster.ContainerHosts, State: state}}
	}
}

func annotation(name, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations[name] = value }
}

func phase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func created(second int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Name += time.Duration(second).String()
		p.CreationTimestamp = metav1.Unix(int64(second), 0)
	}
}

func deleted(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(9, 0)} }

func ofJob(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Hostname, p.Labels = "", map[string]string{batchv1.JobNameLabel: name} }
}

func alone(p *corev1.Pod) { p.Annotations = nil }

func TestDecide(t *testing.T) {
	t.Parallel()
	const value = "a 10.1.0.1\nb 10.1.0.2,fd00::2\n"
	a, b := newPod("a", address("10.1.0.1")), newPod("b", address("10.1.0.2", "fd00::2"))
	written := hosts(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}})
	waits := hosts(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
	for name, tt := range map[string]struct {
		pods    []corev1.Pod
		value   string
		waiting []string
	}{
		"all pods get the addresses of all":             {[]corev1.Pod{a, b}, value, []string{"pod-a", "pod-b"}},
		"their order does not matter":                   {[]corev1.Pod{b, a}, value, []string{"pod-b", "pod-a"}},
		"a pod that waits already is one of them":       {[]corev1.Pod{newPod("a", address("10.1.0.1"), waits), b}, value, []string{"pod-a", "pod-b"}},
		"none gets any before all have one":             {[]corev1.Pod{a, newPod("b")}, "", nil},
		"none gets any before all exist":                {[]corev1.Pod{a}, "", nil},
		"a pod that has them does not get them again":   {[]corev1.Pod{newPod("a", address("10.1.0.1"), annotation(cluster.AnnotationPeers, value)), b}, value, []string{"pod-b"}},
		"nor one whose snapshot has their sum":          {[]corev1.Pod{newPod("a", address("10.1.0.1"), annotation(cluster.AnnotationPeers, cluster.PeersSum(value))), b}, value, []string{"pod-b"}},
		"a pod that has older ones gets them":           {[]corev1.Pod{newPod("a", address("10.1.0.1"), annotation(cluster.AnnotationPeers, "a 10.9.9.9\n")), b}, value, []string{"pod-a", "pod-b"}},
		"a pod that has its hosts file keeps it":        {[]corev1.Pod{newPod("a", address("10.1.0.1"), written), b}, value, []string{"pod-b"}},
		"a pod that has ended is known to the others":   {[]corev1.Pod{newPod("a", address("10.1.0.1"), phase(corev1.PodSucceeded)), b}, value, []string{"pod-b"}},
		"a pod that is being deleted gets none":         {[]corev1.Pod{newPod("a", address("10.1.0.1"), deleted), b}, value, []string{"pod-b"}},
		"a pod in the place of another has its name":    {[]corev1.Pod{newPod("a", address("10.9.9.9"), phase(corev1.PodFailed)), a, b}, value, []string{"pod-a", "pod-b"}},
		"whichever is seen first":                       {[]corev1.Pod{b, a, newPod("a", address("10.9.9.9"), deleted)}, value, []string{"pod-b", "pod-a"}},
		"of two that live the newer one has it":         {[]corev1.Pod{b, newPod("a", address("10.1.0.1"), created(2), written), newPod("a", address("10.9.9.9"), created(1), written)}, value, []string{"pod-b"}},
		"one without a name of its own has its Job's":   {[]corev1.Pod{newPod("a", address("10.1.0.1"), ofJob("a")), b}, value, []string{"pod-a", "pod-b"}},
		"what is no address is none":                    {[]corev1.Pod{newPod("a", address("x", "fe80::1%eth0")), b}, "", nil},
		"pods that ask for none get none":               {[]corev1.Pod{newPod("a", address("10.1.0.1"), alone), newPod("b", address("10.1.0.2"), alone)}, "", nil},
		"a number that cannot be read asks for nothing": {[]corev1.Pod{newPod("a", annotation(cluster.AnnotationPods, "x"))}, "", nil},
		"an attempt without pods has none":              {nil, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			value, waiting := peers.Decide(tt.pods)
			var names []string
			for _, p := range waiting {
				names = append(names, p.Name)
			}
			if diff := cmp.Diff(tt.waiting, names); value != tt.value || diff != "" {
				t.Errorf("%q, want %q; pods (-want +got):\n%s", value, tt.value, diff)
			}
		})
	}
}
