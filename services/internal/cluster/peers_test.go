package cluster_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

func TestPodAddresses(t *testing.T) {
	t.Parallel()
	const status = `[{"name":"cbr0","interface":"eth1","ips":["10.244.0.7"]},{"name":"kube-system/fast","interface":"eth0","ips":["192.168.7.9","fd07::9"],"default":true}]`
	both := []corev1.PodIP{{IP: "10.244.0.7"}, {IP: "fd00::7"}}
	for name, tt := range map[string]struct {
		annotations map[string]string
		ips         []corev1.PodIP
		ip          string
		want        []string
	}{
		"a pod that has no network yet has none": {want: nil},
		"a pod has an address of each family":    {ips: both, ip: "10.244.0.7", want: []string{"10.244.0.7", "fd00::7"}},
		"an old node gives one address":          {ip: "10.244.0.7", want: []string{"10.244.0.7"}},
		"a network of Multus has addresses of its own": {
			annotations: map[string]string{cluster.AnnotationNetwork: "kube-system/fast", "k8s.v1.cni.cncf.io/network-status": status},
			ips:         both, want: []string{"192.168.7.9", "fd07::9"},
		},
		"a network without a namespace is one of kube-system": {
			annotations: map[string]string{cluster.AnnotationNetwork: "fast", "k8s.v1.cni.cncf.io/network-status": status},
			ips:         both, want: []string{"192.168.7.9", "fd07::9"},
		},
		"a network that the status does not have has those of the pod": {
			annotations: map[string]string{cluster.AnnotationNetwork: "other", "k8s.v1.cni.cncf.io/network-status": status},
			ips:         both, want: []string{"10.244.0.7", "fd00::7"},
		},
		"a status that cannot be read counts as none": {
			annotations: map[string]string{cluster.AnnotationNetwork: "fast", "k8s.v1.cni.cncf.io/network-status": "{"},
			ips:         both, want: []string{"10.244.0.7", "fd00::7"},
		},
		"a pod of the pod network has those of no other": {
			annotations: map[string]string{"k8s.v1.cni.cncf.io/network-status": status},
			ips:         both, want: []string{"10.244.0.7", "fd00::7"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var p corev1.Pod
			p.Annotations, p.Status.PodIPs, p.Status.PodIP = tt.annotations, tt.ips, tt.ip
			if diff := cmp.Diff(tt.want, cluster.PodAddresses(p)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
