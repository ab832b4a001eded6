package descriptors

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
)

// Labels of nodes that keys of their own stand for.
const (
	labelNode = "kubernetes.io/hostname"
	labelType = "node.kubernetes.io/instance-type"
	labelZone = "topology.kubernetes.io/zone"
)

// Topology returns the label whose value is the same on all nodes of a run, or "" if there is
// none.
func (h Hardware) Topology() string {
	if h.Together == "zone" {
		return labelZone
	}
	return h.Together
}

// severalPods checks the keys about the nodes of the pods of a run.
func (c check) severalPods() {
	const apart, together = "hardware.apart", "hardware.together"
	h := c.d.Hardware
	for _, at := range []string{apart, together} {
		if c.r.Has(at) && c.r.IsValid(at) && !c.r.HasError("hardware.strategy") && c.d.Pods() == 1 && !c.r.HasErrorBelow("hardware.distributed") {
			c.r.Warn(at, fault.NotRead, c.strategy()+" has one pod", "leave it out")
		}
	}
	if may := c.parser.Placements; may != nil && h.Placement != "" && !slices.Contains(may, h.Placement) && !c.parser.Accepted && !c.parser.OneMachine {
		c.r.Fault("hardware.placement", fault.OtherPlacement, "this platform's descriptors may name "+strings.Join(may, ", "),
			"use one of these, or leave it out")
	}
	if h.Apart != "" && h.Topology() == labelNode {
		c.r.Fault(together, fault.ApartTogether, "apart has no two pods on one node", "keep one of the two")
	}
}

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
