package real_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
	files, err := filepath.Glob("../../plan/transpile/testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no plans: %v", err)
	}
	for _, file := range files {
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

// level is the one of Pod Security that a plan keeps to.
func level(file string, plan []byte) string {
	switch {
	case bytes.Contains(plan, []byte("privileged: true")):
		return "privileged"
	case filepath.Base(file) == "restricted.yaml":
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
