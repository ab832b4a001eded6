package deploy_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	kinds "github.com/benchmark-ai/bai/descriptors/manifest"
	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/gateway/preflight"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
	"github.com/benchmark-ai/bai/services/plan/inject"
	"github.com/benchmark-ai/bai/services/plan/transpile"
	"github.com/benchmark-ai/bai/services/test/deploy/manifest"
)

// The component lists every known kind that needs an operator, and its roles have rights on
// exactly the kinds of its settings.
func TestTheRightsForManifestsAreThoseOfTheKindsInTheSettings(t *testing.T) {
	var component struct {
		Executor struct {
			Pods struct {
				Manifests map[string]inject.Kind `toml:"manifests"`
			} `toml:"pods"`
		} `toml:"executor"`
		Kubernetes kube.Settings `toml:"kubernetes"`
	}
	if _, err := toml.DecodeFile(base+"/../manifests/manifests.toml", &component); err != nil {
		t.Fatal(err)
	}
	listed := component.Executor.Pods.Manifests
	if err := (transpile.Settings{Manifests: listed}).Validate("executor.pods"); err != nil {
		t.Error(err)
	}
	if err := kube.ValidateManifests(component.Kubernetes, listed); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(ofOperators(), slices.Sorted(maps.Keys(listed))); diff != "" {
		t.Errorf("kinds of operators (-want +got):\n%s", diff)
	}
	resources := map[string]bool{}
	for _, name := range component.Kubernetes.Kinds {
		parts := strings.SplitN(name, ".", 3)
		resources[parts[2]+"/"+parts[0]] = true
	}
	want := map[string]map[string]bool{}
	for _, role := range []string{"executor-manifests: create delete list", "watcher-manifests: list watch"} {
		want[role] = resources
	}
	if diff := cmp.Diff(want, grantedBy(t, base+"/../manifests/rbac.yaml")); diff != "" {
		t.Errorf("what the roles grant (-want +got):\n%s", diff)
	}
}

// ofOperators are the known kinds that need an operator.
func ofOperators() []string {
	var all []string
	for _, k := range kinds.Kinds() {
		if k.Operator != "" {
			all = append(all, k.ResourceKind())
		}
	}
	slices.Sort(all)
	return all
}

// grantedBy returns the resources of the roles of a file, by their names and verbs.
func grantedBy(t *testing.T, file string) map[string]map[string]bool {
	t.Helper()
	objects, err := manifest.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	granted := map[string]map[string]bool{}
	for _, o := range objects {
		role, ok := o.(*rbacv1.Role)
		if !ok {
			continue
		}
		for _, rule := range role.Rules {
			name := role.Name + ": " + strings.Join(rule.Verbs, " ")
			if granted[name] == nil {
				granted[name] = map[string]bool{}
			}
			for _, resource := range rule.Resources {
				granted[name][rule.APIGroups[0]+"/"+resource] = true
			}
		}
	}
	return granted
}

// The executor makes a PodGroup of each run for volcano: the component gives it the rights that
// preflight asks for, and settings with which it finds the group again.
func TestTheRightsForVolcanoAreThoseThatPreflightAsksFor(t *testing.T) {
	var component struct {
		Executor struct {
			Pods transpile.Settings `toml:"pods"`
		} `toml:"executor"`
		Kubernetes kube.Settings `toml:"kubernetes"`
	}
	if _, err := toml.DecodeFile(base+"/../volcano/volcano.toml", &component); err != nil {
		t.Fatal(err)
	}
	const text = "spec_version = \"1.0\"\n[info]\ndescription = \"x\"\n[hardware]\ncpus = 1\n[env]\ndocker_image = \"x:1\"\n"
	d, faults := parser.Parse("d.toml", []byte(text))
	if d == nil {
		t.Fatal(faults)
	}
	w, err := transpile.Preview(d, []byte(text), false, component.Executor.Pods)
	if err != nil {
		t.Fatal(err)
	}
	const group = "scheduling.volcano.sh"
	var verbs []string
	for _, p := range preflight.NewInquiry(preflight.Requirements{Objects: w.Objects}, preflight.Settings{Executor: "executor", Watcher: "watcher"}).Permissions {
		if p.Group == group {
			verbs = append(verbs, p.Account+" "+p.Verb+" "+p.Resource)
		}
	}
	if diff := cmp.Diff([]string{"executor create podgroups", "executor delete podgroups", "executor list podgroups"}, verbs); diff != "" {
		t.Errorf("what preflight asks for (-want +got):\n%s", diff)
	}
	want := map[string]map[string]bool{"executor-volcano: create delete list": {group + "/podgroups": true}}
	if diff := cmp.Diff(want, grantedBy(t, base+"/../volcano/rbac.yaml")); diff != "" {
		t.Errorf("what the role grants (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"podgroups.v1beta1." + group}, component.Kubernetes.Kinds); diff != "" {
		t.Errorf("kinds that are found again (-want +got):\n%s", diff)
	}
}
