package kit

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// Start starts a process that ends with this one, also when this one is killed.
func Start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	done := make(chan error, 1)
	starts() <- func() { done <- cmd.Start() }
	return <-done
}

// starts returns the queue of one thread that never ends: the kernel ends a process with
// the thread that started it, and Go ends threads at any time.
var starts = sync.OnceValue(func() chan<- func() { //nolint:gochecknoglobals // a process has one
	all := make(chan func())
	go func() {
		runtime.LockOSThread()
		for start := range all {
			start()
		}
	}()
	return all
})
