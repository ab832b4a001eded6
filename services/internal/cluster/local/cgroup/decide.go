//go:build linux

package cgroup

import (
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Groups are the cgroups in which groups with limits of CPU, memory and processes are created: below this process's own cgroups in version
// 1, in version 2 below the nearest one that allows groups with these controllers.
type Groups struct {
	cpu, memory string // folders; the same in version 2
	pids        string // the same; empty if processes are not limited
	unified     bool   // version 2
	maxPIDs     int64  // how many processes and threads a group may have
	Unavailable string // why there are none, and the remedy; empty if there are
}

// limitFile is one file of a cgroup and its new content. Without a file only the cgroup is created.
type limitFile struct {
	base, file, value string
	optional          bool // the kernel may lack it
}

// limits returns the files to write for limits of cpu in thousandths of a core and of memory in bytes. Memory has no swap in addition. The
// number of processes is always limited, so that a benchmark that starts more and more leaves the machine usable.
// There always is a group of memory: it counts the processes that the kernel kills.
func (g Groups) limits(cpu, memory int64) []limitFile {
	const period = 100_000 // microseconds
	quota, bytes := strconv.FormatInt(max(cpu*period/1000, 1000), 10), strconv.FormatInt(memory, 10)
	var all []limitFile
	if cpu > 0 && g.unified {
		all = append(all, limitFile{g.cpu, "cpu.max", quota + " " + strconv.Itoa(period), false})
	} else if cpu > 0 {
		all = append(all, limitFile{g.cpu, "cpu.cfs_period_us", strconv.Itoa(period), false},
			limitFile{g.cpu, "cpu.cfs_quota_us", quota, false})
	}
	if memory > 0 && g.unified {
		all = append(all, limitFile{g.memory, "memory.max", bytes, false}, limitFile{g.memory, "memory.swap.max", "0", true})
	} else if memory > 0 {
		all = append(all, limitFile{g.memory, "memory.limit_in_bytes", bytes, false},
			limitFile{g.memory, "memory.memsw.limit_in_bytes", bytes, true})
	} else {
		all = append(all, limitFile{base: g.memory})
	}
	if g.pids != "" {
		all = append(all, limitFile{g.pids, "pids.max", strconv.FormatInt(g.maxPIDs, 10), g.unified})
	}
	return all
}

// pidLimit returns how many processes and threads a container may have, where the machine may have as many as its limits say: 15 % of the
// smallest, as systemd lets a service have, and 4096 at least. Limits that are not positive are not known.
func pidLimit(limits ...int64) int64 {
	smallest := int64(math.MaxInt64)
	for _, l := range limits {
		if l > 0 {
			smallest = min(smallest, l)
		}
	}
	return max(smallest/100*15, 4096)
}

// Folders returns the folders that Create makes, in the same order.
func (g Groups) Folders(name string, cpu, memory int64) []string {
	var dirs []string
	for _, l := range g.limits(cpu, memory) {
		if dir := filepath.Join(l.base, name); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// parse finds the cgroups of CPU and memory of a process in the kernel's lists of mounts and of the process's groups.
func parse(mounts, self string) Groups {
	paths, at := parsePaths(self), make(map[string]string)
	for line := range strings.Lines(mounts) {
		before, after, _ := strings.Cut(strings.TrimSpace(line), " - ")
		b, a := strings.Fields(before), strings.Fields(after)
		if len(b) < 5 || len(a) < 3 {
			continue
		}
		for _, controller := range controllersOf(a[0], a[2]) {
			if path, ok := paths[controller]; ok {
				at[controller] = visiblePath(UnescapeMount(b[4]), UnescapeMount(b[3]), path)
			}
		}
	}
	switch {
	case at["cpu"] != "" && at["memory"] != "":
		return Groups{cpu: at["cpu"], memory: at["memory"], pids: at["pids"]}
	case at[""] != "":
		return Groups{cpu: at[""], memory: at[""], pids: at[""], unified: true}
	}
	return Groups{Unavailable: "no cgroups of CPU and memory are mounted"}
}

// parsePaths returns a process's cgroups by controller; version 2 has an empty controller.
func parsePaths(self string) map[string]string {
	paths := make(map[string]string)
	for line := range strings.Lines(self) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) < 3 {
			continue
		}
		for controller := range strings.SplitSeq(f[1], ",") {
			paths[controller] = f[2]
		}
	}
	return paths
}

// controllersOf returns the controllers of a mount, none if the mount is no cgroup.
func controllersOf(kind, options string) []string {
	switch kind {
	case "cgroup2":
		return []string{""}
	case "cgroup":
		return strings.Split(options, ",")
	}
	return nil
}

// visiblePath returns the path of a cgroup if the part below root is mounted at mount.
func visiblePath(mount, root, path string) string {
	rel, err := filepath.Rel(root, path)
	if err != nil || strings.HasPrefix(rel, "..") {
		return mount // in a cgroup namespace of its own
	}
	return filepath.Join(mount, rel)
}

// UnescapeMount returns the path for its escaped form in the kernel's lists of mounts.
func UnescapeMount(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}
