//go:build !linux

package s3

import "syscall"

// dieWithUs is nothing that these systems have.
func dieWithUs() *syscall.SysProcAttr { return nil }
