package preflight

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// workload is a role whose pods are to be placed.
type workload struct {
	role  role
	needs map[corev1.ResourceName]int64
	nodes []corev1.Node // nodes on which the pods can be placed
	share float64       // largest share of one of these nodes that one pod takes
}

// packRoles places the pods of all roles at the same time. Each role fits alone. It
// returns nil if all pods fit; otherwise it returns a role that does not fit, with the
// number of its remaining pods, and the nodes on which they can be placed.
//
// It uses a heuristic: the role that takes most of a node is placed first, on the nodes
// that the fewest other roles can use. If that fails, it tries other orders of roles
// and nodes.
func packRoles(roles []role, s cluster.Survey) (left *role, on []corev1.Node) {
	var loads []workload
	for _, r := range roles {
		fit, _ := fittingNodes(r, s)
		l := workload{role: r, needs: needsOf(r), nodes: fit}
		for _, n := range fit {
			free := milliValues(n.Status.Allocatable)
			freePorts(free, l.needs)
			l.share = max(l.share, share(l.needs, free))
		}
		loads = append(loads, l)
	}
	slices.SortStableFunc(loads, func(a, b workload) int { return cmp.Compare(b.share, a.share) })
	reversed := slices.Clone(loads)
	slices.Reverse(reversed)
	for _, order := range [][]workload{loads, reversed} {
		for _, backwards := range []bool{false, true} {
			rest, where := pack(order, backwards)
			if rest == nil {
				return nil, nil
			}
			if left == nil {
				left, on = rest, where
			}
		}
	}
	return left, on
}

// share returns the largest fraction of a node's resources that a pod takes.
func share(needs, has map[corev1.ResourceName]int64) float64 {
	var most float64
	for name, want := range needs {
		most = max(most, float64(want)/float64(max(1, has[name])))
	}
	return most
}

// pack places the pods of loads, one load after another, each on its nodes in order or
// backwards. It returns the rest of the first load that does not fit, and the nodes on
// which that load can be placed.
func pack(loads []workload, backwards bool) (left *role, on []corev1.Node) {
	free, users := map[string]map[corev1.ResourceName]int64{}, map[string]int{}
	for _, l := range loads {
		for _, n := range l.nodes {
			users[n.Name]++
			if free[n.Name] == nil {
				free[n.Name] = milliValues(n.Status.Allocatable)
			}
			freePorts(free[n.Name], l.needs)
		}
	}
	for _, l := range loads {
		nodes := slices.Clone(l.nodes)
		if backwards {
			slices.Reverse(nodes)
		}
		slices.SortStableFunc(nodes, func(a, b corev1.Node) int { return cmp.Compare(users[a.Name], users[b.Name]) })
		for _, n := range nodes {
			l.role.replicas -= l.placeOn(free[n.Name])
		}
		if l.role.replicas > 0 {
			return &l.role, l.nodes
		}
	}
	return nil, nil
}

// placeOn places as many pods as fit, and returns their number.
func (l workload) placeOn(free map[corev1.ResourceName]int64) int64 {
	placed := podsThatFit(l.role.replicas, l.needs, free)
	for name, want := range l.needs {
		free[name] -= placed * want
	}
	return placed
}
