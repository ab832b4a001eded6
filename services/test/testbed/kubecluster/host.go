//go:build linux

package kubecluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	reservation "github.com/benchmark-ai/bai/services/test/testbed/port"
)

// hostChanges are a cluster's changes of this machine outside its namespaces, recorded
// before they are made.
type hostChanges struct {
	Bridge  bool
	Groups  []string          // control groups, by name
	Folders []string          // made because they were not there, in that order
	Sysctls map[string]string // earlier values
}

// groupOf is the control group of a machine, in every hierarchy.
func groupOf(machine string) string { return "bai-bed-" + machine }

// kernelSettings are those that the kubelet changes for the whole machine.
func kernelSettings() []string {
	return []string{
		"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
		"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
	}
}

// prepare prepares this machine for a cluster with nodes.
func (k *keeper) prepare(ctx context.Context) error {
	if k.settings.Nodes == 0 {
		return nil
	}
	k.changes = hostChanges{Bridge: true, Sysctls: map[string]string{}}
	for _, name := range kernelSettings() {
		if b, err := os.ReadFile("/proc/sys/" + name); err == nil {
			k.changes.Sysctls[name] = strings.TrimSpace(string(b))
		}
	}
	for n := 1; n <= k.settings.Nodes; n++ {
		k.changes.Groups = append(k.changes.Groups, groupOf(nodeName(n)))
	}
	k.changes.Folders = missing(slices.Concat(diskFolders(), memoryFolders()))
	if err := writeJSON(filepath.Join(k.dir, changesFile), k.changes); err != nil {
		return err
	}
	for _, d := range k.changes.Folders {
		if err := os.Mkdir(d, 0o755); err != nil && !errors.Is(err, os.ErrExist) { //nolint:gosec // as those that are usually there
			return fmt.Errorf("make a node's folder: %w", err)
		}
	}
	if err := makeGroups(k.changes.Groups); err != nil {
		return err
	}
	return k.network(ctx)
}

