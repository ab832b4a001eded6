package preflight

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// checkNodes reports whether there are nodes for the pods of each role, and if so, for
// the pods of all roles at the same time.
func checkNodes(roles []role, s cluster.Survey) []Check {
	var all []Check
	for _, r := range roles {
		all = append(all, checkRoleNodes(r, s))
	}
	alone := slices.ContainsFunc(all, func(c Check) bool { return c.Grade != Fine })
	if alone || len(roles) < 2 || s.NodesUnknownReason != "" {
		return all
	}
	left, where := packRoles(roles, s)
	if left == nil {
		return all
	}
	var names []string
	for _, r := range roles {
		names = append(names, r.name)
	}
	return append(all, shortageCheck(Check{Topic: TopicNodes, Subject: strings.Join(names, ", ")}, shortage{
		text: fmt.Sprintf("the pods of all roles are needed at a time, and beside the others the nodes have no room for %s of %s with %s, also when nothing else runs: %s",
			pluralize(int(left.replicas), "pod"), left.name, describeRequests(role{spec: left.spec}), nodeNames(where)),
		remedy: "ask for fewer pods, or for less for each, or add a node",
	}, s))
}

// checkRoleNodes reports whether there are nodes for the pods of a role.
func checkRoleNodes(r role, s cluster.Survey) Check {
	c := Check{Topic: TopicNodes, Subject: r.name}
	if s.NodesUnknownReason != "" {
		c.Grade, c.Message = Warning, "the nodes cannot be listed: "+s.NodesUnknownReason
		c.Remedy = "grant the platform's account the verb list on nodes, by a cluster role"
		return c
	}
	fit, why := fittingNodes(r, s)
	if len(fit) == 0 {
		return shortageCheck(c, why, s)
	}
	if n, names := podCapacity(r, fit), nodeNames(fit); n < r.replicas {
		return shortageCheck(c, shortage{
			text: fmt.Sprintf("%d pods are needed at a time%s, and the nodes have room for %d, also when nothing else runs: %s",
				r.replicas, describePorts(r), n, names),
			remedy: "ask for fewer pods, or for less for each",
		}, s)
	}
	c.Message = fmt.Sprintf("%s %s large enough for %s: %s", pluralize(len(fit), "node"), isOrAre(len(fit)),
		describeRequests(r), nodeNames(fit))
	if s.LocalMachine {
		c.Message = "the machine is large enough for " + describeRequests(r)
	}
	return c
}

// shortage is the reason why there is no room, and the remedy.
type shortage struct{ text, remedy string }

// shortageCheck returns the check of a role without room. It is a fault, except that an
// autoscaler may add a node, and that the local machine enforces no limits: these give
// a warning.
func shortageCheck(c Check, why shortage, s cluster.Survey) Check {
	c.Message, c.Remedy = why.text, why.remedy
	switch {
	case s.LocalMachine:
		c.Grade, c.Message = Warning, why.text+"; nothing enforces it here"
	case s.Autoscaler != "":
		c.Grade, c.Message = Warning, why.text+"; "+s.Autoscaler+" may add one that has it"
	default:
		c.Grade, c.Class = Fault, event.ClassUser
	}
	return c
}

// fittingNodes returns the nodes on which a pod of the role can be placed. If there are
// none, it returns the first requirement that no node meets.
func fittingNodes(r role, s cluster.Survey) (fit []corev1.Node, why shortage) {
	if len(s.Nodes) == 0 {
		return nil, shortage{"the cluster has no node", "add one"}
	}
	candidates := s.Nodes
	for _, step := range []struct {
		has  func(corev1.Node) bool
		lack func(before []corev1.Node) shortage
	}{
		{func(n corev1.Node) bool { return s.LocalMachine || cluster.TakesPods(&n) }, func([]corev1.Node) shortage {
			return shortage{"no node is ready and takes pods", "kubectl get nodes says what is wrong with them"}
		}},
		{
			func(n corev1.Node) bool { return s.LocalMachine || cluster.Selects(r.spec, &n) },
			func(before []corev1.Node) shortage { return missingLabel(r, before) },
		},
		{
			func(n corev1.Node) bool { return s.LocalMachine || cluster.Tolerates(r.spec, &n) },
			func(before []corev1.Node) shortage { return tainted(before) },
		},
		{
			func(n corev1.Node) bool { return len(cluster.Lacking(cluster.PodRequests(r.spec), &n)) == 0 },
			func(before []corev1.Node) shortage { return tooSmall(r, before) },
		},
	} {
		matching := slices.DeleteFunc(slices.Clone(candidates), func(n corev1.Node) bool { return !step.has(n) })
		if len(matching) == 0 {
			return nil, step.lack(candidates)
		}
		candidates = matching
	}
	return candidates, shortage{}
}

// unfitReason returns the reason why a pod of the role cannot be placed on a node, or
// "".
func unfitReason(n corev1.Node, r role, machine bool) string {
	_, why := fittingNodes(r, cluster.Survey{Nodes: []corev1.Node{n}, LocalMachine: machine})
	return why.text
}

// podCapacity returns how many pods of a role fit on the nodes if nothing else runs
// there.
func podCapacity(r role, nodes []corev1.Node) int64 {
	var sum int64
	needs := needsOf(r)
	for _, n := range nodes {
		free := milliValues(n.Status.Allocatable)
		freePorts(free, needs)
		sum += podsThatFit(r.replicas, needs, free)
	}
	return sum
}

