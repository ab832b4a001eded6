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

// diskSpace returns how many bytes of the disk of a folder are free, and how many there
// are for who is not the machine's administrator.
func diskSpace(dir string) (free, all int64, err error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, 0, err
	}
	block := int64(st.Bsize)                                          //nolint:unconvert // the types differ by system
	free = int64(st.Bavail) * block                                   //nolint:gosec // likewise
	return free, (int64(st.Blocks)-int64(st.Bfree))*block + free, nil //nolint:gosec // likewise
}
