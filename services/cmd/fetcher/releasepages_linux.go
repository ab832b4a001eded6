package main

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// releaseFilePages releases the pages of the program's file that the start has used:
// about 40 MiB, mostly for clouds and clusters that a transfer does not use. Needed
// pages are read from the file again. It ignores errors.
func releaseFilePages() {
	self, err := os.Executable()
	if err != nil {
		return
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(maps)) {
		start, end, ok := parseMapping(line, self)
		if ok {
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, start, end-start, unix.MADV_DONTNEED) // on an error the pages stay
		}
	}
}

// parseMapping returns the address range in a line of /proc/self/maps, see
// proc_pid_maps(5), if the line maps file without write permission.
func parseMapping(line, file string) (start, end uintptr, ok bool) {
	f := strings.Fields(line) // START-END PERMISSIONS OFFSET DEVICE INODE PATH
	if len(f) != 6 || f[5] != file || strings.Contains(f[1], "w") {
		return 0, 0, false
	}
	from, to, _ := strings.Cut(f[0], "-")
	first, err1 := strconv.ParseUint(from, 16, 64)
	last, err2 := strconv.ParseUint(to, 16, 64)
	return uintptr(first), uintptr(last), err1 == nil && err2 == nil && first < last
}
