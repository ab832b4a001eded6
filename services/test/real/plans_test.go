package real_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
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
			wantKnownAccepted(t, testCluster, text)
		})
	}
}

// wantKnownAccepted fails unless the API server would take all objects of a plan, but those of
// kinds that are not installed.
func wantKnownAccepted(t *testing.T, testCluster *testbed.Cluster, plan []byte) {
	t.Helper()
	known := 0
	for document := range bytes.SplitSeq(plan, []byte("\n---\n")) {
		warnings, err := testCluster.DryRun(t.Context(), "default", document)
		if meta.IsNoMatchError(err) && isForeign(t, document) {
			t.Logf("not known here: %v", err)
			continue
		}
		known++
		wantNoFault(t, warnings, err)
	}
	if known == 0 {
		t.Fatal("the API server knows none of its kinds")
	}
}

// TestADryRunFindsFaults holds the tests of plans to a server that refuses.
func TestADryRunFindsFaults(t *testing.T) {
	t.Parallel()
	testCluster := testbed.API(t)
	scope := testCluster.Namespace(t) // at the level baseline
	const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"dry-"},"spec":{"containers":[{"name":"a","image":"b"%s}]}}`
	for name, tt := range map[string]struct {
		text    string
		isFault func(error) bool
	}{
		"none": {fmt.Sprintf(pod, ""), func(err error) bool { return err == nil }},
		"a field that nobody knows": {fmt.Sprintf(pod, `,"imagine":1`), func(err error) bool {
			return err != nil && strings.Contains(err.Error(), `unknown field "spec.containers[0].imagine"`)
		}},
		"a value that is not allowed": {fmt.Sprintf(pod, `,"imagePullPolicy":"Perhaps"`), apierrors.IsInvalid},
		"a right":                     {fmt.Sprintf(pod, `,"securityContext":{"privileged":true}`), isBelowPodSecurity},
		"a kind that is not there":    {`{"apiVersion":"example.org/v1","kind":"Nothing","metadata":{"name":"a"}}`, meta.IsNoMatchError},
	} {
		if _, err := testCluster.DryRun(t.Context(), scope, []byte(tt.text)); !tt.isFault(err) {
			t.Errorf("%s: %v", name, err)
		}
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
			if _, err := testCluster.DryRun(t.Context(), other, pod); err != nil {
				t.Errorf("%s, pod %d: %v", filepath.Base(file), i, err)
			}
			_, err := testCluster.DryRun(t.Context(), shipped, pod)
			if err != nil && !isBelowPodSecurity(err) {
				t.Errorf("%s, pod %d: %v", filepath.Base(file), i, err)
			}
			refused = refused || err != nil
		}
		if want := level(file, text) == "privileged"; refused != want {
			t.Errorf("%s: refused in the shipped namespace: %t, want %t", filepath.Base(file), refused, want)
		}
	}
}

// isBelowPodSecurity reports whether a namespace refuses a pod for what it may do.
func isBelowPodSecurity(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "violates PodSecurity")
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

// isForeign reports whether a document is of a kind that has to be installed in a cluster.
func isForeign(t *testing.T, document []byte) bool {
	t.Helper()
	var of struct{ APIVersion string }
	if err := yaml.Unmarshal(document, &of); err != nil {
		t.Fatal(err)
	}
	group, _, named := strings.Cut(of.APIVersion, "/")
	return named && strings.Contains(group, ".")
}
