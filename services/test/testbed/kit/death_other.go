//go:build !linux

package kit

import "syscall"

// DieWithUs is nothing that these systems have.
func DieWithUs() *syscall.SysProcAttr { return nil }
