//go:build !linux

package jvm

import "syscall"

// attributes are those of any process: a server that outlives who started it is
// ended by whoever starts next.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
