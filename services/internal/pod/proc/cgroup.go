//go:build linux

package proc

import (
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// join has the next process that this thread starts begin in cgroups, so that nothing
// that it starts is ever outside: in version 2 the kernel puts it there, in version 1
// this thread enters them until leave is called. It must be locked to its goroutine.
func join(groups []string, sys *syscall.SysProcAttr) (leave func(), err error) {
	var entered []string
	leave = func() {
		for _, dir := range entered {
			_ = os.WriteFile(filepath.Join(filepath.Dir(dir), "tasks"), []byte("0"), 0o600)
		}
		if sys.UseCgroupFD {
			_ = unix.Close(sys.CgroupFD)
		}
	}
	for _, dir := range groups {
		tasks := filepath.Join(dir, "tasks")
		if _, err := os.Stat(tasks); err == nil {
			entered = append(entered, dir)
			if err := os.WriteFile(tasks, []byte("0"), 0o600); err != nil {
				return leave, err
			}
			continue
		}
		if sys.CgroupFD, err = unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
			return leave, err
		}
		sys.UseCgroupFD = true
	}
	return leave, nil
}
