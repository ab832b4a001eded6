package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
)

// severalPods checks the keys about the nodes of the pods of a run.
func (c rules) severalPods() {
	const apart, together = "hardware.apart", "hardware.together"
	h := c.d.Hardware
	for _, at := range []string{apart, together} {
		if c.r.Has(at) && c.r.IsValid(at) && !c.r.HasError("hardware.strategy") && c.d.Pods() == 1 &&
			!c.r.HasErrorBelow("hardware.distributed") {
			c.r.Warn(at, fault.NotRead, c.strategy()+" has one pod", "leave it out")
		}
	}
	if may := c.platform.Placements; may != nil && h.Placement != "" && !slices.Contains(may, h.Placement) &&
		!c.platform.Accepted && !c.platform.OneMachine {
		c.r.Fault("hardware.placement", fault.OtherPlacement, "this platform's descriptors may name "+strings.Join(may, ", "),
			"use one of these, or leave it out")
	}
	if h.Apart != "" && h.Topology() == descriptors.NodeName {
		c.r.Fault(together, fault.ApartTogether, "apart has no two pods on one node", "keep one of the two")
	}
}

// nodes finds labels of nodes to which the platform gives another value.
func (c rules) nodes(path string, h descriptors.Hardware) {
	for label, value := range h.NodeLabels() {
		fixed, ok := c.platform.NodeSelector[label]
		if !ok || fixed == value || c.platform.Accepted || c.platform.OneMachine {
			continue
		}
		at := path + ".node_selector." + decode.Quoted(label)
		switch {
		case label == descriptors.NodeInstanceType && h.InstanceType != "":
			at = path + ".instance_type"
		case label == descriptors.NodeZone && h.AvailabilityZone != "":
			at = path + ".availability_zone"
		}
		c.r.Fault(at, fault.OtherNodes, fmt.Sprintf("all pods of this platform run on nodes with %s=%s", label, fixed),
			"leave it out, or write "+fmt.Sprintf("%q", fixed))
	}
}
