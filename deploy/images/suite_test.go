package main

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/layout"

	"github.com/benchmark-ai/bai/deploy/images/debian"
)

func TestEachImageOfTheSuitesHasALockOfItsPackages(t *testing.T) {
	files, err := filepath.Glob("suite/*/image")
	if err != nil || len(files) < 6 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		im, err := debian.ReadImage(filepath.Dir(file))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := im.Lock(); err != nil {
			t.Error(err)
		}
	}
}

// The mirror has to be reached: without it the test fails where checks run, and is skipped
// elsewhere.
func TestImagesOfDebianPackagesAreMade(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	err := dispatch([]string{"suite", "-only", "iperf", "-out", out, "-prefix", "registry.example.org/x/suite-", "-tag", "v1+dirty"})
	if lost := new(net.OpError); errors.As(err, &lost) && os.Getenv("CI") == "" {
		t.Skipf("the mirror is not reached: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	index, err := layout.ImageIndexFromPath(out)
	if err != nil {
		t.Fatal(err)
	}
	m, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if ref := m.Manifests[0].Annotations["io.containerd.image.name"]; ref != "registry.example.org/x/suite-iperf:v1-dirty" {
		t.Errorf("name %q", ref)
	}
	text, err := os.ReadFile(filepath.Join(out, "suite-iperf.cdx.json"))
	if err != nil || !strings.Contains(string(text), `"pkg:deb/debian/iperf@`) {
		t.Errorf("%v in %.300s", err, text)
	}
}

func TestAnImageThatThereIsNotIsRefused(t *testing.T) {
	if err := dispatch([]string{"suite", "-only", "iperf,none", "-out", filepath.Join(t.TempDir(), "out"), "-dir", "suite", "-cache", t.TempDir(), "-mirror", "http://127.0.0.1:1"}); err == nil {
		t.Error("it was made")
	}
	if err := dispatch([]string{"rootfs", "-only", "iperf,fio", "-out", filepath.Join(t.TempDir(), "out")}); err == nil {
		t.Error("two root file systems are written to one file")
	}
}
