package real_test

import (
	"testing"

	"github.com/benchmark-ai/bai/services/test/testbed/kit"
)

// benchOn brings the image of benchmarks of several pods to the nodes.
func benchOn(t *testing.T, w world) {
	t.Helper()
	debianOn(t, w, kit.Bench())
}

// debianOn brings an image to the nodes.
func debianOn(t *testing.T, w world, image kit.Debian) {
	t.Helper()
	tar, err := image.Tar(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	imported(t, w.bed, tar)
}
