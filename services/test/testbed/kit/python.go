package kit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

// Python makes an environment of Python with a package of PyPI of one version, or finds an earlier one, and returns the path of its interpreter.
func Python(ctx context.Context, name, version string) (string, error) {
	b, err := newBuilder()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(version))
	dir, err := b.cachedBySum(name, hex.EncodeToString(sum[:])[:12], func(dir string) error {
		fmt.Fprintln(os.Stderr, "installing", name, version, "for tests: some minutes, once")
		if err := run(ctx, dir, nil, "python3", "-m", "venv", dir); err != nil {
			return err
		}
		return run(ctx, dir, nil, "nice", filepath.Join(dir, "bin", "python3"), "-m", "pip", "install", "-q", name+"=="+version)
	})
	return filepath.Join(dir, "bin", "python3"), err
}
