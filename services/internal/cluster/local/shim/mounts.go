//go:build linux

package shim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// mountTree is a directory that must exist, or a mount point if it has no children.
type mountTree struct{ children map[string]*mountTree }

// add makes path a mount point.
func (p *mountTree) add(path string) {
	for name := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		if p.children == nil {
			p.children = make(map[string]*mountTree)
		}
		if p.children[name] == nil {
			p.children[name] = &mountTree{}
		}
		p = p.children[name]
	}
}

// existsIn reports whether all of p is at dir already.
func (p *mountTree) existsIn(dir string) bool {
	for name, b := range p.children {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err != nil || !b.existsIn(path) {
			return false
		}
	}
	return true
}

// mirrorDir makes to, an empty directory in memory, look like from, with the directories that lead to the mount points in p. The mount
// points themselves are made by the mount, which knows whether they are files.
func mirrorDir(from, to string, p *mountTree) error {
	entries, err := os.ReadDir(from)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if err := mirrorEntry(filepath.Join(from, e.Name()), filepath.Join(to, e.Name()), e, p.children[e.Name()]); err != nil {
			return err
		}
	}
	for name, b := range p.children {
		target := filepath.Join(to, name)
		if _, err := os.Lstat(target); err == nil || b.children == nil {
			continue
		}
		if err := os.Mkdir(target, 0o755); err != nil {
			return err
		}
		if err := mirrorDir(filepath.Join(from, name), target, b); err != nil {
			return err
		}
	}
	return nil
}

// mirrorEntry makes target look like source, with the mount points in b if b is given.
func mirrorEntry(source, target string, e fs.DirEntry, b *mountTree) error {
	if b != nil && e.IsDir() && !b.existsIn(source) {
		return copyDir(source, target, b)
	}
	return bindEntry(source, target, e)
}

// copyDir makes a directory like source that has room for b.
func copyDir(source, target string, b *mountTree) error {
	var st unix.Stat_t
	if err := unix.Stat(source, &st); err != nil {
		return fmt.Errorf("look at %s: %w", source, err)
	}
	if err := os.Mkdir(target, 0o755); err != nil {
		return err
	}
	_ = os.Chown(target, int(st.Uid), int(st.Gid)) // without the permission, it belongs to the shim's user
	if err := unix.Chmod(target, st.Mode&0o7777); err != nil {
		return fmt.Errorf("make %s: %w", target, err)
	}
	return mirrorDir(source, target, b)
}

// bindEntry makes target the same as source: a link, or a mount of it. Entries that are gone meanwhile, and those that the kernel hides,
// are left out.
func bindEntry(source, target string, e fs.DirEntry) error {
	var err error
	switch {
	case e.Type()&fs.ModeSymlink != 0:
		var to string
		if to, err = os.Readlink(source); err == nil {
			err = os.Symlink(to, target)
		}
	case e.IsDir():
		if err = os.Mkdir(target, 0o755); err == nil && source != "/proc" {
			err = unix.Mount(source, target, "", unix.MS_BIND|unix.MS_REC, "")
		}
	case e.Type()&fs.ModeDevice != 0:
		err = makeDevice(source, target)
	default:
		if err = touch(target); err == nil {
			err = unix.Mount(source, target, "", unix.MS_BIND, "")
		}
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("mount %s: %w", source, err)
	}
	return nil
}

// makeDevice creates the device node if permitted, because that is cheaper.
func makeDevice(source, target string) error {
	var st unix.Stat_t
	if err := unix.Stat(source, &st); err != nil {
		return err
	}
	if err := unix.Mknod(target, st.Mode, int(st.Rdev)); err == nil { //nolint:gosec // as the kernel gave it
		if st.Uid != 0 || st.Gid != 0 {
			return os.Chown(target, int(st.Uid), int(st.Gid))
		}
		return nil
	}
	if err := touch(target); err != nil {
		return err
	}
	return unix.Mount(source, target, "", unix.MS_BIND, "")
}

func touch(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644) //nolint:gosec // a mount point
	if err != nil {
		return err
	}
	return f.Close()
}

// bindMount mounts source, a file or a directory, at path below root.
func bindMount(source, root, path string, readOnly bool) error {
	target := filepath.Join(root, path)
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	if err := makeMountPoint(target, info.IsDir()); err != nil {
		return err
	}
	if err := unix.Mount(source, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	if !readOnly {
		return nil
	}
	var st unix.Statfs_t
	if err := unix.Statfs(target, &st); err != nil {
		return err
	}
	kept := uintptr(st.Flags) & (unix.ST_NOSUID | unix.ST_NODEV | unix.ST_NOEXEC | unix.ST_NOATIME | unix.ST_NODIRATIME)
	return unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|kept, "")
}

// makeMountPoint creates a directory or file to mount at, if there is none. Its parent exists: mirrorDir made it, or it lies in a volume.
func makeMountPoint(path string, dir bool) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir() == dir:
		return nil
	case err == nil && dir:
		return syscall.ENOTDIR
	case err == nil:
		return syscall.EISDIR
	case dir:
		return os.MkdirAll(path, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return touch(path)
}

// resolveLinks resolves the machine's own links in the existing part of path: a mount at /var/run/x is a mount at /run/x.
func resolveLinks(path string) string {
	rest := ""
	for at := filepath.Clean(path); at != "/" && at != "."; at = filepath.Dir(at) {
		if followed, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(followed, rest)
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
	return filepath.Join("/", rest)
}
