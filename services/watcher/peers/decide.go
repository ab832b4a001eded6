// Package peers decides when the pods of a run get to know each other's addresses. It is pure.
package peers

import (
	"cmp"
	"net/netip"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// Decide returns the value of cluster.AnnotationPeers for a run with these pods, and the pods that wait for it and do not have it. There
// are none until all pods of the run have addresses. A pod that has its hosts file keeps it.
func Decide(pods []corev1.Pod) (value string, waiting []corev1.Pod) {
	count, byHost := 0, map[string]corev1.Pod{}
	for _, p := range pods {
		n, err := strconv.Atoi(p.Annotations[cluster.AnnotationPods])
		if err != nil {
			continue // it asks for no addresses
		}
		count = max(count, n)
		host := hostOf(p)
		if other, ok := byHost[host]; !ok || replaces(p, other) {
			byHost[host] = p
		}
		if awaits(p) {
			waiting = append(waiting, p)
		}
	}
	if len(waiting) == 0 || len(byHost) < count {
		return "", nil
	}
	all := peersOf(byHost)
	if len(all) < count {
		return "", nil
	}
	value = pod.FormatPeers(all)
	return value, lacking(waiting, value)
}

// peersOf returns the pods that have addresses.
func peersOf(byHost map[string]corev1.Pod) []pod.Peer {
	all := make([]pod.Peer, 0, len(byHost))
	for host, p := range byHost {
		if addresses := addressesOf(p); len(addresses) > 0 {
			all = append(all, pod.Peer{Host: host, Addresses: addresses})
		}
	}
	return all
}

// lacking returns the pods without a value.
func lacking(pods []corev1.Pod, value string) []corev1.Pod {
	var all []corev1.Pod
	sum := cluster.PeersSum(value)
	for _, p := range pods {
		if has := p.Annotations[cluster.AnnotationPeers]; has != value && has != sum {
			all = append(all, p)
		}
	}
	return all
}

// hostOf returns the name of a pod on the network, without its domain. A pod without a name of its own has that of its Job, as its Service.
func hostOf(p corev1.Pod) string {
	return cmp.Or(p.Spec.Hostname, p.Labels[batchv1.JobNameLabel])
}

// replaces reports whether a pod is the one that has its name now, and not another one that had it.
func replaces(p, other corev1.Pod) bool {
	if lives := isAlive(p); lives != isAlive(other) {
		return lives
	}
	return p.CreationTimestamp.After(other.CreationTimestamp.Time)
}

func isAlive(p corev1.Pod) bool { return cluster.Alive(p) && p.DeletionTimestamp == nil }

// awaits reports whether a pod waits for addresses, or will.
func awaits(p corev1.Pod) bool {
	if !isAlive(p) {
		return false
	}
	for _, c := range p.Status.InitContainerStatuses {
		if c.Name == cluster.ContainerHosts {
			return c.State.Terminated == nil
		}
	}
	return true
}

// addressesOf returns the addresses of a pod.
func addressesOf(p corev1.Pod) []netip.Addr {
	var all []netip.Addr
	for _, text := range cluster.PodAddresses(p) {
		if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
			all = append(all, a)
		}
	}
	return all
}
