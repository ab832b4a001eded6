package points

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// hardware describes the machines of pods, equal ones once.
func hardware(pods []store.PodEnvironment) string {
	var all []string
	for _, p := range pods {
		all = append(all, machineText(p.Machine))
	}
	return strings.Join(sorted(all), "; ")
}

func machineText(m event.Machine) string {
	parts := []string{cmp.Or(m.CPUModel, m.Architecture, "unknown processor")}
	if m.CPUs > 0 {
		parts = append(parts, fmt.Sprintf("%d CPUs", m.CPUs))
	}
	if m.Memory > 0 {
		parts = append(parts, fmt.Sprintf("%.0f GiB", float64(m.Memory)/(1<<30)))
	}
	for _, g := range m.GPUs {
		if !slices.Contains(parts, g.Model) {
			parts = append(parts, g.Model)
		}
	}
	if m.Kernel != "" {
		parts = append(parts, "kernel "+m.Kernel)
	}
	return strings.Join(parts, ", ")
}
