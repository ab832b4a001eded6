package deploy_test

import (
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/plan/transpile"
	"github.com/benchmark-ai/bai/services/test/deploy/manifest"
)

// enforced is the label with the Pod Security level that a namespace holds pods to.
const enforced = "pod-security.kubernetes.io/enforce"

// levelOf returns the level of the namespace of runs among some objects.
func levelOf(objects []manifest.Object) string {
	for _, o := range objects {
		if n, ok := o.(*corev1.Namespace); ok && n.Name == "benchmarks" {
			return n.Labels[enforced]
		}
	}
	return ""
}

func TestTheNamespaceOfRunsGivesRightsOnlyWithTheComponentThatNamesWhoHasThem(t *testing.T) {
	patched, err := manifest.Read(base + "/../networks/namespace.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if granted, err := manifest.Read(base + "/../networks/rbac.yaml"); err != nil || len(granted) != 2 {
		t.Errorf("%d objects in rbac.yaml: %v", len(granted), err)
	}
	levels := []string{levelOf(all(t)), levelOf(patched)}
	if diff := cmp.Diff([]string{transpile.Baseline, transpile.Privileged}, levels); diff != "" {
		t.Errorf("the base's level, and that of the component (-want +got):\n%s", diff)
	}
	var component struct {
		Executor struct {
			Pods struct {
				Security string                           `toml:"security"`
				Allow    map[string]descriptors.Allowlist `toml:"allow"`
			} `toml:"pods"`
		} `toml:"executor"`
	}
	if _, err := toml.DecodeFile(base+"/../networks/networks.toml", &component); err != nil {
		t.Fatal(err)
	}
	pods := component.Executor.Pods
	if err := (transpile.Settings{Security: pods.Security, Allow: pods.Allow}).Validate("executor.pods"); err != nil || pods.Security != levels[1] {
		t.Errorf("level %q in the settings: %v", pods.Security, err)
	}
	want := map[string]descriptors.Allowlist{"networks": {Rights: []string{descriptors.RightHostNetwork, descriptors.RightMTU, descriptors.RightRDMA}}}
	if diff := cmp.Diff(want, pods.Allow); diff != "" {
		t.Errorf("who has rights (-want +got):\n%s", diff)
	}
}
