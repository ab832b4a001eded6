package command_test

import (
	"os"
	"syscall"
)

// dup returns another descriptor of a file, as a process that is started has one.
func dup(f *os.File) (*os.File, error) {
	fd, err := syscall.Dup(int(f.Fd())) //nolint:gosec // a descriptor
	return os.NewFile(uintptr(fd), f.Name()), err
}