// missing returns the folders that would have to be made, each after those that
// it lies in.
func missing(paths []string) []string {
	var all []string
	for _, p := range paths {
		var chain []string
		for ; p != "/"; p = filepath.Dir(p) {
			if _, err := os.Lstat(p); err == nil {
				break
			}
			chain = append(chain, p)
		}
		for _, p := range slices.Backward(chain) {
			if !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	return all
}

// makeGroups makes control groups in every hierarchy.
func makeGroups(names []string) error {
	hierarchies, err := filepath.Glob("/sys/fs/cgroup/*/tasks")
	if err != nil {
		return err
	}
	for _, h := range hierarchies {
		for _, name := range names {
			if err := makeGroup(filepath.Dir(h), name); err != nil {
				return fmt.Errorf("make a control group: %w", err)
			}
		}
	}
	return nil
}

// makeGroup makes a control group with the processors and memory of its parent, as a new
// one has none.
func makeGroup(top, name string) error {
	if err := os.Mkdir(filepath.Join(top, name), 0o755); err != nil && !errors.Is(err, os.ErrExist) { //nolint:gosec // as others there
		return err
	}
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		b, err := os.ReadFile(filepath.Join(top, file)) //nolint:gosec // the kernel's
		if err != nil {
			continue // a hierarchy of something else
		}
		if err := os.WriteFile(filepath.Join(top, name, file), b, 0); err != nil {
			return err
		}
	}
	return nil
}

// network makes the bridge, and this machine's way to pods and Services. The
// machine's forwarding and packet filter are not touched.
func (k *keeper) network(ctx context.Context) error {
	if err := removeLinks(ctx); err != nil { // there is no other cluster: the turn is ours
		return err
	}
	for _, args := range [][]string{
		{"link", "add", bridge, "type", "bridge"},
		{"link", "set", bridge, "up"},
		{"addr", "add", hostAddress + "/24", "dev", bridge},
	} {
		if err := command("ip", args...); err != nil {
			return err
		}
	}
	return nil
}

// link gives a machine its end of a cable to the bridge. A node's pods are
// reached through it.
func link(ctx context.Context, number, pid int) error {
	end := bridge + "-" + strconv.Itoa(number)
	_ = command("ip", "link", "del", end) // of a machine that was switched off, which the kernel may be slow to remove
	// Each number has a fixed address, so that no neighbour has a stale one.
	address := fmt.Sprintf("02:00:00:00:00:%02x", number)
	if err := command("ip", "link", "add", end, "type", "veth", "peer", "name", "eth0", "address", address, "netns",
		strconv.Itoa(pid)); err != nil {
		return err
	}
	if err := command("ip", "link", "set", end, "master", bridge, "up"); err != nil {
		return err
	}
	if n := number - firstNode; n > 0 {
		if err := command("ip", "route", "replace", podRange(n), "via", nodeAddress(n)); err != nil {
			return err
		}
	}
	if number == firstNode+1 {
		return command("ip", "route", "replace", services, "via", nodeAddress(1))
	}
	return ctx.Err()
}

// reservePorts reserves two ports while this process lives.
func reservePorts() (ports, error) {
	r, err := reservation.Reserve(2)
	if err != nil {
		return ports{}, err
	}
	return ports{Etcd: r.Ports[0], API: r.Ports[1]}, nil
}

// Sweep waits until no cluster with nodes is up, and undoes the leftovers of those whose
// keepers were killed.
func Sweep(ctx context.Context) error {
	if err := os.MkdirAll(Root(), 0o700); err != nil {
		return err
	}
	turn, err := acquireLock(ctx, hostLockFile)
	if err != nil {
		return fmt.Errorf("another cluster with nodes is up on this machine: %w", err)
	}
	return errors.Join(sweep(ctx, ""), turn.Close())
}

// Abandoned returns the names of this user's clusters that have leftovers of dead
// keepers.
func Abandoned() []string {
	all, err := os.ReadDir(Root())
	if err != nil {
		return nil // there was never any
	}
	var names []string
	for _, e := range all {
		if e.IsDir() && !isKept(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}

// SweepAbandoned is Sweep where something is to be undone, and nothing else.
func SweepAbandoned(ctx context.Context) error {
	if len(Abandoned()) == 0 {
		return nil
	}
	return Sweep(ctx)
}

// sweep undoes the leftovers of clusters whose keepers are dead, and of the cluster mine,
// whose lock is held.
func sweep(ctx context.Context, mine string) error {
	all, err := os.ReadDir(Root())
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range all {
		switch {
		case e.Name() == mine:
			errs = append(errs, undoInFolder(ctx, Dir(mine)))
		case e.IsDir() && !isKept(e.Name()):
			errs = append(errs, undo(ctx, Dir(e.Name())))
		}
	}
	return errors.Join(errs...)
}

// undo undoes all that a cluster whose machines have ended has changed, and
// removes its folder. It may be repeated.
func undo(ctx context.Context, dir string) error {
	if err := undoInFolder(ctx, dir); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// undoInFolder is undo, but leaves the folder with its lock.
func undoInFolder(ctx context.Context, dir string) error {
	var l hostChanges
	b, err := os.ReadFile(filepath.Join(dir, changesFile))
	if err == nil {
		err = json.Unmarshal(b, &l)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("clean up %s: %w", dir, err)
	}
	if err := l.undo(ctx); err != nil {
		return fmt.Errorf("clean up %s: %w", dir, err)
	}
	if mounted(dir) {
		return fmt.Errorf("clean up %s: something is mounted in there", dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if e.Name() != lockFile {
			errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

func (l hostChanges) undo(ctx context.Context) error {
	var errs []error
	if l.Bridge {
		errs = append(errs, removeLinks(ctx))
	}
	for _, name := range l.Groups {
		errs = append(errs, removeGroups(ctx, name))
	}
	for _, d := range slices.Backward(l.Folders) {
		_ = os.Remove(d) // unless others use it by now
	}
	for name, value := range l.Sysctls {
		errs = append(errs, os.WriteFile("/proc/sys/"+name, []byte(value), 0))
	}
	return errors.Join(errs...)
}

// removeLinks removes the bridge, and the ends of cables there, which the kernel
// would take away a while after the machines at their other ends.
func removeLinks(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return await(ctx, 20*time.Millisecond, "remove the links", func() error {
		links, err := net.Interfaces()
		if err != nil {
			return err
		}
		left := 0
		for _, link := range links {
			if link.Name == bridge || strings.HasPrefix(link.Name, bridge+"-") {
				_ = command("ip", "link", "del", link.Name) // it may be on its way already
				left++
			}
		}
		if left > 0 {
			return errNotYet
		}
		return nil
	})
}

// removeGroups removes a control group from every hierarchy, once the processes
// in there are quite gone.
func removeGroups(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	tops, err := filepath.Glob("/sys/fs/cgroup/*/" + name)
	if err != nil {
		return err
	}
	for _, top := range tops {
		err := await(ctx, 20*time.Millisecond, "remove the control group "+top, func() error { return removeTree(top) })
		if err != nil {
			return err
		}
	}
	return nil
}

// removeTree removes a control group, those in it first.
func removeTree(top string) error {
	var all []string
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			all = append(all, path)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, path := range slices.Backward(all) {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}

// mounted reports whether something is mounted below dir.
func mounted(dir string) bool {
	b, err := os.ReadFile("/proc/self/mountinfo")
	return err != nil || strings.Contains(string(b), " "+dir+"/")
}
