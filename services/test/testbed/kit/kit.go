// Package kit builds the parts of a test bed, once: Kubernetes as one program, the
// program that keeps a cluster, and images from plain files. Parts of this tree alone lie
// in bin/testbed; parts that checkouts share lie in Cache, below a name that is a digest
// of their inputs.
package kit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Kit has the paths of the built parts.
type Kit struct {
	Bin    string // folder with Kubernetes, under the name of each of its parts
	Keeper string // the program that keeps a cluster
	Pause  string // tar of the image that holds a pod's namespaces
	Debian string // tar of the image debian:12-slim; empty where it was not asked for
}

// DebianImage is a small Debian, as its users name it.
const DebianImage = "docker.io/library/debian:12-slim"

// PauseImage holds a pod's namespaces.
const PauseImage = "docker.io/local/pause:1"

// parts are the names of Kubernetes' parts.
func parts() []string {
	return []string{"coredns", "etcd", "kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubectl", "kubelet"}
}

// Want selects parts.
type Want struct {
	Nodes bool // with images, and the nodes' Debian packages are installed
	// Oldest is the oldest Kubernetes that the platform works with instead of the
	// newest. It has no nodes.
	Oldest bool
}

// Build builds a kit, or finds an earlier one. The first time takes some minutes.
func Build(ctx context.Context, w Want) (Kit, error) {
	b, err := newBuilder()
	if err != nil {
		return Kit{}, err
	}
	return b.build(ctx, w)
}

// Root returns the folder of the whole project.
func Root() (string, error) {
	_, self, _, ok := runtime.Caller(0)
	for dir := filepath.Dir(self); ok && dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
	}
	dir, err := os.Getwd()
	for ; err == nil && dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
	}
	return "", errors.New("the project's folder, with go.work, is not found")
}

// Cache returns the folder for parts that all checkouts on this machine share: that of
// BAI_TESTBED_CACHE; else /var/cache/benchmark-ai/testbed for root, whose servers run as
// other users and must read it; else one in the user's cache.
func Cache() (string, error) {
	dir := os.Getenv("BAI_TESTBED_CACHE")
	if dir == "" && os.Geteuid() == 0 {
		dir = "/var/cache/benchmark-ai/testbed"
	}
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("find a folder for what tests build once (BAI_TESTBED_CACHE names another): %w", err)
		}
		dir = filepath.Join(user, "benchmark-ai", "testbed")
	}
	return dir, os.MkdirAll(dir, 0o755) //nolint:gosec // read by the users that servers run as
}

// builder builds the parts of the tree at root into out, and shared parts into cache. Several
// may work at a time, in one process or in several: each part has a lock of its own, so that
// one that takes a minute does not wait for Kubernetes, which takes many.
type builder struct{ root, out, cache string }

func newBuilder() (builder, error) {
	root, err := Root()
	if err != nil {
		return builder{}, err
	}
	b := builder{root: root, out: filepath.Join(root, "bin", "testbed")}
	if b.cache, err = Cache(); err != nil {
		return builder{}, err
	}
	return b, os.MkdirAll(b.out, 0o755) //nolint:gosec // as the rest of bin
}

// locked calls do while no other builder works on a part whose lock is in dir.
func locked(dir, part string, do func() error) error {
	lock, err := os.Create(filepath.Join(dir, part+".lock"))
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return errors.Join(fmt.Errorf("wait for another who makes %s for the test bed: %w", part, err), lock.Close())
	}
	return errors.Join(do(), lock.Close())
}

func (b builder) build(ctx context.Context, w Want) (k Kit, err error) {
	if k.Keeper, err = b.keeper(ctx); err != nil {
		return k, err
	}
	if k.Bin, err = b.kubernetes(ctx, "kubernetes", parts()); err != nil {
		return k, err
	}
	if w.Oldest {
		k.Bin, err = b.oldest(ctx, k.Bin)
	}
	if err != nil || !w.Nodes {
		return k, err
	}
	if err := Packages(ctx); err != nil {
		return k, err
	}
	if k.Pause, err = b.pause(ctx, k.Bin); err != nil {
		return k, err
	}
	k.Debian, err = b.debian(ctx)
	return k, err
}

// keeper is built each time: it is small, and Go's cache makes it fast.
func (b builder) keeper(ctx context.Context) (string, error) {
	path := filepath.Join(b.out, "bed")
	return path, locked(b.out, "bed", func() error {
		return run(ctx, filepath.Join(b.root, "services"), nil, "go", "build", "-trimpath", "-o", path, "./test/testbed/cmd")
	})
}

// oldest is the control plane of the oldest Kubernetes, with the newest's kubectl.
func (b builder) oldest(ctx context.Context, newest string) (string, error) {
	dir, err := b.kubernetes(ctx, "oldest", []string{"etcd", "kube-apiserver", "kube-controller-manager"})
	if err != nil {
		return "", err
	}
	kubectl := filepath.Join(dir, "kubectl")
	if err := os.Remove(kubectl); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return dir, os.Symlink(filepath.Join(newest, "kubectl"), kubectl)
}

// kubernetes is one program with a link for each of its parts.
func (b builder) kubernetes(ctx context.Context, module string, parts []string) (string, error) {
	src := filepath.Join(b.root, "services", "test", "testbed", module)
	return b.cached(module, src, func(dir string) error {
		env := []string{"CGO_ENABLED=0", "GOWORK=off"}
		version, err := output(ctx, src, env, "go", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stderr, "building Kubernetes", version, "for tests: some minutes, once")
		if err := run(ctx, src, env, "nice", "go", "build", "-trimpath", "-ldflags", ldflags(version), "-o",
			dir+"/", "./cmd/..."); err != nil {
			return err
		}
		for _, p := range parts {
			if err := os.Symlink("kube", filepath.Join(dir, p)); err != nil {
				return err
			}
		}
		return nil
	})
}

