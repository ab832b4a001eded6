package points

import (
	"strings"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// InstanceType returns the instance types of the machines on which the last attempt of a run
// ran, else the one that its descriptor asks for, or "" if none is known.
func InstanceType(r store.Run) string {
	var types []string
	for _, use := range r.Machines[r.Attempt] {
		if use.InstanceType != "" {
			types = append(types, use.InstanceType)
		}
	}
	if len(types) > 0 {
		return strings.Join(sorted(types), ", ")
	}
	if d, _ := (parser.Parser{Accepted: true}).Parse("", []byte(r.Descriptor)); d != nil {
		return d.Hardware.InstanceType
	}
	return ""
}
