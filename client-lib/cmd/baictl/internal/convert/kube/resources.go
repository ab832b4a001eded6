package kube

import (
	"strings"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/document"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/draft"
)

// Keys of the tables for any resource.
const (
	requests = "hardware.requests"
	limits   = "hardware.limits"
)

// Largest number of a resource that is counted.
const most = 1 << 30

// resources are what a container asks for.
type resources struct {
	settings         []Setting
	requests, limits draft.Inline
}

// Resources returns the settings of the resources of a container, a table with requests and
// limits. CPUs and memory are the same in requests and limits, as descriptors have them.
func Resources(v document.Value) []Setting {
	var r resources
	asked, limited := v.Get("requests"), v.Get("limits")
	r.one("hardware.cpus", "cpu", asked, limited)
	r.one("hardware.memory", "memory", asked, limited)
	r.devices(limited, &r.limits)
	r.devices(asked, &r.requests)
	if len(r.requests) > 0 {
		r.settings = append(r.settings, Setting{requests, r.requests})
	}
	if len(r.limits) > 0 {
		r.settings = append(r.settings, Setting{limits, r.limits})
	}
	return r.settings
}

// one adds CPUs or memory.
func (r *resources) one(key, resource string, asked, limited document.Value) {
	request, limit := asked.Get(resource), limited.Get(resource)
	switch {
	case limit.Has() && request.Has() && limit.Raw() != request.Raw():
		request.Remark("descriptors have one number for requests and limits: the limit, %s, is carried over", limit.Raw())
	case !limit.Has() && request.Has():
		request.Remark("is the limit, too: descriptors have one number for both")
		limit = request
	}
	if limit.Has() {
		r.settings = append(r.settings, Setting{key, limit.Scalar()})
	}
}

// devices adds the other resources of a table.
func (r *resources) devices(v document.Value, rest *draft.Inline) {
	if !v.Has() {
		return
	}
	for _, name := range v.Keys() {
		if name == "cpu" || name == "memory" {
			continue
		}
		one := v.Get(name)
		switch {
		case strings.HasSuffix(name, ".com/gpu"):
			r.gpus(name, one)
		case !isKnown(name):
			one.Remark("is no resource that descriptors have: left out")
		case strings.HasPrefix(name, "rdma/"):
			r.set(RDMA(name, one.Int(1, most)), one)
		case one.Kind() == document.Integer:
			*rest = append(*rest, draft.Pair{Key: name, Value: one.Int(0, most)})
		default:
			*rest = append(*rest, draft.Pair{Key: name, Value: one.Scalar()})
		}
	}
}

// isKnown reports whether descriptors have a resource beside CPUs, memory and GPUs: extended
// resources, whose names have a domain, large pages, and space on the node's disk.
func isKnown(name string) bool {
	return strings.Contains(name, "/") || strings.HasPrefix(name, "hugepages-") || name == "ephemeral-storage"
}

func (r *resources) gpus(name string, v document.Value) {
	const maxGPUs = 1024
	r.set(Setting{"hardware.gpus", v.Int(0, maxGPUs)}, v)
	if name != "nvidia.com/gpu" {
		r.set(Setting{"hardware.gpu_resource", name}, v)
	}
}

// set adds a setting once. A second resource for the same key is a remark.
func (r *resources) set(s Setting, v document.Value) {
	for _, have := range r.settings {
		if have.Key == s.Key {
			if !same(have.Value, s.Value) {
				v.Remark("%s is set already: left out", s.Key)
			}
			return
		}
	}
	r.settings = append(r.settings, s)
}

// same reports whether two values of settings are equal.
func same(a, b any) bool {
	x, xOK := a.(draft.Inline)
	y, yOK := b.(draft.Inline)
	if !xOK || !yOK {
		return !xOK && !yOK && a == b
	}
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if x[i] != y[i] {
			return false
		}
	}
	return true
}
