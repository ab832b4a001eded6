//go:build linux

package shim

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// rootfs creates the root directories of a pod's containers: the machine's own directories, with a /proc of the pod, and the container's
// volumes over them. All mounts are in the shim's mount namespace and disappear with it. It creates no file in the machine's directories:
// if a mount point is missing, the directory that lacks it is replaced by one in memory that has it, with all its entries mounted into it.
type rootfs struct {
	dir  string // of the pod
	pod  shimapi.Pod
	base string // the root that all containers' roots are copies of
}

// newRootfs creates the root that all containers share. It must be called in namespaces of the pod's own, and checks that.
func newRootfs(dir string, p shimapi.Pod) (*rootfs, error) {
	r := &rootfs{dir: dir, pod: p, base: filepath.Join(dir, shimapi.Root, "base")}
	if pid, _, err := ownProcess(); err != nil || os.Getpid() != 1 || pid == 1 {
		return r, fmt.Errorf("make the pod's root: not in namespaces of its own: %w", syscall.EPERM)
	}
	defer unix.Umask(unix.Umask(0)) // permissions are used as given
	for _, step := range []func() error{isolateMounts, r.mountMemory, r.mountBase, r.mountProc} {
		if err := step(); err != nil {
			return r, fmt.Errorf("make the pod's root: %w", err)
		}
	}
	return r, nil
}

// isolateMounts hides the mounts of this namespace from the machine. Unmounts of the machine still take effect here.
func isolateMounts() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("keep mounts to the pod: %w", err)
	}
	return nil
}

// mountBase makes the machine's directories appear in the base. The roots must not appear in themselves at the pod's directory, so the
// directory that has them cannot be mounted elsewhere.
func (r *rootfs) mountBase() error {
	top := filepath.Dir(r.base)
	if err := os.MkdirAll(top, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", top, "tmpfs", 0, "mode=0755"); err != nil {
		return fmt.Errorf("mount memory: %w", err)
	}
	if err := unix.Mount("", top, "", unix.MS_UNBINDABLE, ""); err != nil {
		return fmt.Errorf("hide %s: %w", top, err)
	}
	if err := os.Mkdir(r.base, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", r.base, "tmpfs", 0, "mode=0755"); err != nil {
		return fmt.Errorf("mount memory: %w", err)
	}
	return mirrorDir("/", r.base, r.mountPoints())
}

