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

// Python makes an environment of Python with a package of PyPI of one version, and with others as pip takes them, or finds an earlier one, and
// returns the path of its interpreter.
func Python(ctx context.Context, name, version string, others ...string) (string, error) {
	b, err := newBuilder()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(strings.Join(append([]string{version}, others...), " ")))
	dir, err := b.cachedBySum(name, hex.EncodeToString(sum[:])[:12], func(dir string) error {
		fmt.Fprintln(os.Stderr, "installing", name, version, "for tests: some minutes, once")
		if err := run(ctx, dir, nil, "python3", "-m", "venv", dir); err != nil {
			return err
		}
		install := []string{"nice", filepath.Join(dir, "bin", "python3"), "-m", "pip", "install", "-q", name + "==" + version}
		return run(ctx, dir, nil, append(install, others...)...)
	})
	return filepath.Join(dir, "bin", "python3"), err
}
