package userparser

import "golang.org/x/sys/unix"

// limitMemory limits how many bytes of data a process may have in memory.
func limitMemory(pid int, bytes uint64) {
	_ = unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: bytes, Max: bytes}, nil)
}
