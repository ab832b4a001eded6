package real_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/benchmark-ai/bai/services/test/testbed"
)

// TestEveryPlanIsWhatTheAPIServerAccepts applies the golden objects of each example and
// each kind of settings, as a server-side dry run, with the Pod Security level that the
// pods promise.
func TestEveryPlanIsWhatTheAPIServerAccepts(t *testing.T) {
	t.Parallel()
	testCluster := testbed.API(t)
	scopes := map[string]string{}
	for _, level := range []string{"privileged", "baseline", "restricted"} {
		scopes[level] = testCluster.Namespace(t)
		testCluster.Run(t, "label", "namespace", scopes[level], "pod-security.kubernetes.io/enforce="+level, "--overwrite")
	}
	for _, file := range slices.Concat(plansOf(t, "*.yaml"), plansOf(t, "networks/*.yaml")) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text = bytes.ReplaceAll(text, []byte("\n  namespace: benchmarks\n"), []byte("\n  namespace: "+scopes[level(file, text)]+"\n"))
			known := slices.DeleteFunc(bytes.Split(text, []byte("\n---\n")), func(document []byte) bool { return isForeign(t, testCluster, document) })
			if len(known) == 0 {
				t.Fatal("the API server knows none of its kinds")
			}
			wantAccepted(t, testCluster, bytes.Join(known, []byte("\n---\n")))
		})
	}
}

// plansOf returns the golden files of a pattern.
func plansOf(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob("../../plan/transpile/testdata/" + pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no plans: %v", err)
	}
	return files
}

// TestPodsWithRightsAreRefusedInTheNamespaceThatIsShipped creates the pods of each strategy
// in each network as a server-side dry run, at the level of the base and at that of the
// component networks.
func TestPodsWithRightsAreRefusedInTheNamespaceThatIsShipped(t *testing.T) {
	t.Parallel()
	testCluster := testbed.API(t)
	shipped, other := testCluster.Namespace(t), testCluster.Namespace(t)
	testCluster.Run(t, "label", "namespace", other, "pod-security.kubernetes.io/enforce=privileged", "--overwrite")
	for _, file := range plansOf(t, "networks/*.yaml") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		refused := false
		for i, pod := range podsOf(t, text) {
			name := filepath.Join(t.TempDir(), "pod.yaml")
			if err := os.WriteFile(name, pod, 0o600); err != nil {
				t.Fatal(err)
			}
			testCluster.Run(t, "-n", other, "create", "-f", name, "--dry-run=server", "--validate=strict")
			out, err := testCluster.Try(t.Context(), "-n", shipped, "create", "-f", name, "--dry-run=server")
			if err != nil && !strings.Contains(out+err.Error(), "violates PodSecurity") {
				t.Errorf("%s, pod %d: %s (%v)", filepath.Base(file), i, out, err)
			}
			refused = refused || err != nil
		}
		if want := level(file, text) == "privileged"; refused != want {
			t.Errorf("%s: refused in the shipped namespace: %t, want %t", filepath.Base(file), refused, want)
		}
	}
}

// podsOf returns a pod of each Job of a plan.
func podsOf(t *testing.T, plan []byte) [][]byte {
	t.Helper()
	var pods [][]byte
	for document := range bytes.SplitSeq(plan, []byte("\n---\n")) {
		var job batchv1.Job
		if err := yaml.Unmarshal(document, &job); err != nil {
			t.Fatal(err)
		}
		if job.Kind != "Job" {
			continue
		}
		pod := corev1.Pod{ObjectMeta: job.Spec.Template.ObjectMeta, Spec: job.Spec.Template.Spec}
		pod.APIVersion, pod.Kind, pod.GenerateName = "v1", "Pod", "dry-"
		text, err := yaml.Marshal(pod)
		if err != nil {
			t.Fatal(err)
		}
		pods = append(pods, text)
	}
	return pods
}

// level is the one of Pod Security that a plan keeps to.
func level(file string, plan []byte) string {
	for _, right := range []string{"privileged: true", "hostNetwork: true", "- NET_ADMIN", "- IPC_LOCK"} {
		if bytes.Contains(plan, []byte(right)) {
			return "privileged"
		}
	}
	if filepath.Base(file) == "restricted.yaml" {
		return "restricted"
	}
	return "baseline"
}

// isForeign reports whether a document is of a kind that has to be installed in a
// cluster, and is not installed in this one.
func isForeign(t *testing.T, testCluster *testbed.Cluster, document []byte) bool {
	t.Helper()
	var of struct{ APIVersion, Kind string }
	if err := yaml.Unmarshal(document, &of); err != nil {
		t.Fatal(err)
	}
	group, _, named := strings.Cut(of.APIVersion, "/")
	if !named || !strings.Contains(group, ".") { // Kubernetes' own
		return false
	}
	_, err := testCluster.Try(t.Context(), "get", "--raw", "/apis/"+of.APIVersion)
	if err != nil {
		t.Logf("%s of %s is not known here", of.Kind, of.APIVersion)
	}
	return err != nil
}
