//go:build !unix

package userparser

import (
	"os"
	"os/exec"
)

// separate does nothing: there are no process groups.
func separate(*exec.Cmd) {}

// killGroup kills a process.
func killGroup(p *os.Process) { _ = p.Kill() }

// signalOf returns an empty text: there are no signals.
func signalOf(*os.ProcessState) string { return "" }
