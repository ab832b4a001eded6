// Package deployedtest gives tests the settings of services in deploy/kubernetes.
package deployedtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/config"
	"github.com/benchmark-ai/bai/services/test/testbed/kit"
)

// WantLoaded loads the settings of a service for every combination of components, and
// fails the test if the service does not accept them.
func WantLoaded(t *testing.T, empty func() config.Validator) {
	t.Helper()
	for name, components := range map[string][]string{
		"the base":                   nil,
		"with Elasticsearch":         {"elasticsearch"},
		"with a bucket":              {"s3"},
		"with Jobs that fetch":       {"fetch-jobs"},
		"with Kubeflow's operator":   {"mpi-operator"},
		"with objects of operators":  {"manifests"},
		"with volcano":               {"volcano"},
		"with all that can be added": {"elasticsearch", "s3", "fetch-jobs", "mpi-operator"},
	} {
		if err := config.Load(Folder(t, components...), empty()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Folder returns a folder with the settings of the base, in which those of components
// replace files with the same name.
func Folder(t *testing.T, components ...string) string {
	t.Helper()
	root, err := kit.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, from := range append([]string{"base/config"}, components...) {
		files, err := filepath.Glob(filepath.Join(root, "deploy", "kubernetes", from, "*.toml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			name := filepath.Base(file)
			if name == "task.toml" { // settings of Jobs, not of services
				continue
			}
			text, err := os.ReadFile(file)
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}
