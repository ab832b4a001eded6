package lower

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/validate"
)

// The addresses of a run's pods. Each run has a network of its own that leads
// nowhere else, so that all may use the same.
const (
	addressFormat = "10.0.%d.%d"
	addressPrefix = 16
)

// sshdDir must exist for sshd to serve. Its package creates the directory only when the machine's own sshd starts.
const sshdDir = "/run/sshd"

// Domain ends the full names of Services.
const Domain = "cluster.local"

// Network returns the network settings of pod index of a Job, which has the given number in the network of its run.
func Network(j *batchv1.Job, index int, podName string, number int) *shimapi.Network {
	mtu, _ := strconv.Atoi(j.Spec.Template.Annotations[cluster.AnnotationMTU]) // package validate has read it
	return &shimapi.Network{
		Number: number, Address: Address(number), Prefix: addressPrefix, Hostname: Hostname(j, index, podName),
		MTU: mtu, Private: []string{sshdDir},
	}
}

// Address returns the address of a pod by its number in the network of its run.
func Address(number int) string { return fmt.Sprintf(addressFormat, number>>8, number&0xff) }

// maxHostname is the longest name that a pod may call itself.
const maxHostname = 63

// Hostname returns the hostname of a pod, as Kubernetes sets it.
func Hostname(j *batchv1.Job, index int, podName string) string {
	name := cmp.Or(j.Spec.Template.Spec.Hostname, podName)
	if validate.IsIndexed(j) {
		name = j.Name + "-" + strconv.Itoa(index)
	}
	return strings.TrimRight(name[:min(len(name), maxHostname)], "-.")
}

// Peer is a pod as the other pods of its run see it.
type Peer struct {
	Job      *batchv1.Job
	Labels   map[string]string
	Hostname string
	Number   int
}

// Hosts returns the lines of /etc/hosts of a pod with a network of its own: first the lines of any machine, then the pods of its run, in
// the order of their numbers, and the Services that select them, by name. A Service has the address of the first of its pods; a headless
// one those of all of them.
func Hosts(peers []Peer, services []*corev1.Service) []string {
	lines := []string{"127.0.0.1 localhost", "::1 localhost ip6-localhost ip6-loopback"}
	peers = slices.SortedFunc(slices.Values(peers), func(a, b Peer) int { return cmp.Compare(a.Number, b.Number) })
	for _, p := range peers {
		lines = append(lines, Address(p.Number)+" "+strings.Join(p.names(services), " "))
	}
	for _, s := range slices.SortedFunc(slices.Values(services), func(a, b *corev1.Service) int { return cmp.Compare(a.Name, b.Name) }) {
		for _, p := range peers {
			if !selects(s, p) {
				continue
			}
			lines = append(lines, Address(p.Number)+" "+strings.Join(hostnames(s.Name, s.Namespace), " "))
			if s.Spec.ClusterIP != corev1.ClusterIPNone {
				break
			}
		}
	}
	return lines
}

// names returns the names of a pod, the full ones first; it has them if its Service is headless.
func (p Peer) names(services []*corev1.Service) []string {
	t := p.Job.Spec.Template.Spec
	for _, s := range services {
		if s.Spec.ClusterIP == corev1.ClusterIPNone && t.Subdomain == s.Name && selects(s, p) {
			return append(hostnames(p.Hostname+"."+s.Name, s.Namespace), p.Hostname)
		}
	}
	return []string{p.Hostname}
}

func hostnames(name, scope string) []string {
	return []string{name + "." + scope + ".svc." + Domain, name + "." + scope + ".svc", name + "." + scope, name}
}

// selects reports whether a pod is one of a Service's.
func selects(s *corev1.Service, p Peer) bool {
	for k, v := range s.Spec.Selector {
		if p.Labels[k] != v {
			return false
		}
	}
	return len(s.Spec.Selector) > 0
}
