// Package deploy checks the content of the folder deploy.
package deploy_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/test/deploy/manifest"
)

const base = "../../../deploy/kubernetes/base"

// all decodes every manifest, strictly.
func all(t *testing.T) []manifest.Object {
	t.Helper()
	var objects []manifest.Object
	err := filepath.WalkDir(base, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" || d.Name() == "kustomization.yaml" {
			return err
		}
		some, err := manifest.Read(path)
		objects = append(objects, some...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func TestEveryManifestIsWhatKubernetesKnows(t *testing.T) {
	if n := len(all(t)); n < 20 {
		t.Errorf("%d objects, want all of them", n)
	}
}

func TestEveryManifestIsPartOfItsKustomization(t *testing.T) {
	for _, dir := range []string{base, base + "/rbac"} {
		text, err := os.ReadFile(dir + "/kustomization.yaml")
		if err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(dir + "/*.yaml")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if name := filepath.Base(f); name != "kustomization.yaml" && !strings.Contains(string(text), "- "+name+"\n") {
				t.Errorf("%s is not in its kustomization.yaml", f)
			}
		}
	}
}

// settings reads a file of settings.
func settings(t *testing.T, path string) map[string]any {
	t.Helper()
	var v map[string]any
	if _, err := toml.DecodeFile(path, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// A component's settings file has the name of the base's file that it replaces, or both
// would be read; and every file is in its kustomization.
func TestEveryFileOfSettingsIsMounted(t *testing.T) {
	for _, dir := range []string{"base/config", "elasticsearch", "s3", "fetch-jobs", "mpi-operator", "pull-secrets", "networks", "manifests", "volcano"} {
		dir = base + "/../" + dir
		files, err := filepath.Glob(dir + "/*.toml")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no settings: %v", dir, err)
		}
		kustomization := strings.TrimSuffix(dir, "/config") + "/kustomization.yaml"
		text, err := os.ReadFile(kustomization)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			settings(t, f)
			if !strings.Contains(string(text), filepath.Base(f)+"\n") {
				t.Errorf("%s is not in %s", f, kustomization)
			}
		}
	}
	for _, f := range []string{"elasticsearch/store.toml", "s3/objects.toml"} {
		if _, err := os.Stat(base + "/config/" + filepath.Base(f)); err != nil {
			t.Errorf("%s is in place of nothing: %v", f, err)
		}
	}
}

// Credentials of the bucket are never in settings, but in files of a Secret that every
// user of them mounts; without a bucket the Secret may be missing.
func TestWhatOpensTheBucketIsASecretThatIsMounted(t *testing.T) {
	mounted := map[string]corev1.PodSpec{"fetch-jobs": fetchJob(t).Spec.Template.Spec}
	for _, d := range of[*appsv1.Deployment](t) {
		mounted[d.Name] = d.Spec.Template.Spec
	}
	s3, ok := settings(t, base+"/../s3/objects.toml")["objects"].(map[string]any)["s3"].(map[string]any)
	if !ok {
		t.Fatal("settings with a bucket do not say how it is reached")
	}
	for _, key := range []string{"access_key_file", "secret_key_file"} {
		path, ok := s3[key].(string)
		for _, name := range []string{"gateway", "fetcher", "fetch-jobs"} {
			if spec := mounted[name]; !ok || secretAt(spec, filepath.Dir(path)) != "object-store" {
				t.Errorf("%s mounts no Secret object-store at %q, where %s is", name, filepath.Dir(path), key)
			}
		}
	}
	for key, v := range s3 {
		if text, ok := v.(string); ok && strings.Contains(key, "key") && !strings.HasPrefix(text, "/") {
			t.Errorf("%s is %q, not a file", key, text)
		}
	}
}

// secretAt returns the Secret that need not be there and is mounted at a path.
func secretAt(s corev1.PodSpec, path string) string {
	for _, m := range s.Containers[0].VolumeMounts {
		for _, v := range s.Volumes {
			if m.MountPath == path && m.ReadOnly && v.Name == m.Name && v.Secret != nil && v.Secret.Optional != nil && *v.Secret.Optional {
				return v.Secret.SecretName
			}
		}
	}
	return ""
}

// fetchJob is the template of Jobs that bring data.
func fetchJob(t *testing.T) *batchv1.Job {
	t.Helper()
	objects, err := manifest.Read(base + "/../fetch-jobs/job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	job, ok := objects[0].(*batchv1.Job)
	if !ok || len(objects) != 1 {
		t.Fatalf("%d objects, want a Job alone", len(objects))
	}
	return job
}

// Each service signs its messages to the others, and no other pod has the signing key:
// neither pods of runs, which are in another namespace, nor fetching Jobs.
func TestOnlyServicesHaveTheKeyOfTheSeals(t *testing.T) {
	path, _ := settings(t, base+"/config/kafka.toml")["kafka"].(map[string]any)["seal_key_file"].(string)
	services := of[*appsv1.Deployment](t)
	if path == "" || len(services) != 6 {
		t.Fatalf("seal_key_file is %q, and there are %d services", path, len(services))
	}
	for _, d := range services {
		s := d.Spec.Template.Spec
		name := sealVolume(s)
		if !slices.ContainsFunc(s.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool {
			return name != "" && m.Name == name && m.MountPath == filepath.Dir(path) && m.ReadOnly
		}) {
			t.Errorf("%s does not mount Secret seal-key where %s is", d.Name, path)
		}
	}
	if sealVolume(fetchJob(t).Spec.Template.Spec) != "" {
		t.Error("Jobs that bring data have the key of the seals")
	}
}

// sealVolume returns the volume that has the key of the seals, empty for none.
func sealVolume(s corev1.PodSpec) string {
	for _, v := range s.Volumes {
		if v.Secret != nil && v.Secret.SecretName == "seal-key" && v.Secret.Optional == nil {
			return v.Name
		}
	}
	return ""
}

// Pods of runs read objects through the gateway, under the objects' own names: the
// Service that they use is the gateway's.
func TestPodsReadObjectsByWayOfTheGateway(t *testing.T) {
	pods, ok := settings(t, base+"/config/platform.toml")["executor"].(map[string]any)["pods"].(map[string]any)
	if want := fmt.Sprint(pods["gateway"]) + "/v1/runs/{run}"; !ok || pods["object_store"] != want {
		t.Errorf("executor.pods.object_store is %v, want %s", pods["object_store"], want)
	}
}

// of returns the objects of a type.
func of[T manifest.Object](t *testing.T) []T {
	t.Helper()
	var some []T
	for _, o := range all(t) {
		if o, ok := o.(T); ok {
			some = append(some, o)
		}
	}
	return some
}

func TestOnlyExecutorWatcherAndGatewayMaySpeakToKubernetes(t *testing.T) {
	bound, tokens := map[string]bool{}, map[string]bool{}
	for _, b := range of[*rbacv1.RoleBinding](t) {
		for _, s := range b.Subjects {
			bound[s.Name] = true
		}
		if b.Namespace != "benchmarks" && b.RoleRef.Name != lookers {
			t.Errorf("binding %s is in %s: nothing but runs is to be touched", b.Name, b.Namespace)
		}
	}
	for _, d := range of[*appsv1.Deployment](t) {
		s := d.Spec.Template.Spec
		if s.ServiceAccountName != d.Name {
			t.Errorf("%s runs as %q, not as itself", d.Name, s.ServiceAccountName)
		}
		if s.AutomountServiceAccountToken == nil || *s.AutomountServiceAccountToken {
			tokens[d.Name] = true
		}
	}
	want := map[string]bool{"executor": true, "watcher": true, "gateway": true}
	if diff := cmp.Diff(want, bound); diff != "" {
		t.Errorf("who has roles (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, tokens); diff != "" {
		t.Errorf("who has a token (-want +got):\n%s", diff)
	}
}

// lookers is the role with read access to objects beyond runs.
const lookers = "benchmark-ai-gateway"

// looking are the rules of read-only access.
func looking(t *testing.T) []rbacv1.PolicyRule {
	t.Helper()
	var rules []rbacv1.PolicyRule
	for _, r := range of[*rbacv1.ClusterRole](t) {
		rules = append(rules, r.Rules...)
	}
	for _, r := range of[*rbacv1.Role](t) {
		if r.Name == "gateway" || r.Namespace != "benchmarks" {
			rules = append(rules, r.Rules...)
		}
	}
	return rules
}

func TestTheGatewayAndWhoeverSeesTheWholeClusterOnlyLook(t *testing.T) {
	for _, r := range looking(t) {
		asks := slices.Equal(r.Resources, []string{"localsubjectaccessreviews"}) // creates nothing
		if !asks && slices.ContainsFunc(r.Verbs, func(v string) bool { return v != "get" && v != "list" }) {
			t.Errorf("%v on %v: more than looking", r.Verbs, r.Resources)
		}
	}
	for _, b := range of[*rbacv1.ClusterRoleBinding](t) {
		for _, s := range b.Subjects {
			if s.Name != "gateway" && s.Name != "watcher" {
				t.Errorf("%s is granted %s in the whole cluster", s.Name, b.RoleRef.Name)
			}
		}
	}
}

func TestNoRoleIsWide(t *testing.T) {
	for _, role := range of[*rbacv1.Role](t) {
		for _, r := range role.Rules {
			if slices.Contains(slices.Concat(r.Verbs, r.Resources, r.APIGroups), "*") {
				t.Errorf("role %s has a *", role.Name)
			}
			reads := slices.ContainsFunc(r.Verbs, func(v string) bool { return v == "get" || v == "list" || v == "watch" })
			if reads && slices.Contains(r.Resources, "secrets") {
				t.Errorf("role %s may read secrets", role.Name)
			}
		}
	}
}

func TestEveryServiceKeepsToRestrictedPodSecurity(t *testing.T) {
	n := 0
	for _, o := range all(t) {
		d, ok := o.(*appsv1.Deployment)
		if !ok {
			continue
		}
		n++
		restricted(t, d.Name, d.Spec.Template.Spec)
		if diff := cmp.Diff(d.Spec.Selector, &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": d.Name}}); diff != "" {
			t.Errorf("%s selects (-want +got):\n%s", d.Name, diff)
		}
	}
	if n != 6 {
		t.Errorf("%d deployments, want 6", n)
	}
}

func TestOnlyPullSecretsThatAreNamedMayBeRead(t *testing.T) {
	pods, ok := settings(t, base+"/../pull-secrets/pull-secrets.toml")["executor"].(map[string]any)["pods"].(map[string]any)
	if !ok {
		t.Fatal("the component has no settings of pods")
	}
	objects, err := manifest.Read(base + "/../pull-secrets/rbac.yaml")
	if err != nil || len(objects) != 2 || !slices.ContainsFunc(rules(objects[0]), ofSecrets) {
		t.Fatalf("%d objects, and no role of Secrets first: %v", len(objects), err)
	}
	for _, o := range append(objects, all(t)...) {
		for _, rule := range slices.DeleteFunc(slices.Clone(rules(o)), func(r rbacv1.PolicyRule) bool { return !ofSecrets(r) }) {
			creates := slices.Equal(rule.Verbs, []string{"create", "deletecollection"})
			named := slices.Equal(rule.Verbs, []string{"get"}) && len(rule.ResourceNames) > 0 && fmt.Sprint(rule.ResourceNames) == fmt.Sprint(pods["pull_secrets"])
			if _, wide := o.(*rbacv1.ClusterRole); wide || !creates && !named {
				t.Errorf("%s may %q of secrets %q", o.GetName(), rule.Verbs, rule.ResourceNames)
			}
		}
	}
}

func ofSecrets(r rbacv1.PolicyRule) bool {
	return slices.Contains(r.Resources, "secrets") || slices.Contains(r.Resources, "*")
}

// rules are those of a role.
func rules(o manifest.Object) []rbacv1.PolicyRule {
	switch o := o.(type) {
	case *rbacv1.Role:
		return o.Rules
	case *rbacv1.ClusterRole:
		return o.Rules
	}
	return nil
}

func restricted(t *testing.T, name string, s corev1.PodSpec) {
	t.Helper()
	if c := s.SecurityContext; c == nil || c.RunAsNonRoot == nil || !*c.RunAsNonRoot || c.SeccompProfile == nil {
		t.Errorf("%s may run as root, or without a seccomp profile", name)
	}
	for _, c := range s.Containers {
		x := c.SecurityContext
		if x == nil || x.AllowPrivilegeEscalation == nil || *x.AllowPrivilegeEscalation || x.ReadOnlyRootFilesystem == nil || !*x.ReadOnlyRootFilesystem ||
			x.Capabilities == nil || len(x.Capabilities.Drop) != 1 || x.Capabilities.Drop[0] != "ALL" {
			t.Errorf("%s: container %s has more than it needs: %+v", name, c.Name, x)
		}
		if c.LivenessProbe == nil || c.ReadinessProbe == nil {
			t.Errorf("%s: container %s has no probes", name, c.Name)
		} else if c.ReadinessProbe.TimeoutSeconds < 6 { // /readyz takes up to 5 s, and names the unavailable dependencies
			t.Errorf("%s: container %s is asked whether it is ready for %d s only", name, c.Name, c.ReadinessProbe.TimeoutSeconds)
		}
	}
}
