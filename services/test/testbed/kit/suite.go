package kit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// suiteDir has the definitions of the images of the suites.
const suiteDir = "deploy/images/suite"

// A Suite is what an image of a suite has, on this machine.
type Suite struct {
	Root string // folder with the files of the image
	Bin  string // folder with programs of the image that run on this machine
}

// NewSuite unpacks the image of a suite, or finds an earlier one. Nothing is installed. Its
// programs run with the libraries of the image, whichever this machine has; they find other
// files where Debian has them.
func NewSuite(ctx context.Context, image string, programs ...string) (Suite, error) {
	b, err := newBuilder()
	if err != nil {
		return Suite{}, err
	}
	dir, err := b.suite(ctx, image, programs)
	return Suite{Root: filepath.Join(dir, "root"), Bin: filepath.Join(dir, "bin")}, err
}

func (b builder) suite(ctx context.Context, image string, programs []string) (string, error) {
	tool, err := b.imageTool(ctx)
	if err != nil {
		return "", err
	}
	sum, err := b.sumOfSuites(image)
	if err != nil {
		return "", err
	}
	own := sha256.Sum256(fmt.Appendf(nil, "%s %q\n%s", sum, programs, launcher))
	return b.cachedBySum("suite-"+image, hex.EncodeToString(own[:6]), func(dir string) error {
		fmt.Fprintln(os.Stderr, "unpacking the image of the suite", image, "for tests: once")
		rootfs := filepath.Join(dir, "rootfs.tar")
		err := errors.Join(
			run(ctx, "", nil, tool, "rootfs", "-dir", filepath.Join(b.root, suiteDir), "-only", image, "-cache",
				filepath.Join(b.cache, "deb"), "-out", rootfs),
			os.Mkdir(filepath.Join(dir, "root"), 0o755), //nolint:gosec // read by the users that servers run as
			os.Mkdir(filepath.Join(dir, "bin"), 0o755),  //nolint:gosec // likewise
		)
		if err != nil {
			return err
		}
		if err := run(ctx, dir, nil, "tar", "-C", "root", "-xf", rootfs, "--no-same-owner"); err != nil {
			return err
		}
		for _, name := range programs {
			file := filepath.Join(dir, "bin", filepath.Base(name))
			if err := os.WriteFile(file, []byte(strings.ReplaceAll(launcher, "PROGRAM", name)), 0o755); err != nil { //nolint:gosec // a program
				return err
			}
		}
		return os.Remove(rootfs)
	})
}

// launcher starts a program of an image by the dynamic linker of the image.
const launcher = `#!/bin/sh
root=$(cd "$(dirname "$0")/../root" && pwd)
lib=$root/usr/lib/x86_64-linux-gnu
exec "$lib/ld-linux-x86-64.so.2" --library-path "$lib:$lib/blas:$lib/lapack:$lib/ceph:$root/usr/lib:$root/usr/lib/openmpi-system" "$root/usr/bin/PROGRAM" "$@"
`

// SuitePrefix and SuiteTag name the images that SuiteImages makes: nodes find them without a
// registry.
const (
	SuitePrefix = "docker.io/local/suite-"
	SuiteTag    = "1"
)

// SuiteImages returns a tar with images of suites, made once.
func SuiteImages(ctx context.Context, names ...string) (string, error) {
	b, err := newBuilder()
	if err != nil {
		return "", err
	}
	dir, err := b.suiteImages(ctx, names)
	return filepath.Join(dir, "image.tar"), err
}

func (b builder) suiteImages(ctx context.Context, names []string) (string, error) {
	tool, err := b.imageTool(ctx)
	if err != nil {
		return "", err
	}
	sum, err := b.sumOfSuites(names...)
	if err != nil {
		return "", err
	}
	return b.cachedBySum("suite-images", sum, func(dir string) error {
		fmt.Fprintln(os.Stderr, "making the images of the suites", names, "for tests: once")
		return image(ctx, tool, filepath.Join(dir, "image.tar"), "suite", "-dir", filepath.Join(b.root, suiteDir),
			"-only", strings.Join(names, ","),
			"-cache", filepath.Join(b.cache, "deb"), "-prefix", SuitePrefix, "-tag", SuiteTag)
	})
}

// sumOfSuites returns a digest of the definitions and locks of images.
func (b builder) sumOfSuites(names ...string) (string, error) {
	h := sha256.New()
	for _, name := range names {
		for _, file := range []string{"image", "packages.lock"} {
			text, err := os.ReadFile(filepath.Join(b.root, suiteDir, name, file))
			if err != nil {
				return "", err
			}
			fmt.Fprintf(h, "%s/%s %d\n%s", name, file, len(text), text)
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:12], nil
}
