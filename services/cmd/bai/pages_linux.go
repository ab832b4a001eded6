package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// releasePages takes the pages of the program's own file, most of which only the start has needed, out of the process's memory. Pages that
// are needed again come from the page cache. Where it fails the pages stay.
func releasePages() {
	file, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return
	}
	for _, m := range readOnlyMappings(string(smaps), file) {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.begin, m.end-m.begin, unix.MADV_DONTNEED)
	}
}
