// Package scheduling reads the messages of schedulers, autoscalers and quotas about pods that have no node.
package scheduling

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// Unplaceable reports whether a scheduler's message means that no node is of the requested kind, busy or not, or that a claim does not
// exist.
func Unplaceable(message string) bool {
	if strings.Contains(message, "persistentvolumeclaim ") && strings.Contains(message, " not found") {
		return true
	}
	return strings.Contains(message, "didn't match Pod's node affinity/selector") &&
		!strings.Contains(message, "Insufficient") && !strings.Contains(message, "Too many pods")
}

// TooLarge reports whether a scheduler's message means that every node is too small for the request even if empty: it lacks resources, and
// preemption would free none. Unhealthy nodes may be larger.
func TooLarge(message string) bool {
	m := regexp.MustCompile(`^0/(\d+) nodes are available: .*preemption: 0/\d+ nodes are available: (\d+) Preemption is not helpful`).FindStringSubmatch(message)
	return len(m) == 3 && m[1] == m[2] && strings.Contains(message, "Insufficient ") && !strings.Contains(message, "{node.kubernetes.io/")
}

// LackingNodes returns a part of a status: how many nodes a run lacks, if a scheduler's message says that a pod found none because each pod
// of the run has a node of its own (hardware.apart); waiting is the number of its pods without one. The part is "" if the message has
// another reason. The result tooFew means that fewer nodes may have its pods than it has pods, busy or not.
func LackingNodes(message string, p corev1.Pod, waiting, pods int) (lacking string, tooFew bool) {
	if !isApart(p) || !strings.Contains(message, "didn't match pod anti-affinity rules") {
		return "", false
	}
	lacking = fmt.Sprintf("the run lacks %s, since each of its %d pods has a node of its own (hardware.apart)", nodes(waiting), pods)
	switch all, open := countNodes(message); {
	case all == 0 || open >= pods:
		return lacking + "; ", false
	case open == all:
		return fmt.Sprintf("%s, and the cluster has %s; ", lacking, nodes(all)), true
	default:
		return fmt.Sprintf("%s, and only %d of the cluster's %s may have its pods; ", lacking, open, nodes(all)), true
	}
}

func nodes(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}

// isApart reports whether the other pods of a pod's run may not be on its node.
func isApart(p corev1.Pod) bool {
	a := p.Spec.Affinity
	return a != nil && a.PodAntiAffinity != nil && slices.ContainsFunc(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
		func(t corev1.PodAffinityTerm) bool {
			return t.TopologyKey == corev1.LabelHostname && t.LabelSelector != nil && t.LabelSelector.MatchLabels[cluster.LabelRun] != ""
		})
}

// countNodes returns how many nodes a scheduler's message says the cluster has, and how many of them may have the pod once they are well
// and not busy. Both are zero if it does not say.
func countNodes(message string) (all, open int) {
	reasons, _, _ := strings.Cut(message, "preemption: ")
	m := regexp.MustCompile(`^0/(\d+) nodes are available: `).FindStringSubmatch(reasons)
	if len(m) == 0 {
		return 0, 0
	}
	all = atoi(m[1])
	open = all
	for _, m := range regexp.MustCompile(`(\d+) node\(s\) (?:didn't match Pod's node affinity/selector|had untolerated taint\(?s?\)?(?: \{([^}]*))?)`).FindAllStringSubmatch(reasons, -1) {
		if !strings.HasPrefix(m[2], "node.kubernetes.io/") { // the taints of a node that is not well
			open -= atoi(m[1])
		}
	}
	return all, open
}

// atoi returns a number of a scheduler's message, or zero for one that no cluster has.
func atoi(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}
