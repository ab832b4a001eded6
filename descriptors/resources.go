package descriptors

import "strings"

// Overcommits reports whether a resource may have a limit above its request, by its name in
// the cluster: extended resources and hugepages may not.
func Overcommits(resource string) bool {
	return !strings.Contains(resource, "/") && !strings.HasPrefix(resource, "hugepages-")
}

// Key returns the key of h that stands for a resource by its name in the cluster, as memory
// does for "memory", or "" if there is none, or if h does not have it.
func (h Hardware) Key(resource string) string {
	switch {
	case resource == "cpu" && h.CPUs != "":
		return "cpus"
	case resource == "memory" && h.Memory != "":
		return "memory"
	case resource == h.GPUResource && h.GPUResource != "":
		if n, known := h.GPUCount(); h.GPUs != nil || known && n > 0 {
			return "gpus"
		}
	}
	return ""
}
