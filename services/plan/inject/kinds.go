package inject

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/descriptors/manifest"
)

// Kind is a kind of object that manifests may have, as settings list it.
type Kind struct {
	// Unknown says that the platform does not know the kind: its pods get no labels and no collector, and the descriptor says how it ends.
	Unknown bool `toml:"unknown"`
}

// CheckKinds names the kinds of settings that no manifest can have, below the table called name.
// The error is for the operator.
func CheckKinds(name string, kinds map[string]Kind) error {
	var errs []error
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		parts := strings.SplitN(kind, ".", 3)
		known := slices.ContainsFunc(manifest.Kinds(), func(k manifest.Kind) bool { return k.ResourceKind() == kind })
		at := fmt.Sprintf("%s.manifests.%q", name, kind)
		switch {
		case len(parts) < 2 || parts[0] == "" || parts[0] != strings.TrimSpace(parts[0]):
			errs = append(errs, fmt.Errorf("%s: write kind, version and group, as in Workflow.v1alpha1.argoproj.io", at))
		case kind == "Secret.v1":
			errs = append(errs, fmt.Errorf("%s: the platform would store the values of a Secret with the run: make it in the cluster", at))
		case !known && !kinds[kind].Unknown:
			errs = append(errs, fmt.Errorf("%s: the platform does not know this kind: write unknown = true, and nothing but the rules for all objects holds for its pods", at))
		case known && kinds[kind].Unknown:
			errs = append(errs, fmt.Errorf("%s: the platform knows this kind: leave unknown out", at))
		}
	}
	return errors.Join(errs...)
}
