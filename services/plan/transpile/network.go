package transpile

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/plan/refusal"
)

// annotateNetwork adds the network of the pod to its annotations, and its MTU, which one
// machine sets by itself.
func (b builder) annotateNetwork(annotations map[string]string) {
	n := b.role.PodNetwork
	switch {
	case !b.settings.OneMachine && n.Attachment != "":
		annotations[cluster.AnnotationNetwork] = n.Attachment
	case b.settings.OneMachine && n.MTU > 0:
		annotations[cluster.AnnotationMTU] = strconv.Itoa(n.MTU)
	}
}

// hostNetwork reports whether the pods are in the network of their nodes. On one machine
// the pods of a run with several have networks of their own, and any other pod is in that
// of the machine.
func (b builder) hostNetwork() bool { return b.role.PodNetwork.HostNetwork && !b.settings.OneMachine }

// setHostNetwork puts a pod into the network of its node, where it still resolves the names
// of the cluster.
func (b builder) setHostNetwork(spec *corev1.PodSpec) {
	if b.hostNetwork() {
		spec.HostNetwork, spec.DNSPolicy = true, corev1.DNSClusterFirstWithHostNet
	}
}

// ports returns the ports of the benchmark. In the network of its node, all ports on which
// it listens are ports of the node: the scheduler never gives two pods with one of them the
// same node.
func (b builder) ports() []corev1.ContainerPort {
	var all []corev1.ContainerPort
	if !b.hostNetwork() {
		for i, port := range b.role.Ports {
			all = append(all, corev1.ContainerPort{Name: portName(i), ContainerPort: int32(port)}) //nolint:gosec // a port
		}
		return all
	}
	for i, port := range b.role.Listens {
		n := int32(port) //nolint:gosec // a port
		all = append(all, corev1.ContainerPort{Name: portName(i), ContainerPort: n, HostPort: n})
	}
	return all
}

// setsMTU reports whether a container of the pod sets the MTU of its link. The local
// cluster sets it when it makes the link.
func (b builder) setsMTU() bool { return b.role.PodNetwork.MTU > 0 && !b.settings.OneMachine }

// mtuContainer returns the container that sets the MTU of the pod's link to its network. It
// alone has the right for that, which only root has: the link is the same for all
// containers of the pod.
func (b builder) mtuContainer() corev1.Container {
	c := b.platformContainer(cluster.ContainerMTU, pod.PathIn("", pod.Binary), "mtu", strconv.Itoa(b.role.PodNetwork.MTU))
	c.Env, c.VolumeMounts = nil, []corev1.VolumeMount{programsMount(true)}
	root := int64(0)
	c.SecurityContext.RunAsUser = &root
	c.SecurityContext.Capabilities.Add = []corev1.Capability{"NET_ADMIN"}
	return c
}

// benchmarkSecurityContext returns the security context of the measured container. With
// RDMA devices it may lock memory.
func (b builder) benchmarkSecurityContext() *corev1.SecurityContext {
	s := b.userSecurityContext()
	if b.role.PodNetwork.RDMA == nil || b.role.Env.Privileged {
		return s
	}
	return &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"IPC_LOCK"}}}
}

// checkNetwork refuses rights that the Pod Security level restricted does not allow.
func (s Settings) checkNetwork(n descriptors.Network) error {
	if s.Security != Restricted || s.OneMachine {
		return nil
	}
	for _, key := range []struct {
		name string
		used bool
	}{{"host_network", n.HostNetwork}, {"mtu", n.MTU > 0}, {"rdma", n.RDMA != nil}} {
		if key.used {
			return refusal.Descriptor("network.%s needs a right that pods do not have on this platform, which keep to the level restricted of Pod Security", key.name)
		}
	}
	return nil
}

// checkRights names the namespaces whose pods may have rights that the cluster refuses at
// the Pod Security level of the settings. The error is for the operator.
func (s Settings) checkRights(name string) error {
	if s.Security == Privileged {
		return nil
	}
	var errs []error
	for _, namespace := range slices.Sorted(maps.Keys(s.Allow)) {
		if len(s.Allow[namespace].Rights) > 0 {
			errs = append(errs, fmt.Errorf("%s.allow.%q.rights: pods with these rights are refused at the Pod Security level baseline: set %s.security to privileged, and the label pod-security.kubernetes.io/enforce of their namespace, too", name, namespace, name))
		}
	}
	return errors.Join(errs...)
}

// isolationPolicy returns a policy by which only pods of the same attempt can connect
// to its pods. Outgoing connections are not restricted. It returns nil for a single
// pod, to which no pod needs to connect, and on one machine, which has no policies.
//
// No policy applies to pods in the network of their nodes. The launcher of such a run is in
// the pod network, and its workers connect to it from the addresses of their nodes, which no
// selector of pods matches: its policy lets all connections in.
func isolationPolicy(builders []builder, pods int) *networkingv1.NetworkPolicy {
	b := builders[len(builders)-1]
	onNodes := b.in.Descriptor.Network.HostNetwork
	if pods < 2 || b.settings.OneMachine || b.role.PodNetwork.HostNetwork {
		return nil
	}
	same := metav1.LabelSelector{MatchLabels: map[string]string{
		cluster.LabelRun: b.in.Run.Run, cluster.LabelAttempt: strconv.Itoa(b.in.Run.Attempt),
	}}
	from := []networkingv1.NetworkPolicyPeer{{PodSelector: &same}}
	if onNodes {
		same.MatchLabels, from = b.selector(), nil
	}
	p := &networkingv1.NetworkPolicy{ObjectMeta: b.meta()}
	p.APIVersion, p.Kind = networkingv1.SchemeGroupVersion.String(), "NetworkPolicy"
	p.Spec = networkingv1.NetworkPolicySpec{
		PodSelector: same, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		Ingress: []networkingv1.NetworkPolicyIngressRule{{From: from}},
	}
	return p
}
