//go:build linux

package shim

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// installInPlace does the work of container i in this process, if it is the pod's first and only installs the pod binary: every pod of the
// platform has this container, and a process for it would be a large part of a short pod's cost. It returns false if the container has to
// run.
func (s *shim) installInPlace(i int) bool {
	c := s.pod.Containers[i]
	if i != 0 || !c.RunsPodBinary || len(c.Args) != 3 || c.Args[1] != "install" || s.rootfsErr != nil {
		return false
	}
	dst := c.Args[2]
	switch {
	case s.rootfs == nil && c.Args[0] != s.pod.Binary, s.rootfs != nil && c.Args[0] != pod.ImageBinary:
		return false
	case s.rootfs != nil:
		var ok bool
		if dst, ok = pathInVolume(s.pod, c, dst); !ok {
			return false
		}
	}
	return installFile(s.pod.Binary+pod.ShipSuffix, dst+pod.ShipSuffix) == nil &&
		installFile(s.pod.Binary, dst) == nil && linkEmit(dst) == nil
}

// linkEmit creates the link beside the program at path under which the program emits metrics.
func linkEmit(path string) error {
	err := os.Symlink(filepath.Base(path), filepath.Join(filepath.Dir(path), filepath.Base(pod.Emit)))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// installFile installs a program at dst, whole or not at all: as a hard link to the same file if that is possible, which costs almost
// nothing. No process can write to the program while it runs.
func installFile(binary, dst string) error {
	if err := os.MkdirAll(filepath.Dir(dst), 0o777); err != nil { //nolint:gosec // containers may have other users
		return err
	}
	if os.Link(binary, dst) == nil {
		return nil
	}
	src, err := os.Open(binary)
	if err != nil {
		return err
	}
	defer src.Close() //nolint:errcheck // only read
	draft := shimapi.TempPath(dst)
	f, err := os.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755) //nolint:gosec // it is executed
	if err != nil {
		return err
	}
	_, err = io.Copy(f, src)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(draft, dst)
	}
	if err != nil {
		_ = os.Remove(draft)
	}
	return err
}
