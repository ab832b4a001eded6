//go:build linux

package scratch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Processes returns the processes of a check, but this one and those that it descends
// from: those that carry its folder in their environment, those whose program lies in
// the folder, as a supervisor of pods has no environment, and what these have begun.
func (f *Folder) Processes() []int {
	var pids []int
	for _, p := range processesOf(f.Path) {
		pids = append(pids, p.pid)
	}
	return pids
}

// process is one that has not ended.
type process struct {
	pid   int
	start string // its startTime
}

func processesOf(path string) []process {
	above := ancestors()
	parents, own := map[int]int{}, map[int]bool{}
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is right
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if fields := statFields(pid); err == nil && len(fields) > 1 && !slices.Contains(above, pid) {
			parents[pid], _ = strconv.Atoi(fields[1])
			own[pid] = hasFolderInEnv(pid, path) || hasProgramIn(pid, path)
		}
	}
	var found []process
	for pid := range parents {
		for at, depth := pid, 0; at > 1 && depth < 64; at, depth = parents[at], depth+1 {
			if start := startTime(pid); own[at] && start != "" {
				found = append(found, process{pid, start})
				break
			}
		}
	}
	slices.SortFunc(found, func(a, b process) int { return a.pid - b.pid })
	return found
}

// hasFolderInEnv reports whether a process has the folder in its environment.
func hasFolderInEnv(pid int, path string) bool {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && bytes.Contains(append([]byte{0}, env...), []byte("\x00"+Variable+"="+path+"\x00"))
}

// hasProgramIn reports whether the program of a process lies in the folder.
func hasProgramIn(pid int, path string) bool {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return err == nil && strings.HasPrefix(exe, path+"/")
}

// ancestors are this process and those above it.
func ancestors() []int {
	var all []int
	for pid := os.Getpid(); pid > 1; {
		all = append(all, pid)
		fields := statFields(pid)
		if len(fields) < 2 {
			break
		}
		pid, _ = strconv.Atoi(fields[1])
	}
	return all
}

// statFields are the fields of /proc/PID/stat from the third on; see proc(5). It
// returns none where the process is gone.
func statFields(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
}

// startTime distinguishes a process from others with its number at other times. It is
// empty if the process is gone.
func startTime(pid int) string {
	fields := statFields(pid)
	if len(fields) < 20 || fields[0] == "Z" {
		return ""
	}
	return fields[19]
}

// endProcesses ends the processes of the check with the folder, and returns their
// command lines. Processes that these begin meanwhile are ended too.
func endProcesses(ctx context.Context, path string) (ended []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		all := processesOf(path)
		if len(all) == 0 {
			return ended, nil
		}
		for _, p := range all {
			line := commandLine(p.pid)
			if p.kill() && !slices.Contains(ended, line) {
				ended = append(ended, line)
			}
		}
		select {
		case <-ctx.Done():
			return ended, fmt.Errorf("end the processes of %s: %w: %d are left", path, context.Cause(ctx), len(all))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// kill ends the process, if its number is not another's by then.
func (p process) kill() bool {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return false // gone
	}
	defer unix.Close(fd) //nolint:errcheck // only held
	return startTime(p.pid) == p.start && unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil
}

func commandLine(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // empty where it is gone
	line := strings.TrimSpace(strings.ReplaceAll(string(b), "\x00", " "))
	if len(line) > 160 {
		line = line[:160] + "…"
	}
	return fmt.Sprintf("%d %s", pid, line)
}

// Quit asks the test binary of a package to print its goroutines and to end. It
// is an error if the check runs none.
func (f *Folder) Quit(pkg string) error {
	for _, pid := range f.Processes() {
		exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		cwd, errDir := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
		if err != nil || errDir != nil || !strings.HasSuffix(exe, ".test") || !strings.HasSuffix(pkg, "/"+filepath.Base(cwd)) {
			continue
		}
		return unix.Kill(pid, unix.SIGQUIT)
	}
	return errors.New("no test binary of " + pkg + " runs")
}

// Leftovers returns the processes and mounts of the check that have not ended or gone.
// Files go with its folder.
func (f *Folder) Leftovers() (found []string) {
	for _, pid := range f.Processes() {
		found = append(found, "process "+commandLine(pid))
	}
	points, err := mountsBelow(f.Path)
	if err != nil {
		found = append(found, err.Error())
	}
	for _, p := range points {
		found = append(found, "mount "+p)
	}
	return found
}
