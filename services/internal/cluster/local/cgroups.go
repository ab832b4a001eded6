//go:build linux

package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
)

// findCgroups looks which cgroups this process may make groups in.
func findCgroups() cgroups {
	mounts, err1 := os.ReadFile("/proc/self/mountinfo")
	own, err2 := os.ReadFile("/proc/self/cgroup")
	if err := errors.Join(err1, err2); err != nil {
		return cgroups{unavailableReason: err.Error()}
	}
	g := parseCgroups(string(mounts), string(own))
	if g.unified {
		return g.nearest()
	}
	if g.unavailableReason != "" {
		return g
	}
	dirs, err := g.create(fmt.Sprintf("bai-probe-%d", os.Getpid()), 1000, 1<<30)
	removeGroups(dirs)
	if err != nil {
		return cgroups{unavailableReason: fmt.Sprintf("%v; run the platform as root, or where cgroups are delegated to it", err)}
	}
	return g
}

// nearest returns the cgroups of version 2 at which a group with both controllers can
// be made: those of this process hold processes, so that it is one above, as a rule.
func (g cgroups) nearest() cgroups {
	var last error
	for dir := g.cpu; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err != nil {
			break // above the mount
		}
		_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+cpu +memory"), 0o600) // or they are on already
		at := cgroups{cpu: dir, memory: dir, unified: true}
		dirs, err := at.create(fmt.Sprintf("bai-probe-%d", os.Getpid()), 1000, 1<<30)
		removeGroups(dirs)
		if err == nil {
			return at
		}
		last = err
	}
	return cgroups{unavailableReason: fmt.Sprintf("%v; run the platform as root, or in a service with Delegate=yes", last)}
}

// create makes the groups of a container, in which nothing runs yet, and returns their
// folders; also with an error, those that were made. A limit of zero is none.
func (g cgroups) create(name string, cpu, memory int64) (dirs []string, err error) {
	for _, l := range g.limits(cpu, memory) {
		dir := filepath.Join(l.base, name)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // as the kernel's own
			return dirs, err
		}
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
		err := os.WriteFile(filepath.Join(dir, l.file), []byte(l.value), 0o600)
		if err != nil && !l.optional {
			return dirs, err
		}
	}
	return dirs, nil
}

// removeGroups removes groups in which nothing runs any more, which the kernel may
// notice a moment after the last process has ended.
func removeGroups(dirs []string) {
	for _, dir := range dirs {
		for pause := time.Millisecond; pause < time.Second; pause *= 2 {
			if err := unix.Rmdir(dir); !errors.Is(err, unix.EBUSY) {
				break
			}
			time.Sleep(pause)
		}
	}
}

// createGroups gives the containers of a pod that has limits their groups.
func (c *Cluster) createGroups(p *shimapi.Pod) {
	if c.groups.unavailableReason != "" {
		return
	}
	for i := range p.Containers {
		o := &p.Containers[i]
		if o.CPU == 0 && o.Memory == 0 {
			continue
		}
		dirs, err := c.groups.create("bai-"+p.ID+"-"+o.Name, o.CPU, o.Memory)
		if err != nil {
			removeGroups(dirs)
			c.log.Warn("a container runs without its limits", zap.String("pod", p.ID), zap.String("container", o.Name), zap.Error(err))
			continue
		}
		o.Groups = dirs
	}
}

// removeGroups removes the groups of a pod that has ended.
func (d disk) removeGroups(id string) {
	var p shimapi.Pod
	if shimapi.Read(filepath.Join(d.pod(id), shimapi.PodFile), &p) != nil {
		return // it never began
	}
	for _, o := range p.Containers {
		removeGroups(o.Groups)
	}
}