// portResource begins the names of the ports of a node, of which it has one each, among the
// resources that a pod needs.
const portResource = "port/"

// needsOf returns what a pod of a role needs of its node: resources in thousandths, and
// ports.
func needsOf(r role) map[corev1.ResourceName]int64 {
	needs := milliValues(cluster.PodRequests(r.spec))
	for _, port := range hostPorts(r) {
		needs[corev1.ResourceName(portResource+port)] = 1
	}
	return needs
}

// freePorts adds the ports that a pod needs to the free resources of a node, unless they
// are there.
func freePorts(free, needs map[corev1.ResourceName]int64) {
	for name := range needs {
		if _, ok := free[name]; !ok && strings.HasPrefix(string(name), portResource) {
			free[name] = 1
		}
	}
}

// hostPorts returns the ports of its node that a pod of a role has.
func hostPorts(r role) []string {
	var all []string
	for _, c := range r.spec.Containers {
		for _, p := range c.Ports {
			if p.HostPort > 0 {
				all = append(all, strconv.Itoa(int(p.HostPort)))
			}
		}
	}
	return all
}

// describePorts returns the ports of its node that each pod of a role needs as text, or "".
func describePorts(r role) string {
	ports := hostPorts(r)
	if len(ports) == 0 {
		return ""
	}
	return ", each with port " + strings.Join(ports, ", ") + " of its node"
}

// milliValues returns resources in thousandths.
func milliValues(list corev1.ResourceList) map[corev1.ResourceName]int64 {
	all := make(map[corev1.ResourceName]int64, len(list))
	for name, q := range list {
		all[name] = q.MilliValue()
	}
	return all
}

// podsThatFit returns how many pods fit in the free resources, up to most.
func podsThatFit(most int64, needs, free map[corev1.ResourceName]int64) int64 {
	for name, want := range needs {
		most = min(most, free[name]/max(1, want))
	}
	return most
}

// missingLabel returns the label that no node has.
func missingLabel(r role, nodes []corev1.Node) shortage {
	for _, key := range slices.Sorted(maps.Keys(r.spec.NodeSelector)) {
		value, values := r.spec.NodeSelector[key], map[string]bool{}
		for _, n := range nodes {
			if v, ok := n.Labels[key]; ok {
				values[v] = true
			}
		}
		if values[value] {
			continue
		}
		message := fmt.Sprintf("no node has the label %s=%s", key, value)
		if key == corev1.LabelInstanceTypeStable {
			message = "no node is a " + value
		}
		if len(values) > 0 {
			message += "; there are " + strings.Join(slices.Sorted(maps.Keys(values)), ", ")
		}
		return shortage{message, "ask for what is there (hardware.instance_type, hardware.node_selector, hardware.availability_zone), or add such a node"}
	}
	return shortage{"no node has all of the labels " + labelText(r.spec.NodeSelector), "ask for what one node has"}
}

func labelText(labels map[string]string) string {
	var words []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		words = append(words, key+"="+labels[key])
	}
	return strings.Join(words, ", ")
}

// tainted returns the taints that keep the role off all nodes.
func tainted(nodes []corev1.Node) shortage {
	taints := map[string]bool{}
	for _, n := range nodes {
		for _, t := range n.Spec.Taints {
			if t.Effect != corev1.TaintEffectPreferNoSchedule {
				taints[t.ToString()] = true
			}
		}
	}
	return shortage{
		"every node that would do has a taint that is not tolerated: " + strings.Join(slices.Sorted(maps.Keys(taints)), ", "),
		"add hardware.tolerations",
	}
}

// tooSmall returns the first resource of which no node has enough.
func tooSmall(r role, nodes []corev1.Node) shortage {
	needs := cluster.PodRequests(r.spec)
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		want := needs[name]
		var most resource.Quantity
		var where string
		for _, n := range nodes {
			if has := n.Status.Allocatable[name]; has.Cmp(most) > 0 {
				most, where = has, n.Name
			}
		}
		switch {
		case want.Cmp(most) <= 0:
		case where == "":
			return shortage{
				fmt.Sprintf("%s %s asked for, no node has any", want.String(), name),
				"install what offers it to pods (for GPUs the vendor's device plugin), or name what nodes have: hardware.gpu_resource",
			}
		default:
			return shortage{
				fmt.Sprintf("%s %s asked for, the largest node has %s, on %s", want.String(), name, most.String(), where),
				"ask for less, or add a larger node",
			}
		}
	}
	return shortage{"no node has enough of everything at once: " + describeRequests(r), "ask for what one node has"}
}

// describeRequests returns the requests of a role's pods as text.
func describeRequests(r role) string {
	needs := cluster.PodRequests(r.spec)
	var words []string
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		q := needs[name]
		words = append(words, string(name)+" "+q.String())
	}
	text := "what it asks for, which is nothing"
	if len(words) > 0 {
		text = strings.Join(words, ", ")
	}
	if r.replicas > 1 {
		text = fmt.Sprintf("%d pods of %s", r.replicas, text)
	}
	return text
}

// maxNodeNames is the maximum number of nodes that a message names.
const maxNodeNames = 4

func nodeNames(nodes []corev1.Node) string {
	var names []string
	for _, n := range nodes[:min(maxNodeNames, len(nodes))] {
		names = append(names, n.Name)
	}
	text := strings.Join(names, ", ")
	if more := len(nodes) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func ephemeralStorage(n *corev1.Node) resource.Quantity {
	return n.Status.Allocatable[corev1.ResourceEphemeralStorage]
}

func pluralize(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func isOrAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
