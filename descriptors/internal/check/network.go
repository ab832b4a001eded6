package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
	"github.com/benchmark-ai/bai/descriptors/internal/quantity"
)

// network checks the table network.
func (c rules) network() {
	const at = "network"
	n := c.d.Network
	if !c.r.Has(at) || c.r.HasError(at) {
		return
	}
	if n.HostNetwork {
		for _, key := range []string{"attachment", "mtu"} {
			if c.r.IsValid(at + "." + key) {
				c.r.Fault(at+"."+key, fault.NetworkConflict, "pods with host_network have no network of their own",
					"leave this out, or host_network")
			}
		}
	}
	c.transport(at)
	if r := n.RDMA; r != nil && r.Resource != "" {
		c.deviceTwice(r.Resource)
	}
	c.localNetwork(at)
}

// transport checks the keys that only strategy mpi reads.
func (c rules) transport(at string) {
	mpi := c.d.Hardware.Strategy == descriptors.MPI
	if c.r.HasError("hardware.strategy") || !c.r.Has("hardware") {
		mpi = true // it may be
	}
	switch n := c.d.Network; {
	case !c.r.IsValid(at + ".transport"):
	case !mpi:
		c.r.Fault(at+".transport", fault.NotMPI, c.strategy()+" starts no MPI processes",
			`write strategy = "mpi" in [hardware], or leave this out`)
	case n.Transport == descriptors.RDMATransport && n.RDMA == nil && !c.r.HasError(at+".rdma") && !c.damaged:
		c.r.Fault(at+".transport", fault.NoRDMA, "pods have no RDMA devices",
			`add rdma = { resource = "…" }, the name by which the cluster counts them`)
	}
	if c.r.IsValid(at+".ssh_port") && !mpi {
		c.r.Warn(at+".ssh_port", fault.NotRead, c.strategy()+" does not read it", "leave it out")
	}
}

// deviceTwice finds RDMA devices that another key asks for, too.
func (c rules) deviceTwice(resource string) {
	tables := map[string]descriptors.Hardware{"hardware": c.d.Hardware}
	if c.d.Server != nil {
		tables["server.hardware"] = c.d.Server.Hardware
	}
	for _, table := range slices.Sorted(maps.Keys(tables)) {
		h := tables[table]
		key := h.Key(resource)
		for name, amounts := range map[string]map[string]string{"requests": h.Requests, "limits": h.Limits} {
			if _, ok := amounts[resource]; ok && (key == "" || name == "limits") {
				key = name + "." + decode.Quoted(resource)
			}
		}
		if key != "" {
			c.r.Fault("network.rdma.resource", fault.SameResource,
				fmt.Sprintf("%s.%s asks for %s too", table, key, resource), "keep one of the two")
			return
		}
	}
}

// localNetwork warns of keys that one machine does not read: its pods have networks of their
// own only if the run has several, and neither Multus nor a network of nodes.
func (c rules) localNetwork(at string) {
	if !c.platform.OneMachine {
		return
	}
	if c.r.IsValid(at + ".attachment") {
		c.r.Warn(at+".attachment", fault.NotRead, "the local cluster has no Multus", "")
	}
	switch n := c.d.Network; {
	case c.d.Pods() == 1 && n.MTU > 0:
		c.r.Warn(at+".mtu", fault.NotRead, "on the local cluster a run of one pod is in the network of the machine, which keeps its MTU",
			"")
	case c.d.Pods() > 1 && n.HostNetwork:
		c.r.Warn(at+".host_network", fault.NotRead, "on the local cluster the pods of a run with several have networks of their own", "")
	}
}

// resources checks the further resources of the table at path.
func (c rules) resources(path string, h descriptors.Hardware) {
	for _, name := range slices.Sorted(maps.Keys(h.Limits)) {
		c.resourceKey(path, path+".limits."+decode.Quoted(name), name, h)
	}
	for _, name := range slices.Sorted(maps.Keys(h.Requests)) {
		at := path + ".requests." + decode.Quoted(name)
		c.resourceKey(path, at, name, h)
		limit, limited := h.Limits[name]
		switch request := h.Requests[name]; {
		case c.r.HasError(path + ".limits." + decode.Quoted(name)):
		case !limited && !descriptors.Overcommits(name):
			c.r.Fault(at, fault.UnequalResource, "the cluster requires a limit of "+name, "write it in limits, with the same amount")
		case !limited:
		case !descriptors.Overcommits(name) && amountOf(name, request) != amountOf(name, limit):
			c.r.Fault(at, fault.UnequalResource, fmt.Sprintf("is not the limit, %s", limit),
				"write the same amount in both, or in limits alone")
		case amountOf(name, request) > amountOf(name, limit):
			c.r.Fault(at, fault.UnequalResource, fmt.Sprintf("is more than the limit, %s", limit), "write no more than the limit")
		}
	}
	c.hugepages(path, h)
}

// resourceKey finds a resource that a key of its own gives, or one of a role.
func (c rules) resourceKey(path, at, name string, h descriptors.Hardware) {
	if key := h.Key(name); key != "" {
		c.r.Fault(at, fault.SameResource, fmt.Sprintf("%s.%s gives it too", path, key), "keep one of the two")
		return
	}
	for i, r := range c.d.Roles {
		own := descriptors.Hardware{CPUs: r.CPUs, Memory: r.Memory, GPUs: r.GPUs, GPUResource: h.GPUResource}
		if key := own.Key(name); key != "" && path == "hardware" {
			c.r.Fault(at, fault.SameResource, fmt.Sprintf("roles[%d].%s gives it too", i, key), "keep one of the two")
			return
		}
	}
}

// hugepages finds large pages of a container that has neither CPUs nor memory, which the
// cluster refuses.
func (c rules) hugepages(path string, h descriptors.Hardware) {
	other := func(name string) bool { return name == "cpu" || name == "memory" }
	if h.CPUs != "" || h.Memory != "" || slices.ContainsFunc(slices.Collect(maps.Keys(h.Limits)), other) ||
		slices.ContainsFunc(slices.Collect(maps.Keys(h.Requests)), other) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(h.Limits)) {
		if strings.HasPrefix(name, "hugepages-") && !c.damaged && !c.r.HasErrorBelow(path) {
			c.r.Fault(path+".limits."+decode.Quoted(name), fault.HugepagesAlone,
				"the cluster gives large pages only to containers that ask for CPUs or memory", "add cpus or memory")
			return
		}
	}
}

// amountOf returns the amount of a resource as a number: of cpu in thousandths.
func amountOf(name, amount string) int64 {
	if name == "cpu" {
		if thousandths, ok := strings.CutSuffix(amount, "m"); ok {
			n, _ := quantity.Size(thousandths) // the parser has read it
			return n
		}
		amount += "k"
	}
	n, _ := quantity.Size(amount) // as above
	return n
}
