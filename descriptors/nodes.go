package descriptors

import "maps"

// Labels of nodes that keys of Hardware stand for.
const (
	NodeName         = "kubernetes.io/hostname"
	NodeInstanceType = "node.kubernetes.io/instance-type"
	NodeZone         = "topology.kubernetes.io/zone"
)

// Topology returns the label whose value is the same on all nodes of a run, or "" if there is
// none.
func (h Hardware) Topology() string {
	if h.Together == "zone" {
		return NodeZone
	}
	return h.Together
}

// NodeLabels returns the labels that a node must have for pods on this hardware, without that
// of aws_zone_id, whose name only the platform knows. The caller may change the map.
func (h Hardware) NodeLabels() map[string]string {
	labels := maps.Clone(h.NodeSelector)
	if labels == nil {
		labels = map[string]string{}
	}
	if h.InstanceType != "" {
		labels[NodeInstanceType] = h.InstanceType
	}
	if h.AvailabilityZone != "" {
		labels[NodeZone] = h.AvailabilityZone
	}
	return labels
}
