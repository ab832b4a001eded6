package kit

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
)

// Program builds a third-party program, or finds an earlier build, and returns its path.
// The module in the folder program below name, beside this package, pins it.
func Program(ctx context.Context, name, pkg string) (string, error) {
	b, err := newBuilder()
	if err != nil {
		return "", err
	}
	src := filepath.Join(b.root, "services", "test", "testbed", name, "program")
	dir, err := b.cached(name, src, func(dir string) error {
		fmt.Fprintln(os.Stderr, "building", pkg, "for tests: some minutes, once")
		return run(ctx, src, []string{"CGO_ENABLED=0", "GOWORK=off"}, "nice", "go", "build", "-trimpath",
			"-ldflags", "-s -w", "-o", dir+"/", pkg)
	})
	return filepath.Join(dir, path.Base(pkg)), err
}
