//go:build linux

// Package cgroup limits the CPU, the memory and the number of processes on this machine.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Find returns the cgroups in which this process may create groups.
func Find() Groups {
	mounts, err1 := os.ReadFile("/proc/self/mountinfo")
	own, err2 := os.ReadFile("/proc/self/cgroup")
	if err := errors.Join(err1, err2); err != nil {
		return Groups{Unavailable: err.Error()}
	}
	g := parse(string(mounts), string(own))
	g.maxPIDs = pidLimit(kernelLimit("pid_max"), kernelLimit("threads-max"))
	if g.unified {
		return g.nearest()
	}
	if g.Unavailable != "" {
		return g
	}
	err := g.probe()
	if err != nil && g.pids != "" {
		g.pids = ""
		err = g.probe()
	}
	if err != nil {
		return Groups{Unavailable: fmt.Sprintf("%v; run the platform as root, or where cgroups are delegated to it", err)}
	}
	return g
}

// probe returns why a group with limits cannot be created, nil if it can.
func (g Groups) probe() error {
	dirs, err := g.Create(fmt.Sprintf("bai-probe-%d", os.Getpid()), 1000, 1<<30)
	_ = Remove(dirs) // empty ones
	return err
}

// kernelLimit returns a limit of the kernel's, zero if it is not known.
func kernelLimit(name string) int64 {
	b, err := os.ReadFile(filepath.Join("/proc/sys/kernel", name))
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64) // or it is not known
	return n
}

// nearest returns the cgroups of version 2 in which a group with both controllers can be created. The cgroup of this process has processes,
// so that it usually is the parent.
func (g Groups) nearest() Groups {
	var last error
	for dir := g.cpu; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err != nil {
			break // above the mount
		}
		for _, controllers := range []string{"+cpu +memory", "+pids"} { // or they are on already; the last one may be missing
			_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte(controllers), 0o600)
		}
		at := Groups{cpu: dir, memory: dir, pids: dir, unified: true, maxPIDs: g.maxPIDs}
		err := at.probe()
		if err == nil {
			return at
		}
		last = err
	}
	return Groups{Unavailable: fmt.Sprintf("%v; run the platform as root, or in a service with Delegate=yes", last)}
}

// Create creates the cgroups of a container, in which no process runs yet, and returns their folders, also with an error those that were
// created. A limit of zero means no limit; the group of memory counts the processes that the kernel kills even then.
func (g Groups) Create(name string, cpu, memory int64) (dirs []string, err error) {
	for _, l := range g.limits(cpu, memory) {
		dir := filepath.Join(l.base, name)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // as the kernel's own
			return dirs, err
		}
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
		if l.file == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, l.file), []byte(l.value), 0o600); err != nil && !l.optional {
			return dirs, err
		}
	}
	return dirs, nil
}

// Remove removes cgroups without processes, with those that a container has made below them. The kernel may notice the end of the last
// process a moment late. A missing cgroup is no error.
func Remove(dirs []string) error {
	var failed error
	for _, dir := range dirs {
		failed = errors.Join(failed, remove(dir))
	}
	return failed
}

// remove removes a cgroup and those below it.
func remove(dir string) error {
	entries, _ := os.ReadDir(dir) // without it, the cgroup's own removal fails
	for _, e := range entries {
		if e.IsDir() {
			if err := remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	var err error
	for pause := time.Millisecond; pause < time.Second; pause *= 2 {
		if err = unix.Rmdir(dir); !errors.Is(err, unix.EBUSY) {
			break
		}
		time.Sleep(pause)
	}
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("remove the cgroup %s: %w", dir, err)
	}
	return nil
}