func (r *rootfs) mountProc() error {
	if err := unix.Mount("proc", r.base+"/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return nil
}

func (r *rootfs) mountMemory() error {
	for _, v := range r.pod.Volumes {
		if !v.Memory {
			continue
		}
		options := "mode=1777"
		if v.Limit > 0 {
			options += fmt.Sprintf(",size=%d", v.Limit)
		}
		if err := unix.Mount("tmpfs", v.Path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
			return fmt.Errorf("mount volume %q: %w", v.Name, err)
		}
	}
	return nil
}

// mountPoints returns the mount points of all containers.
func (r *rootfs) mountPoints() *mountTree {
	top := &mountTree{}
	top.add("/proc")
	for _, dir := range r.privateDirs() {
		top.add(resolveLinks(dir))
	}
	for _, c := range r.pod.Containers {
		for _, m := range c.Mounts {
			top.add(resolveLinks(m.Path))
		}
		if c.Args[0] == pod.ImageBinary {
			top.add(pod.ImageBinary)
			top.add(pod.ImageBinary + pod.ShipSuffix)
		}
		if _, ok := pathInVolume(r.pod, c, c.MessagePath); !ok {
			top.add(resolveLinks(c.MessagePath))
		}
	}
	return top
}

// makeRoot returns the root directory of c.
func (r *rootfs) makeRoot(c shimapi.Container) (string, error) {
	root := filepath.Join(filepath.Dir(r.base), "c-"+c.Name)
	switch err := os.Mkdir(root, 0o755); {
	case errors.Is(err, fs.ErrExist):
		return root, r.createMessageFile(c, root) // the container is restarted
	case err != nil:
		return "", err
	}
	if err := unix.Mount(r.base, root, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return "", fmt.Errorf("make the container's root: %w", err)
	}
	if c.Args[0] == pod.ImageBinary {
		for _, suffix := range []string{"", pod.ShipSuffix} {
			if err := bindMount(r.pod.Binary+suffix, root, pod.ImageBinary+suffix, true); err != nil {
				return "", fmt.Errorf("mount %s: %w", pod.ImageBinary+suffix, err)
			}
		}
	}
	hidden, err := hideDir(c, root)
	if err != nil {
		return "", err
	}
	if err := r.mountPrivate(c, root); err != nil {
		return "", err
	}
	if err := r.mountVolumes(c, root); err != nil {
		return "", err
	}
	if err := r.createMessageFile(c, root); err != nil {
		return "", err
	}
	return root, remountReadOnly(hidden)
}

// mountVolumes mounts the volumes of c, a nested one after the outer one.
func (r *rootfs) mountVolumes(c shimapi.Container, root string) error {
	mounts := slices.SortedStableFunc(slices.Values(c.Mounts), func(a, b shimapi.Mount) int {
		return cmp.Compare(strings.Count(a.Path, "/"), strings.Count(b.Path, "/"))
	})
	for _, m := range mounts {
		source, err := mountSource(r.pod, m)
		if err == nil {
			err = bindMount(source, root, resolveLinks(m.Path), m.ReadOnly)
		}
		if err != nil {
			return fmt.Errorf("mount volume %q at %s: %w", m.Volume, m.Path, err)
		}
	}
	return nil
}

// hideDir mounts an empty folder over the directory that c must not see, and returns its path; empty if there is none. Mounts of c below
// that directory are mounted afterwards.
func hideDir(c shimapi.Container, root string) (string, error) {
	if c.HiddenDir == "" {
		return "", nil
	}
	at := filepath.Join(root, resolveLinks(c.HiddenDir))
	if _, err := os.Lstat(at); err != nil {
		return "", nil //nolint:nilerr // it is not seen anyway
	}
	if err := unix.Mount("tmpfs", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
		return "", fmt.Errorf("hide %s: %w", c.HiddenDir, err)
	}
	return at, nil
}

// remountReadOnly makes the hidden folder read-only: data written there would be lost without notice.
func remountReadOnly(hidden string) error {
	if hidden == "" {
		return nil
	}
	if err := unix.Mount("", hidden, "", unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, ""); err != nil {
		return fmt.Errorf("hide %s: %w", hidden, err)
	}
	return nil
}

// privateDirs returns the directories that the pod finds empty.
func (r *rootfs) privateDirs() []string {
	if r.pod.Network == nil {
		return nil
	}
	return r.pod.Network.Private
}

// mountPrivate mounts the pod's private directories for a container in the pod's network.
func (r *rootfs) mountPrivate(c shimapi.Container, root string) error {
	if c.HostNetwork {
		return nil
	}
	for i, at := range r.privateDirs() {
		source := filepath.Join(r.dir, shimapi.Private, strconv.Itoa(i))
		err := os.MkdirAll(source, 0o755) //nolint:gosec // as a server makes it for itself
		if err == nil {
			err = bindMount(source, root, resolveLinks(at), false)
		}
		if err != nil {
			return fmt.Errorf("mount a directory at %s: %w", at, err)
		}
	}
	return nil
}

// createMessageFile creates the file for the termination message of c.
func (r *rootfs) createMessageFile(c shimapi.Container, root string) error {
	path, ok := pathInVolume(r.pod, c, c.MessagePath)
	if !ok {
		path = privateMessagePath(r.dir, c)
	}
	fresh := false
	if _, err := os.Lstat(path); err != nil {
		fresh = true
	}
	if err := os.WriteFile(path, nil, 0o666); err != nil { //nolint:gosec // the container writes it
		return fmt.Errorf("make %s: %w", c.MessagePath, err)
	}
	if ok || !fresh {
		return nil
	}
	if err := bindMount(path, root, resolveLinks(c.MessagePath), false); err != nil {
		return fmt.Errorf("mount %s: %w", c.MessagePath, err)
	}
	return nil
}

func privateMessagePath(dir string, c shimapi.Container) string {
	return filepath.Join(dir, shimapi.Logs, c.Name+".message")
}

// mountSource returns the source path of m. A subpath that does not exist is created as a directory; one that leads out of the volume is
// refused.
func mountSource(p shimapi.Pod, m shimapi.Mount) (string, error) {
	i := slices.IndexFunc(p.Volumes, func(v shimapi.Volume) bool { return v.Name == m.Volume })
	if i < 0 {
		return "", fmt.Errorf("no volume %q", m.Volume)
	}
	volume := p.Volumes[i].Path
	if m.SubPath == "" {
		return volume, nil
	}
	path := filepath.Join(volume, m.SubPath)
	if err := os.MkdirAll(path, 0o777); err != nil && !errors.Is(err, syscall.ENOTDIR) {
		return "", err
	}
	source, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	volume, err = filepath.EvalSymlinks(volume)
	if err != nil {
		return "", err
	}
	if source != volume && !strings.HasPrefix(source, volume+"/") {
		return "", fmt.Errorf("subPath %q leads out of the volume", m.SubPath)
	}
	return source, nil
}

// pathInVolume returns where path, as c sees it, lies in a volume.
func pathInVolume(p shimapi.Pod, c shimapi.Container, path string) (string, bool) {
	best := -1
	for i, m := range c.Mounts {
		if rel, ok := relativeTo(m.Path, path); ok && rel != "." && (best < 0 || len(m.Path) > len(c.Mounts[best].Path)) {
			best = i
		}
	}
	if best < 0 {
		return "", false
	}
	m := c.Mounts[best]
	source, err := mountSource(p, m)
	if err != nil {
		return "", false
	}
	rel, _ := relativeTo(m.Path, path)
	return filepath.Join(source, rel), true
}

// relativeTo returns path relative to dir, and whether it is in dir.
func relativeTo(dir, path string) (string, bool) {
	rel, err := filepath.Rel(dir, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return "", false
	}
	return rel, true
}
