//go:build unix

package main

import (
	"fmt"
	"syscall"
)

// maxFiles returns how many files this process may have open. The Go runtime has
// raised the soft limit to the hard one; programs that it starts get the soft
// limit that it was started with.
func maxFiles() (uint64, error) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, fmt.Errorf("ask for the limit of open files: %w", err)
	}
	return uint64(l.Cur), nil //nolint:unconvert // the types differ by system
}
