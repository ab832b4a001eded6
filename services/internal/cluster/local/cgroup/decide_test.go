//go:build linux

package cgroup

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhereTheCgroupsOfAProcessAre(t *testing.T) {
	const v1 = `30 23 0:26 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct
31 23 0:27 / /sys/fs/cgroup/memory rw,nosuid shared:10 - cgroup cgroup rw,memory
32 23 0:28 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw
`
	const v2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
	for name, tt := range map[string]struct {
		mounts, own string
		want        Groups
	}{
		"version 1 with that of processes": {v1 + "33 23 0:28 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n", "4:memory:/a/b\n2:pids:/p\n1:cpu,cpuacct:/\n", Groups{cpu: "/sys/fs/cgroup/cpu,cpuacct", memory: "/sys/fs/cgroup/memory/a/b", pids: "/sys/fs/cgroup/pids/p"}},
		"version 1":                        {v1, "4:memory:/a/b\n1:cpu,cpuacct:/\n0::/\n", Groups{cpu: "/sys/fs/cgroup/cpu,cpuacct", memory: "/sys/fs/cgroup/memory/a/b"}},
		"version 2":                        {v2, "0::/user.slice/x.scope\n", Groups{cpu: "/sys/fs/cgroup/user.slice/x.scope", memory: "/sys/fs/cgroup/user.slice/x.scope", pids: "/sys/fs/cgroup/user.slice/x.scope", unified: true}},
		"version 2 in a namespace":         {"1 2 0:1 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup rw\n", "0::/\n", Groups{cpu: "/sys/fs/cgroup", memory: "/sys/fs/cgroup", pids: "/sys/fs/cgroup", unified: true}},
		"version 1 below what is mounted":  {"1 2 0:1 /docker/x /cg/cpu rw - cgroup cgroup rw,cpu\n1 2 0:1 /docker/x /cg/mem rw - cgroup cgroup rw,memory\n", "2:cpu:/docker/x/y\n3:memory:/docker/x\n", Groups{cpu: "/cg/cpu/y", memory: "/cg/mem"}},
		"version 1 without that of memory": {"1 2 0:1 / /cg/cpu rw - cgroup cgroup rw,cpu\n", "2:cpu:/\n3:memory:/\n", Groups{Unavailable: "no cgroups of CPU and memory are mounted"}},
		"none":                             {"", "", Groups{Unavailable: "no cgroups of CPU and memory are mounted"}},
	} {
		if diff := cmp.Diff(tt.want, parse(tt.mounts, tt.own), cmp.AllowUnexported(Groups{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestWhatIsWrittenForLimits(t *testing.T) {
	v1, v2 := Groups{cpu: "/c", memory: "/m", pids: "/p", maxPIDs: 4096}, Groups{cpu: "/u", memory: "/u", pids: "/u", unified: true, maxPIDs: 5000}
	for name, tt := range map[string]struct {
		groups      Groups
		cpu, memory int64
		want        []limitFile
	}{
		"version 1": {v1, 1500, 4096, []limitFile{
			{"/c", "cpu.cfs_period_us", "100000", false},
			{"/c", "cpu.cfs_quota_us", "150000", false},
			{"/m", "memory.limit_in_bytes", "4096", false},
			{"/m", "memory.memsw.limit_in_bytes", "4096", true},
			{"/p", "pids.max", "4096", false},
		}},
		"version 2": {v2, 1500, 4096, []limitFile{
			{"/u", "cpu.max", "150000 100000", false},
			{"/u", "memory.max", "4096", false},
			{"/u", "memory.swap.max", "0", true},
			{"/u", "pids.max", "5000", true},
		}},
		"no less of a core than the kernel takes": {v2, 1, 0, []limitFile{
			{"/u", "cpu.max", "1000 100000", false}, {base: "/u"}, {"/u", "pids.max", "5000", true},
		}},
		"only the number of processes where nothing else is limited": {v1, 0, 0, []limitFile{
			{base: "/m"}, {"/p", "pids.max", "4096", false},
		}},
		"no number of processes where the kernel does not count them": {Groups{cpu: "/c", memory: "/m"}, 0, 0, []limitFile{{base: "/m"}}},
	} {
		var dirs []string
		for _, l := range tt.want {
			dirs = append(dirs, l.base+"/pod")
		}
		if diff := cmp.Diff(slices.Compact(dirs), tt.groups.Folders("pod", tt.cpu, tt.memory)); diff != "" {
			t.Errorf("%s: folders (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(tt.want, tt.groups.limits(tt.cpu, tt.memory), cmp.AllowUnexported(limitFile{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestHowManyProcessesAContainerMayHave(t *testing.T) {
	for name, tt := range map[string]struct {
		limits []int64
		want   int64
	}{
		"a share of the smallest limit":        {[]int64{4194304, 100_000}, 15_000},
		"4096 on a small machine":              {[]int64{32768, 8000}, 4096},
		"no less because a limit is not known": {[]int64{0, 100_000}, 15_000},
	} {
		if got := pidLimit(tt.limits...); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}
