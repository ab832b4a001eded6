package reserve

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// allocate reserves space on disk for a new file without writing to it. The error is
// errors.ErrUnsupported if the file system cannot do that.
func allocate(f *os.File, size int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, size) //nolint:gosec // a descriptor
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("allocate %s: %w", f.Name(), errors.ErrUnsupported)
	}
	return err
}
