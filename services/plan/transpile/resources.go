package transpile

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/benchmark-ai/bai/descriptors"
)

// resources returns the requests and limits of the benchmark. CPU and memory have equal
// requests and limits unless the descriptor gives other ones, so that other pods on the node
// do not change the measurement. On a cluster that enforces no limits, they only have
// requests.
func (b builder) resources() corev1.ResourceRequirements {
	h := b.role.Hardware
	requests, limits := corev1.ResourceList{}, corev1.ResourceList{}
	addAmounts(requests, map[string]string{"cpu": h.CPUs, "memory": h.Memory})
	maps.Copy(limits, requests)
	addAmounts(limits, h.Limits)
	addAmounts(requests, h.Requests)
	if b.settings.NoLimits {
		onlyRequest(requests, limits, b.settings.OneMachine)
	}
	if n := b.role.GPUs(b.settings.Instances); n > 0 {
		limits[gpuResource(h)] = *resource.NewQuantity(int64(n), resource.DecimalSI)
	}
	if r := b.role.PodNetwork.RDMA; r != nil {
		devices := *resource.NewQuantity(int64(r.Count), resource.DecimalSI)
		requests[corev1.ResourceName(r.Resource)], limits[corev1.ResourceName(r.Resource)] = devices, devices
	}
	return requirements(requests, limits)
}

// stepResources returns the requests and limits of a step: those of the benchmark without
// its devices and large pages, but for GPUs.
func (b builder) stepResources() corev1.ResourceRequirements {
	gpus := string(gpuResource(b.role.Hardware))
	devices := func(name corev1.ResourceName, _ resource.Quantity) bool {
		return !descriptors.Overcommits(string(name)) && string(name) != gpus
	}
	r := b.resources()
	maps.DeleteFunc(r.Requests, devices)
	maps.DeleteFunc(r.Limits, devices)
	return requirements(r.Requests, r.Limits)
}

// requirements leaves out lists that are empty.
func requirements(requests, limits corev1.ResourceList) corev1.ResourceRequirements {
	r := corev1.ResourceRequirements{}
	if len(requests) > 0 {
		r.Requests = requests
	}
	if len(limits) > 0 {
		r.Limits = limits
	}
	return r
}

// addAmounts adds the amounts of a descriptor, which the parser has read, to a list.
func addAmounts(list corev1.ResourceList, amounts map[string]string) {
	for name, text := range amounts {
		if q, err := resource.ParseQuantity(text); text != "" && err == nil {
			list[corev1.ResourceName(name)] = q
		}
	}
}

// onlyRequest takes limits away that the cluster does not enforce. A resource with a limit
// alone has that as its request. On one machine the requests are the limits, and its disk is
// not divided.
func onlyRequest(requests, limits corev1.ResourceList, oneMachine bool) {
	for _, name := range slices.Collect(maps.Keys(limits)) {
		if !descriptors.Overcommits(string(name)) {
			continue
		}
		if _, ok := requests[name]; !ok || oneMachine {
			requests[name] = limits[name]
		}
		delete(limits, name)
	}
	if oneMachine {
		delete(requests, corev1.ResourceEphemeralStorage)
	}
}

func gpuResource(h descriptors.Hardware) corev1.ResourceName {
	if h.GPUResource == "" {
		return "nvidia.com/gpu"
	}
	return corev1.ResourceName(h.GPUResource)
}