// ldflags have the program say its version, without which its parts do not
// believe each other.
func ldflags(version string) string {
	numbers := strings.Split(strings.TrimPrefix(version, "v"), ".")
	flags := []string{"-s", "-w"}
	for _, p := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for name, value := range map[string]string{
			"gitVersion": version, "gitMajor": numbers[0],
			"gitMinor": numbers[1], "gitTreeState": "clean",
		} {
			flags = append(flags, "-X "+p+"."+name+"="+value)
		}
	}
	slices.Sort(flags)
	return strings.Join(flags, " ")
}

// pause is the image of the program of that name.
func (b builder) pause(ctx context.Context, bin string) (string, error) {
	tool, err := b.imageTool(ctx)
	if err != nil {
		return "", err
	}
	dir, err := b.cached("pause", filepath.Join(b.root, "services", "test", "testbed", "kubernetes", "cmd", "pause"),
		func(dir string) error {
			return image(ctx, tool, filepath.Join(dir, "image.tar"), "one", "-ref", PauseImage, "-entrypoint", "/pause", "-user",
				"65535:65535", filepath.Join(bin, "pause")+"=/pause")
		})
	return filepath.Join(dir, "image.tar"), err
}

// debian is made from Debian's packages.
func (b builder) debian(ctx context.Context) (string, error) {
	tool, err := b.imageTool(ctx)
	if err != nil {
		return "", err
	}
	dir, err := b.cached("debian", filepath.Join(b.root, "services", "test", "testbed", "kit"), func(dir string) error {
		fmt.Fprintln(os.Stderr, "making the image of a small Debian: half a minute, once")
		rootfs := filepath.Join(dir, "rootfs.tar")
		if err := strap(ctx, rootfs); err != nil {
			return err
		}
		if err := image(ctx, tool, filepath.Join(dir, "image.tar"), "one", "-ref", DebianImage, "-rootfs", rootfs); err != nil {
			return err
		}
		return os.Remove(rootfs)
	})
	return filepath.Join(dir, "image.tar"), err
}

// imageTool makes images from files.
func (b builder) imageTool(ctx context.Context) (string, error) {
	path := filepath.Join(b.out, "images")
	return path, locked(b.out, "images", func() error {
		return run(ctx, filepath.Join(b.root, "deploy", "images"), []string{"GOWORK=off", "CGO_ENABLED=0"}, "go", "build",
			"-trimpath", "-o", path, ".")
	})
}

// Image makes images with the tool of deploy/images, whose words are args, and
// packs them into one file, as they are brought to nodes.
func Image(ctx context.Context, tar string, args ...string) error {
	b, err := newBuilder()
	if err != nil {
		return err
	}
	tool, err := b.imageTool(ctx)
	if err != nil {
		return err
	}
	return image(ctx, tool, tar, args...)
}

func image(ctx context.Context, tool, tar string, args ...string) error {
	layout := tar + ".layout"
	if err := run(ctx, "", nil, append([]string{tool, args[0], "-out", layout}, args[1:]...)...); err != nil {
		return err
	}
	return errors.Join(pack(ctx, layout, tar), os.RemoveAll(layout))
}

// pack packs a folder, as images are brought to nodes.
func pack(ctx context.Context, dir, tar string) error {
	return run(ctx, dir, nil, "tar", "--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "-cf", tar, ".")
}

// cached makes a folder in the cache, named by a digest of src's Go files, unless it
// exists.
func (b builder) cached(name, src string, fill func(dir string) error) (string, error) {
	sum, err := sumOf(src)
	if err != nil {
		return "", err
	}
	return b.cachedBySum(name, sum, fill)
}

// cachedBySum makes a folder in the cache for a digest of all inputs, unless it exists.
// Those of other digests remain, for other checkouts, until they have been unused for a
// month.
func (b builder) cachedBySum(name, sum string, fill func(dir string) error) (string, error) {
	dir, fresh := filepath.Join(b.cache, name+"-"+sum), filepath.Join(b.cache, name+".new")
	return dir, locked(b.cache, name, func() error {
		now := time.Now()
		if err := os.Chtimes(dir, now, now); err == nil {
			return nil
		}
		if err := errors.Join(os.RemoveAll(fresh), os.Mkdir(fresh, 0o755)); err != nil { //nolint:gosec // read by the users that servers run as
			return err
		}
		if err := fill(fresh); err != nil {
			return fmt.Errorf("make %s for the test bed: %w", name, err)
		}
		b.evict(name, now.AddDate(0, -1, 0))
		return os.Rename(fresh, dir)
	})
}

// evict removes the folders of a name that were last used before a time.
func (b builder) evict(name string, before time.Time) {
	all, _ := filepath.Glob(filepath.Join(b.cache, name+"-*")) // none, then
	for _, path := range all {
		if info, err := os.Stat(path); err == nil && info.ModTime().Before(before) {
			_ = os.RemoveAll(path) // next time, else
		}
	}
}

func sumOf(src string) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, runtime.Version(), runtime.GOARCH)
	err := filepath.WalkDir(src, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") {
			return err
		}
		if ext := filepath.Ext(path); ext != ".go" && ext != ".mod" && ext != ".sum" {
			return nil
		}
		body, err := os.ReadFile(path) //nolint:gosec // the project's
		name, _ := filepath.Rel(src, path)
		fmt.Fprintf(h, "%s %d\n%s", name, len(body), body)
		return err
	})
	return hex.EncodeToString(h.Sum(nil))[:12], err
}

func run(ctx context.Context, dir string, env []string, args ...string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // the project's own
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

func output(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // the project's own
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
