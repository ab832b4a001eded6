package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// AnnotationPods of a pod is the number of pods of its run. Such a pod waits, in ContainerHosts, until AnnotationPeers has the addresses of
// all of them, in the form of package pod.
const (
	AnnotationPods  = "benchmark-ai.dev/pods"
	AnnotationPeers = "benchmark-ai.dev/peers"
)

// annotationNetworkStatus is where Multus writes the networks of a pod (Kubernetes Network Custom Resource Definition De-facto Standard).
const annotationNetworkStatus = "k8s.v1.cni.cncf.io/network-status"

// PodAddresses returns the addresses at which other pods of the run reach a pod, of each family, or nil while it has none: those of the
// network that AnnotationNetwork names, as far as the cluster reports them, else those of the pod's status. In the network of its node
// these are the node's.
func PodAddresses(p corev1.Pod) []string {
	if all := attachedAddresses(p); len(all) > 0 {
		return all
	}
	var all []string
	for _, ip := range p.Status.PodIPs {
		if ip.IP != "" {
			all = append(all, ip.IP)
		}
	}
	if len(all) == 0 && p.Status.PodIP != "" {
		all = append(all, p.Status.PodIP)
	}
	return all
}

// attachedAddresses returns the addresses of a pod in the network that AnnotationNetwork names, nil if its status does not have them.
func attachedAddresses(p corev1.Pod) []string {
	network := p.Annotations[AnnotationNetwork]
	if network == "" {
		return nil
	}
	if !strings.Contains(network, "/") {
		network = NetworksNamespace + "/" + network
	}
	var networks []struct {
		Name string   `json:"name"`
		IPs  []string `json:"ips"`
	}
	if err := json.Unmarshal([]byte(p.Annotations[annotationNetworkStatus]), &networks); err != nil {
		return nil
	}
	for _, n := range networks {
		if n.Name == network {
			return n.IPs
		}
	}
	return nil
}

// PeersSum returns the text that stands for a value of AnnotationPeers in snapshots of Watch: all pods of a large run have the same long
// value.
func PeersSum(value string) string {
	sum := sha256.Sum256([]byte(value))
	return "sha256:" + hex.EncodeToString(sum[:])
}
