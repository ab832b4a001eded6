package reserve

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// allocate gives a new file room on the disk without writing to it. It says
// errors.ErrUnsupported where the file system cannot.
func allocate(f *os.File, size int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, size) //nolint:gosec // a descriptor
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("allocate %s: %w", f.Name(), errors.ErrUnsupported)
	}
	return err
}
