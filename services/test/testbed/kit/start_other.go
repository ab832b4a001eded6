//go:build !linux

package kit

import "os/exec"

// Start starts a process. These systems do not end it with this one.
func Start(cmd *exec.Cmd) error { return cmd.Start() }
