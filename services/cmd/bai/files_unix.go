//go:build unix

package main

import (
	"fmt"
	"syscall"
)

// maxFiles returns the maximum number of open files of this process. The Go runtime has
// raised the soft limit to the hard limit. Programs that this process starts get the
// original soft limit.
func maxFiles() (uint64, error) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, fmt.Errorf("ask for the limit of open files: %w", err)
	}
	return uint64(l.Cur), nil //nolint:unconvert // the types differ by system
}
