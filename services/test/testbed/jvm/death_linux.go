package jvm

import "syscall"

// attributes has the kernel end a server with the process that started it.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
