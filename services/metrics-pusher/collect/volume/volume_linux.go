package volume

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Nonblock is the flag with which opening a FIFO or a device does not block.
const Nonblock = syscall.O_NONBLOCK

// mkfifo makes a FIFO in a folder.
func mkfifo(dir *os.File, name string) error {
	return unix.Mkfifoat(int(dir.Fd()), name, 0o600) //nolint:gosec // a descriptor
}

// PunchHole frees n bytes of a file from offset on. They read as zeros after that.
func PunchHole(f *os.File, offset, n int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, offset, n) //nolint:gosec // a descriptor
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// Free returns how many bytes of the volume's disk are free.
func (v *Volume) Free() (int64, error) {
	dir, err := v.Root.Open(".")
	if err != nil {
		return 0, err
	}
	var st unix.Statfs_t
	err = errors.Join(unix.Fstatfs(int(dir.Fd()), &st), dir.Close()) //nolint:gosec // a descriptor
	return int64(st.Bavail) * int64(st.Bsize), err                   //nolint:gosec,unconvert // the types differ by system
}
