// Package hostinfo finds out where a benchmark runs and which resources it uses, from
// within its container: from the kernel's files, and from installed programs.
package hostinfo

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Files are the files of a system.
type Files struct {
	Root string // where they lie; empty means /
}

func (f Files) path(name string) string { return filepath.Join("/", f.Root, name) }

// text returns the content of a small file, "" if it cannot be read.
func (f Files) text(name string) string {
	b, err := os.ReadFile(f.path(name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// number returns the whole number that a file holds.
func (f Files) number(name string) (int64, bool) {
	n, err := strconv.ParseInt(f.text(name), 10, 64)
	return n, err == nil
}

// fields returns the lines of a file that have the form "name: value" or "name
// value", as far as they are wanted.
func (f Files) fields(name, separator string) map[string]string {
	all := make(map[string]string)
	lines := bufio.NewScanner(strings.NewReader(f.text(name)))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if key, value, ok := strings.Cut(lines.Text(), separator); ok {
			all[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	return all
}

// glob returns the files that a pattern names.
func (f Files) glob(pattern string) []string {
	found, err := filepath.Glob(f.path(pattern))
	if err != nil {
		return nil // the patterns here are sound
	}
	for i, path := range found {
		found[i] = "/" + strings.TrimPrefix(strings.TrimPrefix(path, f.path("/")), "/")
	}
	return found
}

// count returns how many processors a list such as 0-3,8 names.
func count(list string) (n int) {
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		a, err := strconv.Atoi(from)
		if err != nil {
			continue
		}
		b := a
		if isRange {
			if b, err = strconv.Atoi(to); err != nil {
				continue
			}
		}
		n += max(0, b-a+1)
	}
	return n
}

// groups are where the control groups of this process lie, by controller; that
// of version 2 has the empty name.
type groups map[string]string

// groups returns the control groups that /proc/self/cgroup names, as far as
// their files are seen here.
func (f Files) groups(file string) groups {
	all := make(groups)
	lines := bufio.NewScanner(bytes.NewReader([]byte(f.text(file))))
	for lines.Scan() {
		parts := strings.SplitN(lines.Text(), ":", 3)
		if len(parts) != 3 {
			continue
		}
		if parts[1] == "" {
			all.put("", f.unifiedGroup(parts[2]))
			continue
		}
		for controller := range strings.SplitSeq(parts[1], ",") {
			all.put(controller, f.groupBelow("/sys/fs/cgroup/"+controller, parts[2]))
			all.put(controller, f.groupBelow("/sys/fs/cgroup/"+parts[1], parts[2]))
		}
	}
	return all
}

// put notes where the group of a controller lies, unless that is known.
func (g groups) put(controller, at string) {
	if at != "" && g[controller] == "" {
		g[controller] = at
	}
}

// unifiedGroup returns where a group of version 2 lies: alone, or beside version 1.
func (f Files) unifiedGroup(path string) string {
	if f.text("/sys/fs/cgroup/cgroup.controllers") != "" {
		return f.groupBelow("/sys/fs/cgroup", path)
	}
	return f.groupBelow("/sys/fs/cgroup/unified", path)
}

// groupBelow returns where a group lies below the mount of its hierarchy: at its
// path, or at the mount itself, where a container sees its own group as the root.
func (f Files) groupBelow(mount, path string) string {
	for _, at := range []string{filepath.Join(mount, path), mount} {
		if _, err := os.Stat(filepath.Join(f.path(at), "cgroup.procs")); err == nil {
			return at
		}
	}
	return ""
}

// limit returns the smallest limit of a group and those that it lies in; 0 is
// none.
func (f Files) limit(group string, read func(dir string) float64) (lowest float64) {
	for dir := group; strings.HasPrefix(dir, "/sys/fs/cgroup"); dir = filepath.Dir(dir) {
		if n := read(dir); n > 0 && (lowest == 0 || n < lowest) {
			lowest = n
		}
	}
	return lowest
}
