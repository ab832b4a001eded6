package real_test

import (
	"testing"

	"github.com/benchmark-ai/bai/services/test/testbed/kit"
)

// importBenchImage brings the image of benchmarks of several pods to the nodes.
func importBenchImage(t *testing.T, w fixture) {
	t.Helper()
	importDebianImage(t, w, kit.Bench())
}

// importDebianImage brings an image to the nodes.
func importDebianImage(t *testing.T, w fixture, image kit.Debian) {
	t.Helper()
	tar, err := image.Tar(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	importImage(t, w.cluster, tar)
}
