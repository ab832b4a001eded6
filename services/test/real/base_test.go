package real_test

import (
	"context"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/test/testbed"
)

// TestTheBaseIsWhatTheAPIServerAccepts applies deploy/kubernetes to a cluster
// that it may have to itself, up to what would be written.
func TestTheBaseIsWhatTheAPIServerAccepts(t *testing.T) {
	bed := testbed.API(t)
	if !bed.Own {
		t.Skip("makes namespaces by the names that the platform has there")
	}
	const base = "../../../deploy/kubernetes/base"
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if out, err := bed.Try(ctx, "delete", "-f", base+"/namespaces.yaml", "--wait=false"); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	bed.Run(t, "apply", "-f", base+"/namespaces.yaml")
	t.Log(bed.Run(t, "apply", "-k", base, "--dry-run=server", "--validate=strict"))
}
