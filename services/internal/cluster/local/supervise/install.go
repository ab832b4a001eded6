//go:build linux

package supervise

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/spec"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// installed does what container i would do, where that is the pod's first and
// all it does is to install the pod binary: that is so for each pod of the
// platform, and a process only for this would be a good part of a short pod's
// cost. It reports false where the container has to do it itself.
func (s *supervisor) installed(i int) bool {
	c := s.pod.Containers[i]
	if i != 0 || !c.Ours || len(c.Args) != 3 || c.Args[1] != "install" || s.broken != nil {
		return false
	}
	dst := c.Args[2]
	switch {
	case s.roots == nil && c.Args[0] != s.pod.Binary, s.roots != nil && c.Args[0] != pod.ImageBinary:
		return false
	case s.roots != nil:
		var ok bool
		if dst, ok = inVolume(s.pod, c, dst); !ok {
			return false
		}
	}
	return bring(s.pod.Binary+pod.ShipSuffix, dst+pod.ShipSuffix) == nil && bring(s.pod.Binary, dst) == nil && link(dst) == nil
}

// link gives the program at path the name beside it by which it emits.
func link(path string) error {
	err := os.Symlink(filepath.Base(path), filepath.Join(filepath.Dir(path), filepath.Base(pod.Emit)))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// bring brings a program to dst, whole or not at all: as another name of the
// same file where that is possible, which costs next to nothing. Nobody can
// write to it while it runs.
func bring(binary, dst string) error {
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
	draft := spec.Draft(dst)
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
