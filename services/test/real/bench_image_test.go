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
	here := true
	for _, node := range w.bed.Nodes {
		out, err := w.bed.Inside(t.Context(), node, "ctr", "-n", "k8s.io", "images", "ls", "-q")
		here = here && err == nil && strings.Contains(string(out), benchImage+"\n")
	}
	if here {
		return
	}
	tar, err := benchTar(t.Context())
	if err == nil {
		err = w.bed.Import(t.Context(), tar)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// benchTar returns the image's tar.
func benchTar(ctx context.Context) (string, error) {
	root, err := kit.Root()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(benchImage + benchPackages))
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
		return "", fmt.Errorf("wait for another who makes %s: %w", benchImage, err)
	}
	tar := filepath.Join(dir, "image.tar")
	if _, err := os.Stat(tar); err == nil {
		return tar, nil
	}
	return tar, makeBench(ctx, dir)
}

func makeBench(ctx context.Context, dir string) error {
	fresh := dir + ".new"
	if err := errors.Join(os.RemoveAll(fresh), os.Mkdir(fresh, 0o755)); err != nil {
		return err
	}
	rootfs, layout := filepath.Join(fresh, "rootfs.tar"), filepath.Join(fresh, "layout")
	for _, args := range [][]string{
		{"mmdebstrap", "-q", "--variant=minbase", "--include=" + benchPackages, "bookworm", rootfs, "/etc/apt/sources.list.d/debian.sources"},
		{filepath.Join(shared.dir, "images"), "one", "-ref", benchImage, "-rootfs", rootfs, "-out", layout},
	} {
		if out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("make %s: %s: %w\n%s", benchImage, strings.Join(args, " "), err, out)
		}
	}
	if err := kit.Tar(ctx, layout, filepath.Join(fresh, "image.tar")); err != nil {
		return err
	}
	return errors.Join(os.Remove(rootfs), os.RemoveAll(layout), os.Rename(fresh, dir))
}
