package descriptors

import (
	"fmt"
	"maps"

	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
)

// Labels of nodes that keys of their own stand for.
const (
	labelType = "node.kubernetes.io/instance-type"
	labelZone = "topology.kubernetes.io/zone"
)

// NodeLabels returns the labels that a node must have for pods on this hardware, without that
// of aws_zone_id, whose name only the platform knows. The caller may change the map.
func (h Hardware) NodeLabels() map[string]string {
	labels := maps.Clone(h.NodeSelector)
	if labels == nil {
		labels = map[string]string{}
	}
	if h.InstanceType != "" {
		labels[labelType] = h.InstanceType
	}
	if h.AvailabilityZone != "" {
		labels[labelZone] = h.AvailabilityZone
	}
	return labels
}

// nodes finds labels of nodes to which the platform gives another value.
func (c check) nodes(path string, h Hardware) {
	for label, value := range h.NodeLabels() {
		fixed, ok := c.parser.NodeSelector[label]
		if !ok || fixed == value || c.parser.Accepted || c.parser.OneMachine {
			continue
		}
		at := path + ".node_selector." + decode.Quoted(label)
		switch {
		case label == labelType && h.InstanceType != "":
			at = path + ".instance_type"
		case label == labelZone && h.AvailabilityZone != "":
			at = path + ".availability_zone"
		}
		c.r.Fault(at, fault.OtherNodes, fmt.Sprintf("all pods of this platform run on nodes with %s=%s", label, fixed),
			"leave it out, or write "+fmt.Sprintf("%q", fixed))
	}
}
