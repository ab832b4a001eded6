package kit

import "syscall"

// DieWithUs has a process end with the one that started it, also when that is
// killed.
func DieWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
