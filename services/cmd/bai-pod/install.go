//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// self is this program's file, whatever its name is by now.
const self = "/proc/self/exe"

// install copies this program to a place, whole or not at all. Whoever does the
// same at the same time does no harm.
func install(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%w: install wants one place", errUsage)
	}
	dst := args[0]
	if err := os.MkdirAll(filepath.Dir(dst), 0o777); err != nil { //nolint:gosec // the benchmark may have another user
		return fmt.Errorf("install %s: %w", dst, err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(dst), ".bai-pod-*")
	if err != nil {
		return fmt.Errorf("install %s: %w", dst, err)
	}
	defer os.Remove(tmp.Name()) //nolint:errcheck // it has its name by then
	if err := copySelf(tmp); err != nil {
		return fmt.Errorf("install %s: %w", dst, err)
	}
	if err := os.Rename(tmp.Name(), dst); err != nil {
		return fmt.Errorf("install %s: %w", dst, err)
	}
	return nil
}

// copySelf writes this program to dst and closes it: one that is open for
// writing cannot be executed.
func copySelf(dst *os.File) error {
	defer dst.Close() //nolint:errcheck // closed below, unless it failed before
	src, err := os.Open(self)
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
