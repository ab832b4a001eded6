package real_test

import (
	"context"
	"sync"
	"testing"

	"github.com/benchmark-ai/bai/services/test/deploy/manifest"
	"github.com/benchmark-ai/bai/services/test/testbed"
)

// TestTheBaseIsWhatTheAPIServerAccepts applies deploy/kubernetes to a cluster of its own,
// as a server-side dry run.
func TestTheBaseIsWhatTheAPIServerAccepts(t *testing.T) {
	testCluster := testbed.API(t)
	if !testCluster.Own {
		t.Skip("makes namespaces by the names that the platform has there")
	}
	const base = "../../../deploy/kubernetes/base"
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), waitTimeout)
		defer cancel()
		if out, err := testCluster.Try(ctx, "delete", "-f", base+"/namespaces.yaml", "--wait=false"); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	testCluster.Run(t, "apply", "-f", base+"/namespaces.yaml")
	folders := map[string]string{"base": base, "production": overlay(t, base+"/../production", base+"/../fetch-jobs")}
	for _, c := range []string{"fetch-jobs", "s3", "elasticsearch", "mpi-operator", "networks", "manifests", "volcano"} {
		folders[c] = overlay(t, base, base+"/../"+c)
	}
	var all sync.WaitGroup
	for name, folder := range folders { // a dry run changes nothing
		all.Go(func() {
			out, err := testCluster.Try(t.Context(), "apply", "-k", folder, "--dry-run=server", "--validate=strict")
			if t.Logf("%s:\n%s", name, out); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	all.Wait()
}

// overlay returns a folder with the base and components.
func overlay(t *testing.T, base string, components ...string) string {
	t.Helper()
	dir := t.TempDir()
	if err := manifest.WriteOverlay(dir, "", base, components...); err != nil {
		t.Fatal(err)
	}
	return dir
}
