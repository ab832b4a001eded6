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

// pingPongC is the program of the sample mpi-pingpong, which benchImage has.
const pingPongC = "../../../sample-benchmarks/mpi-pingpong/pingpong.c"

// debian is an image of a small Debian.
type debian struct {
	image    string
	packages string // that it has beside a small Debian
	program  string // in C, with MPI; compiled to /usr/local/bin/mpi-pingpong where there is one
}

// benchOn brings benchImage to the nodes. It is made once, in some minutes, from
// Debian's packages.
func benchOn(t *testing.T, w world) {
	t.Helper()
	debian{benchImage, "openssh-server,openmpi-bin,python3-mpi4py", pingPongC}.on(t, w)
}

// on brings an image to the nodes.
func (d debian) on(t *testing.T, w world) {
	t.Helper()
	here := true
	for _, node := range w.bed.Nodes {
		out, err := w.bed.Inside(t.Context(), node, "ctr", "-n", "k8s.io", "images", "ls", "-q")
		here = here && err == nil && strings.Contains(string(out), d.image+"\n")
	}
	if here {
		return
	}
	tar, err := d.tar(t.Context())
	if err == nil {
		err = w.bed.Import(t.Context(), tar)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// tar returns the image's tar, which is made once.
func (d debian) tar(ctx context.Context) (string, error) {
	root, err := kit.Root()
	if err != nil {
		return "", err
	}
	var source []byte
	if d.program != "" {
		if source, err = os.ReadFile(d.program); err != nil {
			return "", err
		}
	}
	sum := sha256.Sum256([]byte(d.image + d.packages + string(source)))
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
		return "", fmt.Errorf("wait for another who makes %s: %w", d.image, err)
	}
	tar := filepath.Join(dir, "image.tar")
	if _, err := os.Stat(tar); err == nil {
		return tar, nil
	}
	return tar, d.make(ctx, dir)
}

func (d debian) make(ctx context.Context, dir string) error {
	fresh := dir + ".new"
	if err := errors.Join(os.RemoveAll(fresh), os.Mkdir(fresh, 0o755)); err != nil {
		return err
	}
	args := []string{"--include=" + d.packages}
	if d.program != "" {
		program := filepath.Join(fresh, "mpi-pingpong")
		if err := compile(ctx, d.program, program); err != nil {
			return err
		}
		args = append(args, "--customize-hook=copy-in "+program+" /usr/local/bin")
	}
	rootfs := filepath.Join(fresh, "rootfs.tar")
	if err := strap(ctx, rootfs, args...); err != nil {
		return fmt.Errorf("make %s: %w", d.image, err)
	}
	if err := kit.Image(ctx, filepath.Join(fresh, "image.tar"), "one", "-ref", d.image, "-rootfs", rootfs); err != nil {
		return err
	}
	return errors.Join(os.Remove(rootfs), os.Rename(fresh, dir))
}

// compile compiles a program in C against the Open MPI of the Debian that images
// are made of, with that one's compiler, because this machine need have none.
func compile(ctx context.Context, source, program string) error {
	err := strap(ctx, os.DevNull, "--include=gcc,libc6-dev,libopenmpi-dev",
		"--customize-hook=copy-in "+source+" /tmp",
		`--customize-hook=chroot "$1" mpicc -O2 -Wall -Wextra -Werror -o /tmp/`+filepath.Base(program)+" /tmp/"+filepath.Base(source),
		"--customize-hook=copy-out /tmp/"+filepath.Base(program)+" "+filepath.Dir(program))
	if err != nil {
		return fmt.Errorf("compile %s: %w", source, err)
	}
	return nil
}

// strap makes a small Debian.
func strap(ctx context.Context, rootfs string, args ...string) error {
	args = append([]string{"-q", "--variant=minbase"}, args...)
	args = append(args, "bookworm", rootfs, "/etc/apt/sources.list.d/debian.sources")
	if out, err := exec.CommandContext(ctx, "mmdebstrap", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("mmdebstrap: %w\n%s", err, out)
	}
	return nil
}
