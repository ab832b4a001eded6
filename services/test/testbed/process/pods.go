package process

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// PodProcesses returns the platform's own processes in the pods of a data directory on
// this machine that do a job: "collect" or "pull". Their supervisor names the directory.
func PodProcesses(dir, job string) []int {
	all := table()
	var found []int
	for pid, p := range all {
		if len(p.argv) < 2 || p.argv[1] != job || !strings.HasPrefix(filepath.Base(p.argv[0]), "bai-pod") {
			continue
		}
		for at, depth := p.parent, 0; depth < 16 && at > 1; depth++ {
			above := all[at]
			if slices.ContainsFunc(above.argv, func(arg string) bool { return strings.Contains(arg, dir) }) {
				found = append(found, pid)
				break
			}
			at = above.parent
		}
	}
	return found
}

// row is one process.
type row struct {
	parent int
	argv   []string
}

// table returns all processes of this machine, by their numbers.
func table() map[int]row {
	all := make(map[int]row)
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range procs {
		pid, err := strconv.Atoi(filepath.Base(proc))
		if err != nil {
			continue
		}
		line, _ := os.ReadFile(proc + "/cmdline") // it may be gone
		stat, _ := os.ReadFile(proc + "/stat")
		var state string
		var parent int
		_, _ = fmt.Sscan(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), &state, &parent)
		all[pid] = row{parent, strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")}
	}
	return all
}
