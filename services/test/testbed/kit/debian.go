package kit

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

// Debian is an image of a small Debian.
type Debian struct {
	Ref      string // by which descriptors name it
	Packages string // that it has beside a small Debian, separated by commas
	// Program is a program in C, with MPI, below the project's folder. It is
	// compiled to /usr/local/bin, under the name of its folder. Empty for none.
	Program string
	// MPI names Debian's packages with the mpicc by which the program is compiled, separated by commas. Empty for Open MPI's.
	MPI string
}

// Bench has the packages of benchmarks with several pods, and the program of the sample
// mpi-pingpong.
func Bench() Debian {
	return Debian{
		Ref: "docker.io/local/bench:1", Packages: "openssh-server,openmpi-bin,python3-mpi4py",
		Program: "sample-benchmarks/mpi-pingpong/pingpong.c",
	}
}

// MPICH has MPICH as its only MPI, and a program whose ranks end as its argument says.
func MPICH() Debian {
	return Debian{
		Ref: "docker.io/local/mpich:1", Packages: "openssh-server,mpich",
		Program: "services/test/e2e/testdata/mpiranks/ranks.c", MPI: "mpich,libmpich-dev",
	}
}

// Tar returns the image's tar. It is made once on a machine, in some minutes, from
// Debian's packages.
func (d Debian) Tar(ctx context.Context) (string, error) {
	b, err := newBuilder()
	if err != nil {
		return "", err
	}
	dir, err := b.image(ctx, d)
	return filepath.Join(dir, "image.tar"), err
}

func (b builder) image(ctx context.Context, d Debian) (string, error) {
	var source []byte
	if d.Program != "" {
		var err error
		if source, err = os.ReadFile(filepath.Join(b.root, d.Program)); err != nil {
			return "", err
		}
	}
	tool, err := b.imageTool(ctx)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(d.Ref + "\n" + d.Packages + "\n" + d.MPI + string(source)))
	return b.cachedBySum("image", hex.EncodeToString(sum[:6]), func(dir string) error {
		fmt.Fprintln(os.Stderr, "making the image", d.Ref, "for tests: some minutes, once")
		args := []string{"--include=" + d.Packages}
		if d.Program != "" {
			program := filepath.Join(dir, filepath.Base(filepath.Dir(d.Program)))
			if err := compile(ctx, cmp.Or(d.MPI, "libopenmpi-dev"), filepath.Join(b.root, d.Program), program); err != nil {
				return err
			}
			args = append(args, "--customize-hook=copy-in "+program+" /usr/local/bin")
		}
		rootfs := filepath.Join(dir, "rootfs.tar")
		if err := strap(ctx, rootfs, args...); err != nil {
			return err
		}
		if err := image(ctx, tool, filepath.Join(dir, "image.tar"), "one", "-ref", d.Ref, "-rootfs", rootfs); err != nil {
			return err
		}
		return os.Remove(rootfs)
	})
}

// compile compiles a C program against the MPI of the images' Debian that is in the
// packages, with its compiler, because this machine may have none.
func compile(ctx context.Context, mpi, source, program string) error {
	err := strap(ctx, os.DevNull, "--include=gcc,libc6-dev,"+mpi,
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
	args = append([]string{"mmdebstrap", "-q", "--variant=minbase"}, args...)
	return run(ctx, "", nil, append(args, "bookworm", rootfs, "/etc/apt/sources.list.d/debian.sources")...)
}
