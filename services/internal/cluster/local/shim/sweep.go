//go:build linux

package shim

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
)

// sweep kills the remaining processes of the containers, until none is left.
func (s *shim) sweep() {
	pause := time.Millisecond
	for round := 0; s.killAll(round); round++ {
		time.Sleep(pause)
		pause = min(2*pause, 100*time.Millisecond)
	}
	s.logs.wait()
}

// killAll does a round of killing the remaining processes, and reports whether there were any.
func (s *shim) killAll(round int) bool {
	if s.pod.Namespaces {
		return unix.Kill(-1, unix.SIGKILL) == nil // all but this one, the first of the namespace
	}
	return shimapi.KillRound(descendants(os.Getpid()), round)
}

// descendants returns the processes that come from pid and have not ended.
func descendants(pid int) []shimapi.Process {
	children := make(map[int][]shimapi.Process)
	for _, p := range shimapi.Processes() {
		children[p.Parent] = append(children[p.Parent], p)
	}
	var found []shimapi.Process
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		for _, p := range children[queue[0]] {
			queue = append(queue, p.PID)
			if !p.Zombie {
				found = append(found, p)
			}
		}
	}
	return found
}

// ownProcess returns the shim's ID as its starter sees it, whose /proc is still mounted here, and its start time.
func ownProcess() (int, uint64, error) {
	p, err := shimapi.ReadProcess("self")
	return p.PID, p.StartTicks, err
}

// oomKills returns how many processes the kernel has killed for lack of memory.
func oomKills() int64 {
	n, _ := killsIn("/proc/vmstat")
	return n
}

// groupKills returns how many processes of cgroups the kernel has killed for lack of memory; -1 if no group counts them.
func groupKills(groups []string) int64 {
	for _, dir := range groups {
		for _, file := range []string{"memory.events", "memory.oom_control"} { // of version 2, and 1
			if n, ok := killsIn(filepath.Join(dir, file)); ok {
				return n
			}
		}
	}
	return -1
}

// killsIn returns the count of the kernel's in a file.
func killsIn(file string) (int64, bool) {
	b, err := os.ReadFile(file) //nolint:gosec // the kernel's
	if err != nil {
		return 0, false
	}
	_, rest, ok := bytes.Cut(b, []byte("oom_kill "))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	n, err := strconv.ParseInt(string(line), 10, 64)
	return n, ok && err == nil
}
