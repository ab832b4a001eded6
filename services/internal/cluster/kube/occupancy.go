package kube

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// nodesMaxAge is how old the nodes of an Occupancy may be.
const nodesMaxAge = 20 * time.Second

// nodeList is the answer of the API server to a list of the nodes.
type nodeList struct {
	nodes         []corev1.Node
	unknownReason string
	at            time.Time
}

// Occupancy implements cluster.Occupier. The pods come from the cache of the watchers, which it starts. Nodes lack their images.
func (c *Cluster) Occupancy(ctx context.Context) (cluster.Occupancy, error) {
	k, err := c.sharedCache() //nolint:contextcheck // it goes on for others
	if err != nil {
		return cluster.Occupancy{}, err
	}
	if err := k.syncError(); err != nil {
		return cluster.Occupancy{}, err
	}
	nodes := c.recentNodes(ctx)
	o := cluster.Occupancy{Nodes: nodes.nodes, UnknownReason: nodes.unknownReason}
	for _, object := range k.pods.GetStore().List() {
		if p, ok := object.(*corev1.Pod); ok && cluster.Alive(*p) {
			o.Pods = append(o.Pods, *p)
		}
	}
	return o, nil
}

// recentNodes returns the nodes as they were at most nodesMaxAge ago. Callers at the same time share a request.
func (c *Cluster) recentNodes(ctx context.Context) nodeList {
	c.nodesMu.Lock()
	defer c.nodesMu.Unlock()
	if !c.nodes.at.IsZero() && time.Since(c.nodes.at) < nodesMaxAge {
		return c.nodes
	}
	ctx, cancel := c.withTimeout(ctx)
	defer cancel()
	next := nodeList{at: time.Now()}
	list, err := c.core.Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		next.unknownReason = wrapError("list nodes", err).Error()
	} else {
		next.nodes = list.Items
	}
	for i := range next.nodes {
		next.nodes[i].ManagedFields, next.nodes[i].Status.Images = nil, nil
	}
	if ctx.Err() == nil {
		c.nodes = next
	}
	return next
}
