package manifest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// WriteOverlay writes a kustomization of a folder with components, and with more text, into dir.
// All folders are absolute, or relative to the working directory.
func WriteOverlay(dir, more, resource string, components ...string) error {
	var text strings.Builder
	from, err := relative(dir, resource)
	if err != nil {
		return err
	}
	fmt.Fprintf(&text, "resources: [%q]\n%s", from, more)
	for i, c := range components {
		if i == 0 {
			text.WriteString("components:\n")
		}
		if from, err = relative(dir, c); err != nil {
			return err
		}
		fmt.Fprintf(&text, "- %q\n", from)
	}
	return os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text.String()), 0o600)
}

// relative returns the path of a folder from dir: kustomize takes no absolute one.
func relative(dir, folder string) (string, error) {
	whole, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	return filepath.Rel(dir, whole)
}
