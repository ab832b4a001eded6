//go:build linux

package disk

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// maxOpenDepth is how many levels below the root of a tree are open at a time while the tree is removed.
const maxOpenDepth = 64

// RemoveAll removes a tree, however deep it is and even if its directories were made unreadable. It opens about maxOpenDepth descriptors at
// most: the subtrees below that depth are moved up to the root of the tree first. A missing tree is no error.
func RemoveAll(path string) error {
	t := &tree{}
	if err := t.remove(unix.AT_FDCWD, path, 0); err != nil {
		return &fs.PathError{Op: "remove", Path: path, Err: err}
	}
	return nil
}

// tree is a tree that is being removed.
type tree struct{ root int }

// remove removes the entry name of the directory at, which is at a depth in the tree; the root has depth 0.
func (t *tree) remove(at int, name string, depth int) error {
	err := unix.Unlinkat(at, name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	switch errDir := unix.Unlinkat(at, name, unix.AT_REMOVEDIR); {
	case errDir == nil:
		return nil
	case errors.Is(errDir, unix.ENOTDIR):
		return err
	case depth > maxOpenDepth:
		return t.moveUp(at, name)
	}
	dir, err := openDir(at, name)
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // only read
	if depth == 0 {
		t.root = int(dir.Fd())
	}
	if err := t.empty(dir, depth); err != nil {
		return err
	}
	return unix.Unlinkat(at, name, unix.AT_REMOVEDIR)
}

// empty removes the entries of a directory at a depth, also those that are moved to it meanwhile.
func (t *tree) empty(dir *os.File, depth int) error {
	for {
		if _, err := dir.Seek(0, io.SeekStart); err != nil {
			return err
		}
		names, err := dir.Readdirnames(1024)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if len(names) == 0 {
			return err
		}
		if failed, err := t.removeEach(int(dir.Fd()), names, depth); failed == len(names) {
			return err
		}
	}
}

// removeEach removes entries of a directory at a depth, and returns how many it could not remove, and why not the last one.
func (t *tree) removeEach(at int, names []string, depth int) (failed int, last error) {
	for _, name := range names {
		if err := t.remove(at, name, depth+1); err != nil {
			failed++
			last = err
		}
	}
	return failed, last
}

// moveUp moves a directory to the root of the tree.
func (t *tree) moveUp(at int, name string) error {
	_ = unix.Fchmodat(at, name, 0o700, 0) // a directory without the right to write stays in its parent
	return unix.Renameat(at, name, t.root, ".deep-"+rand.Text())
}

// openDir opens a directory, not a link to one, so that its entries can be listed and removed.
func openDir(at int, name string) (*os.File, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(at, name, flags, 0)
	if errors.Is(err, unix.EACCES) && unix.Fchmodat(at, name, 0o700, 0) == nil {
		fd, err = unix.Openat(at, name, flags, 0)
	}
	if err != nil {
		return nil, err
	}
	_ = unix.Fchmod(fd, 0o700) // where it is another user's, and entries cannot be removed, their removal says so
	return os.NewFile(uintptr(fd), name), nil
}
