//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/benchmark-ai/bai/services/internal/pod"
)

// self is the file of this program, even after it was renamed.
const self = "/proc/self/exe"

// install copies this program and bai-pod-ship to a path, each atomically, and links
// the name bai-emit beside them. Several processes may do so at once.
func install(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%w: install wants one place", errUsage)
	}
	path, err := os.Executable()
	if err == nil {
		err = errors.Join(installProgram(path+pod.ShipSuffix, args[0]+pod.ShipSuffix), installProgram(self, args[0]), linkEmit(args[0]))
	}
	if err != nil {
		return fmt.Errorf("install %s: %w", args[0], err)
	}
	return nil
}

// installProgram copies a program to dst atomically.
func installProgram(src, dst string) error {
	if err := os.MkdirAll(filepath.Dir(dst), 0o777); err != nil { //nolint:gosec // the benchmark may run as another user
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(dst), ".bai-pod-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) //nolint:errcheck // it is renamed by then
	if err := copyTo(tmp, src); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), dst)
}

// linkEmit creates the link bai-emit beside the program at path.
func linkEmit(path string) error {
	err := os.Symlink(filepath.Base(path), filepath.Join(filepath.Dir(path), filepath.Base(pod.Emit)))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// copyTo writes a program to dst and closes dst, since a file that is open for writing
// cannot be executed.
func copyTo(dst *os.File, path string) error {
	defer dst.Close() //nolint:errcheck // closed below, unless it failed before
	src, err := os.Open(path)
	if err != nil {
		return err
	}
	defer src.Close() //nolint:errcheck // only read
	if _, err := io.Copy(dst, src); err != nil {
		return err
	}
	if err := dst.Chmod(0o755); err != nil {
		return err
	}
	return dst.Close()
}
