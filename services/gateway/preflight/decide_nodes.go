package preflight

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// rooms says whether there are nodes for the pods of each role and, where there
// are, for those of all roles at a time.
func rooms(roles []role, s cluster.Survey) []Check {
	var all []Check
	for _, r := range roles {
		all = append(all, room(r, s))
	}
	alone := slices.ContainsFunc(all, func(c Check) bool { return c.Grade != Fine })
	if alone || len(roles) < 2 || s.NodesUnknown != "" {
		return all
	}
	left, where := together(roles, s)
	if left == nil {
		return all
	}
	var names []string
	for _, r := range roles {
		names = append(names, r.name)
	}
	return append(all, none(Check{Topic: TopicNodes, Subject: strings.Join(names, ", ")}, shortage{
		text: fmt.Sprintf("the pods of all roles are needed at a time, and beside the others the nodes have no room for %s of %s with %s, also when nothing else runs: %s",
			count(int(left.replicas), "pod"), left.name, describe(role{spec: left.spec}), nodeNames(where)),
		remedy: "ask for fewer pods, or for less for each, or add a node",
	}, s))
}

// room says whether there are nodes for the pods of a role.
func room(r role, s cluster.Survey) Check {
	c := Check{Topic: TopicNodes, Subject: r.name}
	if s.NodesUnknown != "" {
		c.Grade, c.Message = Warning, "the nodes cannot be listed: "+s.NodesUnknown
		c.Remedy = "grant the platform's account the verb list on nodes, by a cluster role"
		return c
	}
	fit, why := fitting(r, s)
	if len(fit) == 0 {
		return none(c, why, s)
	}
	if n, names := places(r, fit), nodeNames(fit); n < r.replicas {
		return none(c, shortage{
			text:   fmt.Sprintf("%d pods are needed at a time, and the nodes have room for %d, also when nothing else runs: %s", r.replicas, n, names),
			remedy: "ask for fewer pods, or for less for each",
		}, s)
	}
	c.Message = fmt.Sprintf("%s %s large enough for %s: %s", count(len(fit), "node"), are(len(fit)), describe(r), nodeNames(fit))
	if s.Machine {
		c.Message = "the machine is large enough for " + describe(r)
	}
	return c
}

// shortage is why there is no room, and what may be done.
type shortage struct{ text, remedy string }

// none is the check of a role for which there is no room now. What adds nodes may
// make some. A machine that has less than is asked for runs it all the same.
func none(c Check, why shortage, s cluster.Survey) Check {
	c.Message, c.Remedy = why.text, why.remedy
	switch {
	case s.Machine:
		c.Grade, c.Message = Warning, why.text+"; nothing enforces it here"
	case s.Scaler != "":
		c.Grade, c.Message = Warning, why.text+"; "+s.Scaler+" may add one that has it"
	default:
		c.Grade, c.Class = Fault, event.ClassUser
	}
	return c
}

// fitting returns the nodes that a pod of the role may be placed on, or why there
// are none, by the first thing that no node has.
func fitting(r role, s cluster.Survey) (fit []corev1.Node, why shortage) {
	if len(s.Nodes) == 0 {
		return nil, shortage{"the cluster has no node", "add one"}
	}
	left := s.Nodes
	for _, step := range []struct {
		has  func(corev1.Node) bool
		lack func(before []corev1.Node) shortage
	}{
		{func(n corev1.Node) bool { return s.Machine || ready(n) }, func([]corev1.Node) shortage {
			return shortage{"no node is ready and takes pods", "kubectl get nodes says what is wrong with them"}
		}},
		{func(n corev1.Node) bool { return s.Machine || selects(r.spec, n) }, func(before []corev1.Node) shortage { return unlabelled(r, before) }},
		{func(n corev1.Node) bool { return s.Machine || tolerates(r.spec, n) }, func(before []corev1.Node) shortage { return tainted(before) }},
		{func(n corev1.Node) bool { return len(lacks(r.spec, n)) == 0 }, func(before []corev1.Node) shortage { return small(r, before) }},
	} {
		kept := slices.DeleteFunc(slices.Clone(left), func(n corev1.Node) bool { return !step.has(n) })
		if len(kept) == 0 {
			return nil, step.lack(left)
		}
		left = kept
	}
	return left, shortage{}
}

// unfit says why a pod of the role may not be placed on a node; empty where it
// may.
func unfit(n corev1.Node, r role, machine bool) string {
	_, why := fitting(r, cluster.Survey{Nodes: []corev1.Node{n}, Machine: machine})
	return why.text
}

