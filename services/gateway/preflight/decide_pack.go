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
	nodes []corev1.Node // that it may be placed on
	share float64       // of the smallest of them, that one pod takes
}

// packRoles places the pods of all roles at a time, each of which finds room alone.
// It returns the role that does not, with as many pods as are left over and the
// nodes that it may be placed on; nil where all of them have a place.
//
// It goes by rules of thumb: the role that takes most of a node is placed first,
// on the nodes that fewest others could use. Where that does not do it another order
// of roles or nodes may, so those are tried before anything is called impossible.
func packRoles(roles []role, s cluster.Survey) (left *role, on []corev1.Node) {
	var loads []workload
	for _, r := range roles {
		fit, _ := fittingNodes(r, s)
		l := workload{role: r, needs: milliValues(podRequests(r.spec)), nodes: fit}
		for _, n := range fit {
			l.share = max(l.share, share(l.needs, milliValues(n.Status.Allocatable)))
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

// share is the largest part of any resource of a node that a pod takes.
func share(needs, has map[corev1.ResourceName]int64) float64 {
	var most float64
	for name, want := range needs {
		most = max(most, float64(want)/float64(max(1, has[name])))
	}
	return most
}

// pack places the pods of loads, one load after the other, each on its nodes in
// their order or backwards. It returns what is left over of the first that does
// not find room, and the nodes that it may be placed on.
func pack(loads []workload, backwards bool) (left *role, on []corev1.Node) {
	free, users := map[string]map[corev1.ResourceName]int64{}, map[string]int{}
	for _, l := range loads {
		for _, n := range l.nodes {
			users[n.Name]++
			free[n.Name] = milliValues(n.Status.Allocatable)
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

// placeOn places as many pods as there are, and fit, and returns how many.
func (l workload) placeOn(free map[corev1.ResourceName]int64) int64 {
	placed := podsThatFit(l.role.replicas, l.needs, free)
	for name, want := range l.needs {
		free[name] -= placed * want
	}
	return placed
}
