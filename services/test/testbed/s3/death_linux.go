package s3

import "syscall"

// dieWithUs has a process end with the one that started it, also when that is
// killed.
func dieWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
