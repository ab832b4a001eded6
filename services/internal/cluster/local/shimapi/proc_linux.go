package shimapi

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// ErrNoProcess means that the process does not exist.
var ErrNoProcess = errors.New("no such process")

// Process is the kernel's data about a process.
type Process struct {
	PID        int
	Parent     int
	StartTicks uint64 // ticks since the machine's start; with PID it is unique
	Zombie     bool   // it has ended with all of its threads, and its parent has not reaped it
	Frozen     bool   // a signal or a debugger has stopped it
}

// ReadProcess reads the data of a process, by its ID or "self". It returns ErrNoProcess if there is none; after
// any other error it may exist.
func ReadProcess(pid string) (Process, error) {
	b, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return Process{}, fmt.Errorf("process %s: %w", pid, ErrNoProcess)
	}
	if err != nil {
		return Process{}, fmt.Errorf("process %s: %w", pid, err)
	}
	// The name, in parentheses, may contain any characters.
	open, end := bytes.IndexByte(b, ' '), bytes.LastIndexByte(b, ')')
	if open < 0 || end < 0 {
		return Process{}, fmt.Errorf("process %s: %q is not what the kernel writes", pid, b)
	}
	fields := bytes.Fields(b[end+1:])
	if len(fields) < 20 {
		return Process{}, fmt.Errorf("process %s: %q is not what the kernel writes", pid, b)
	}
	id, err1 := strconv.Atoi(string(b[:open]))
	parent, err2 := strconv.Atoi(string(fields[1]))
	startTicks, err3 := strconv.ParseUint(string(fields[19]), 10, 64)
	threads, err4 := strconv.Atoi(string(fields[17]))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return Process{}, fmt.Errorf("process %s: %w", pid, err)
	}
	state := fields[0][0]
	return Process{
		PID: id, Parent: parent, StartTicks: startTicks, Frozen: state == 'T' || state == 't',
		// The state is that of the first thread, which may end before the others. Only the
		// last thread of the first process of a PID namespace ends the namespace's processes.
		Zombie: (state == 'Z' || state == 'X') && threads <= 1,
	}, nil
}

// Processes returns all visible processes.
func Processes() []Process {
	names, _ := filepath.Glob("/proc/[0-9]*")
	all := make([]Process, 0, len(names))
	for _, n := range names {
		if p, err := ReadProcess(filepath.Base(n)); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// maxStops is in how many rounds processes are stopped before they are killed as they are.
const maxStops = 20

// KillRound does a round, counted from 0, of killing processes that may start others. While some of them are not stopped, it stops them:
// what is stopped starts no others, and takes up the room for them. Once all are stopped, or after 20 rounds, it kills them. It reports
// whether it reached any process; the caller finds the remaining ones again and does the next round.
func KillRound(all []Process, round int) bool {
	stopped := false
	for _, p := range all {
		if !p.Frozen && round < maxStops {
			stopped = syscall.Kill(p.PID, syscall.SIGSTOP) == nil || stopped
		}
	}
	if stopped {
		return true
	}
	killed := false
	for _, p := range all {
		killed = syscall.Kill(p.PID, syscall.SIGKILL) == nil || killed
	}
	return killed
}