func ready(n corev1.Node) bool {
	return !n.Spec.Unschedulable && slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func selects(s corev1.PodSpec, n corev1.Node) bool {
	for key, value := range s.NodeSelector {
		if n.Labels[key] != value {
			return false
		}
	}
	return true
}

func tolerates(s corev1.PodSpec, n corev1.Node) bool {
	for _, taint := range n.Spec.Taints {
		if taint.Effect == corev1.TaintEffectPreferNoSchedule {
			continue
		}
		if !slices.ContainsFunc(s.Tolerations, func(t corev1.Toleration) bool { return tolerated(t, taint) }) {
			return false
		}
	}
	return true
}

func tolerated(t corev1.Toleration, taint corev1.Taint) bool {
	switch {
	case t.Effect != "" && t.Effect != taint.Effect, t.Key != "" && t.Key != taint.Key:
		return false
	case t.Operator == corev1.TolerationOpExists:
		return true
	}
	return t.Key != "" && t.Value == taint.Value
}

// lacks are the resources that a node has too little of for a pod.
func lacks(s corev1.PodSpec, n corev1.Node) []corev1.ResourceName {
	var names []corev1.ResourceName
	needs := requests(s)
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		has := n.Status.Allocatable[name]
		if want := needs[name]; want.Cmp(has) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// requests are what a node must have for a pod: the sum of its containers, or
// what an init container needs if that is more. What is only limited is also
// asked for.
func requests(s corev1.PodSpec) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, c := range s.Containers {
		for name, q := range requested(c) {
			total := sum[name]
			total.Add(q)
			sum[name] = total
		}
	}
	for _, c := range s.InitContainers {
		for name, q := range requested(c) {
			if has := sum[name]; q.Cmp(has) > 0 {
				sum[name] = q
			}
		}
	}
	maps.DeleteFunc(sum, func(_ corev1.ResourceName, q resource.Quantity) bool { return q.IsZero() })
	return sum
}

func requested(c corev1.Container) corev1.ResourceList {
	all := maps.Clone(c.Resources.Limits)
	if all == nil {
		all = corev1.ResourceList{}
	}
	maps.Copy(all, c.Resources.Requests)
	return all
}

// places is how many pods of a role the nodes have room for when nothing else
// runs.
func places(r role, nodes []corev1.Node) int64 {
	var sum int64
	for _, n := range nodes {
		sum += fits(r.replicas, amounts(requests(r.spec)), amounts(n.Status.Allocatable))
	}
	return sum
}

// amounts are a list of resources in thousandths.
func amounts(list corev1.ResourceList) map[corev1.ResourceName]int64 {
	all := make(map[corev1.ResourceName]int64, len(list))
	for name, q := range list {
		all[name] = q.MilliValue()
	}
	return all
}

// fits is how many pods, most at most, find what each needs in what is free.
func fits(most int64, needs, free map[corev1.ResourceName]int64) int64 {
	for name, want := range needs {
		most = min(most, free[name]/max(1, want))
	}
	return most
}

// unlabelled says which label no node has.
func unlabelled(r role, nodes []corev1.Node) shortage {
	for _, key := range slices.Sorted(maps.Keys(r.spec.NodeSelector)) {
		value, there := r.spec.NodeSelector[key], map[string]bool{}
		for _, n := range nodes {
			if v, ok := n.Labels[key]; ok {
				there[v] = true
			}
		}
		if there[value] {
			continue
		}
		what := fmt.Sprintf("no node has the label %s=%s", key, value)
		if key == corev1.LabelInstanceTypeStable {
			what = "no node is a " + value
		}
		if len(there) > 0 {
			what += "; there are " + strings.Join(slices.Sorted(maps.Keys(there)), ", ")
		}
		return shortage{what, "ask for what is there (hardware.instance_type, hardware.node_selector, hardware.availability_zone), or add such a node"}
	}
	return shortage{"no node has all of the labels " + labelWords(r.spec.NodeSelector), "ask for what one node has"}
}

func labelWords(labels map[string]string) string {
	var words []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		words = append(words, key+"="+labels[key])
	}
	return strings.Join(words, ", ")
}

// tainted says which taints keep the role from all nodes.
func tainted(nodes []corev1.Node) shortage {
	there := map[string]bool{}
	for _, n := range nodes {
		for _, t := range n.Spec.Taints {
			if t.Effect != corev1.TaintEffectPreferNoSchedule {
				there[t.ToString()] = true
			}
		}
	}
	return shortage{
		"every node that would do has a taint that is not tolerated: " + strings.Join(slices.Sorted(maps.Keys(there)), ", "),
		"add hardware.tolerations",
	}
}

// small says of what no node has enough.
func small(r role, nodes []corev1.Node) shortage {
	needs := requests(r.spec)
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
			return shortage{fmt.Sprintf("%s %s asked for, the largest node has %s, on %s", want.String(), name, most.String(), where), "ask for less, or add a larger node"}
		}
	}
	return shortage{"no node has enough of everything at once: " + describe(r), "ask for what one node has"}
}

// describe is what a pod of the role asks for.
func describe(r role) string {
	needs := requests(r.spec)
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

// manyNodes is how many nodes are named.
const manyNodes = 4

func nodeNames(nodes []corev1.Node) string {
	var names []string
	for _, n := range nodes[:min(manyNodes, len(nodes))] {
		names = append(names, n.Name)
	}
	text := strings.Join(names, ", ")
	if more := len(nodes) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func disk(n *corev1.Node) resource.Quantity {
	return n.Status.Allocatable[corev1.ResourceEphemeralStorage]
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func are(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
