//go:build linux

package runner

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
	"github.com/benchmark-ai/bai/services/internal/control"
)

// shortWaits returns the pauses between checks of a process that is about to end.
func shortWaits() control.Backoff {
	return control.Backoff{First: 100 * time.Microsecond, Max: 50 * time.Millisecond}
}

// AwaitUnlocked waits up to 5 s until no shim holds the lock of a pod, and reports whether none does.
func (r *Runner) AwaitUnlocked(ctx context.Context, id string) bool {
	pause := shortWaits()
	for until := time.Now().Add(5 * time.Second); ; {
		if locked, err := r.folder.IsLocked(id); err == nil && !locked {
			return true
		}
		if time.Now().After(until) || !control.Sleep(ctx, pause.Next()) {
			return false
		}
	}
}

// AwaitGone waits until the shim that wrote a state has ended. It is false if ctx is done before.
func AwaitGone(ctx context.Context, s *shimapi.State) bool {
	pause := shortWaits()
	for {
		if running, err := alive(s.PID, s.StartTicks); err == nil && !running {
			return true
		}
		if !control.Sleep(ctx, pause.Next()) {
			return false
		}
	}
}

// Signal sends a signal to a shim, and to no other process. The pid is that of a child which was not reaped, zero if the shim is no child;
// the state is nil if the shim has written none. For a shim that has ended, Signal returns nil.
func Signal(pid int, state *shimapi.State, s unix.Signal) error {
	var err error
	switch {
	case pid != 0: // a child that was not reaped keeps its ID
		err = unix.Kill(pid, s)
	case state != nil:
		err = signalProcess(state.PID, state.StartTicks, s)
	}
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// Frozen reports whether a signal has stopped a shim; see Signal.
func Frozen(pid int, state *shimapi.State) bool {
	if pid == 0 && state != nil {
		if running, err := alive(state.PID, state.StartTicks); err == nil && running {
			pid = state.PID
		}
	}
	p, err := shimapi.ReadProcess(strconv.Itoa(pid))
	return pid != 0 && err == nil && p.Frozen
}

func signalProcess(pid int, startTicks uint64, s unix.Signal) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == nil {
		defer unix.Close(fd) //nolint:errcheck // only a handle
	}
	if running, errAlive := alive(pid, startTicks); errAlive != nil || !running {
		return errAlive
	}
	if err != nil {
		return unix.Kill(pid, s)
	}
	return unix.PidfdSendSignal(fd, s, nil, 0)
}

// AwaitChild waits until a child has ended, and leaves it to be reaped.
func AwaitChild(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// alive reports whether the process with this ID is still the one that started at startTicks. With an error it is not known.
func alive(pid int, startTicks uint64) (bool, error) {
	p, err := shimapi.ReadProcess(strconv.Itoa(pid))
	if errors.Is(err, shimapi.ErrNoProcess) {
		return false, nil
	}
	if err != nil || p.StartTicks != startTicks {
		return false, err
	}
	if p.Zombie { // a child of ours, if an earlier cluster in this process started it
		_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
	}
	return !p.Zombie, nil
}

// KillLeftovers kills the processes that a pod without namespaces left behind when its shim was killed, until none is left or ctx is done.
func KillLeftovers(ctx context.Context, id string) {
	pause := shortWaits()
	for round := 0; shimapi.KillRound(leftovers(id), round) && control.Sleep(ctx, pause.Next()); round++ {
	}
}

// leftovers returns the processes that have the ID of a pod in their environment and have not ended.
func leftovers(id string) []shimapi.Process {
	marker := []byte(shimapi.EnvPodID + "=" + id)
	return slices.DeleteFunc(shimapi.Processes(), func(p shimapi.Process) bool {
		env, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.PID), "environ"))
		return err != nil || p.Zombie || !bytes.Contains(env, marker)
	})
}
