package transpile

import (
	"strconv"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// isolationPolicy returns a policy by which only pods of the same attempt can connect
// to its pods. Outgoing connections are not restricted. It returns nil for a single
// pod, to which no pod needs to connect, and on one machine, which has no policies.
func isolationPolicy(builders []builder, pods int) *networkingv1.NetworkPolicy {
	b := builders[len(builders)-1]
	if pods < 2 || b.settings.OneMachine {
		return nil
	}
	same := metav1.LabelSelector{MatchLabels: map[string]string{
		cluster.LabelRun: b.in.Run.Run, cluster.LabelAttempt: strconv.Itoa(b.in.Run.Attempt),
	}}
	p := &networkingv1.NetworkPolicy{ObjectMeta: b.meta()}
	p.APIVersion, p.Kind = networkingv1.SchemeGroupVersion.String(), "NetworkPolicy"
	p.Spec = networkingv1.NetworkPolicySpec{
		PodSelector: same, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		Ingress: []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &same}}}},
	}
	return p
}
