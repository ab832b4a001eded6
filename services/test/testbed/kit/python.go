package kit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Python makes an environment of Python with a package of PyPI of one version, and with others as pip takes them, or finds an earlier one,
// and returns the path of its interpreter.
func Python(ctx context.Context, name, version string, others ...string) (string, error) {
	wanted := append([]string{name + "==" + version}, others...)
	return environment(name, version, append([]string{version}, others...), func(dir string) error {
		if err := run(ctx, dir, nil, "python3", "-m", "venv", dir); err != nil {
			return err
		}
		return run(ctx, dir, nil, append([]string{"nice", interpreter(dir), "-m", "pip", "install", "-q"}, wanted...)...)
	})
}

// DebianPython is as Python, with Debian's own interpreter and the modules of Debian's packages.
func DebianPython(ctx context.Context, name, version string, others ...string) (string, error) {
	wanted := append([]string{name + "==" + version}, others...)
	return environment(name, version, append([]string{"debian"}, wanted...), func(dir string) error {
		// Debian has pip in a package that may be missing.
		if err := run(ctx, dir, nil, "/usr/bin/python3", "-m", "venv", "--system-site-packages", "--without-pip", dir); err != nil {
			return err
		}
		return run(ctx, dir, nil,
			append([]string{"nice", "python3", "-m", "pip", "--python", interpreter(dir), "install", "-q"}, wanted...)...)
	})
}

// interpreter is the path of the interpreter of the environment in a folder.
func interpreter(dir string) string { return filepath.Join(dir, "bin", "python3") }

// environment has an environment made, or finds an earlier one that has the same in it, and returns the path of its interpreter.
func environment(name, version string, has []string, install func(dir string) error) (string, error) {
	b, err := newBuilder()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(strings.Join(has, " ")))
	dir, err := b.cachedBySum(name, hex.EncodeToString(sum[:])[:12], func(dir string) error {
		fmt.Fprintln(os.Stderr, "installing", name, version, "for tests: some minutes, once")
		return install(dir)
	})
	return interpreter(dir), err
}
