package real_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/benchmark-ai/bai/services/test/testbed/kit"
)

// benchImage is a small Debian with what benchmarks of several pods need.
const benchImage = "docker.io/local/bench:1"

// benchPackages are what benchImage has beside a small Debian.
const benchPackages = "openssh-server,openmpi-bin,python3-mpi4py"

// benchOn brings benchImage to the nodes. It is made once, in some minutes, from
// Debian's packages.
func benchOn(t *testing.T, w world) {
	t.Helper()
	debianOn(t, w, benchImage, benchPackages)
}

// debianOn brings an image of a small Debian with packages to the nodes.
func debianOn(t *testing.T, w world, image, packages string) {
	t.Helper()
	here := true
	for _, node := range w.bed.Nodes {
		out, err := w.bed.Inside(t.Context(), node, "ctr", "-n", "k8s.io", "images", "ls", "-q")
		here = here && err == nil && strings.Contains(string(out), image+"\n")
	}
	if here {
		return
	}
	tar, err := debianTar(t.Context(), image, packages)
	if err == nil {
		err = w.bed.Import(t.Context(), tar)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// debianTar returns the image's tar, which is made once.
func debianTar(ctx context.Context, image, packages string) (string, error) {
	root, err := kit.Root()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(image + packages))
	dir := filepath.Join(root, "bin", "testbed", "bench-"+hex.EncodeToString(sum[:6]))
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	lock, err := os.Create(dir + ".lock")
	if err != nil {
		return "", err
	}
	defer lock.Close() //nolint:errcheck // it ends with the file
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("wait for another who makes %s: %w", image, err)
	}
	tar := filepath.Join(dir, "image.tar")
	if _, err := os.Stat(tar); err == nil {
		return tar, nil
	}
	return tar, makeDebian(ctx, dir, image, packages)
}

func makeDebian(ctx context.Context, dir, image, packages string) error {
	fresh := dir + ".new"
	if err := errors.Join(os.RemoveAll(fresh), os.Mkdir(fresh, 0o755)); err != nil {
		return err
	}
	rootfs := filepath.Join(fresh, "rootfs.tar")
	out, err := exec.CommandContext(ctx, "mmdebstrap", "-q", "--variant=minbase", "--include="+packages, "bookworm", rootfs, "/etc/apt/sources.list.d/debian.sources").CombinedOutput()
	if err != nil {
		return fmt.Errorf("make %s: %w\n%s", image, err, out)
	}
	if err := kit.Image(ctx, filepath.Join(fresh, "image.tar"), "one", "-ref", image, "-rootfs", rootfs); err != nil {
		return err
	}
	return errors.Join(os.Remove(rootfs), os.Rename(fresh, dir))
}
