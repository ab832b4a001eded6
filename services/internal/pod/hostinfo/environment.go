package hostinfo

import (
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// Environment returns the environment of this process, from the kernel's files. It takes
// milliseconds and runs no program.
func (f Files) Environment() event.Environment {
	e := event.Environment{Machine: event.Machine{
		Kernel: f.text("/proc/sys/kernel/osrelease"), Architecture: runtime.GOARCH, OS: f.system(),
		CPUsAllowed: count(f.fields("/proc/self/status", ":")["Cpus_allowed_list"]),
		Memory:      f.memory(), NUMANodes: len(f.glob("/sys/devices/system/node/node[0-9]*")),
	}}
	m := &e.Machine
	f.processors(m)
	f.clock(m)
	f.limits(m)
	f.gpus(m)
	for _, u := range []struct {
		unknown bool
		what    string
	}{
		{m.CPUModel == "", "the model of the processor: /proc/cpuinfo does not say it"},
		{m.Memory == 0, "the size of the memory: /proc/meminfo cannot be read"},
		{m.Governor == "", "how the clock follows the load: the kernel does not say it, as in most virtual machines"},
		{m.Turbo == "", "whether turbo is on: the kernel does not say it, as in most virtual machines"},
	} {
		if u.unknown {
			e.Unknown = append(e.Unknown, u.what)
		}
	}
	return e
}

// system returns the name of the container's system.
func (f Files) system() string {
	return strings.Trim(f.fields("/etc/os-release", "=")["PRETTY_NAME"], `"'`)
}

func (f Files) memory() int64 {
	text, _ := strings.CutSuffix(f.fields("/proc/meminfo", ":")["MemTotal"], " kB")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}

// processors reads /proc/cpuinfo.
func (f Files) processors(m *event.Machine) {
	cores, sockets := make(map[string]bool), make(map[string]bool)
	virtual, socket, part := false, "", []string(nil)
	for line := range strings.SplitSeq(f.text("/proc/cpuinfo"), "\n") {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "processor":
			m.CPUs++
		case "model name":
			m.CPUModel = value
		case "CPU implementer", "CPU part": // of arm64, which has no names
			if name := strings.TrimSpace(key) + " " + value; !slices.Contains(part, name) {
				part = append(part, name)
			}
		case "physical id":
			socket = value
			sockets[socket] = true
		case "core id":
			cores[socket+"/"+value] = true
		case "flags":
			virtual = virtual || strings.Contains(" "+value+" ", " hypervisor ")
		}
	}
	if m.CPUModel == "" {
		m.CPUModel = strings.Join(part, ", ")
	}
	m.Cores, m.Sockets = len(cores), len(sockets)
	if virtual {
		m.Hypervisor = "unknown"
	}
	if vendor := f.text("/sys/hypervisor/type"); vendor != "" && vendor != "none" {
		m.Hypervisor = vendor
	} else if vendor := f.text("/sys/class/dmi/id/sys_vendor"); virtual && vendor != "" {
		m.Hypervisor = vendor
	}
}

// clock reads the frequency of processors and its settings.
func (f Files) clock(m *event.Machine) {
	if kHz, ok := f.number("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"); ok {
		m.MaxMHz = float64(kHz) / 1000
	}
	var governors []string
	for _, path := range f.glob("/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor") {
		if g := f.text(path); g != "" && !slices.Contains(governors, g) {
			governors = append(governors, g)
		}
	}
	slices.Sort(governors)
	m.Governor = strings.Join(governors, ", ")
	onOff := map[int64]string{0: "off", 1: "on"}
	if off, ok := f.number("/sys/devices/system/cpu/intel_pstate/no_turbo"); ok {
		m.Turbo = onOff[1-off]
	} else if on, ok := f.number("/sys/devices/system/cpu/cpufreq/boost"); ok {
		m.Turbo = onOff[on]
	}
}

// limits reads those of the control groups.
func (f Files) limits(m *event.Machine) {
	groups := f.groups("/proc/self/cgroup")
	if at, ok := groups[""]; ok {
		m.CPULimit = f.limit(at, func(dir string) float64 { return f.quota(dir + "/cpu.max") })
		m.MemoryLimit = int64(f.limit(at, func(dir string) float64 { return f.bytes(dir + "/memory.max") }))
	}
	if at, ok := groups["cpu"]; ok && m.CPULimit == 0 {
		m.CPULimit = f.limit(at, func(dir string) float64 {
			quota, ok := f.number(dir + "/cpu.cfs_quota_us")
			period, ok2 := f.number(dir + "/cpu.cfs_period_us")
			if !ok || !ok2 || quota <= 0 || period <= 0 {
				return 0
			}
			return float64(quota) / float64(period)
		})
	}
	if at, ok := groups["memory"]; ok && m.MemoryLimit == 0 {
		m.MemoryLimit = int64(f.limit(at, func(dir string) float64 { return f.bytes(dir + "/memory.limit_in_bytes") }))
	}
	m.CPULimit = math.Round(m.CPULimit*1000) / 1000
}

// quota reads a limit of processors: "QUOTA PERIOD", or "max PERIOD" for none.
func (f Files) quota(name string) float64 {
	quota, period, _ := strings.Cut(f.text(name), " ")
	a, errA := strconv.ParseFloat(quota, 64)
	b, errB := strconv.ParseFloat(period, 64)
	if errA != nil || errB != nil || b <= 0 {
		return 0
	}
	return a / b
}

// bytes reads a limit of memory; a text that is no number, or more than any machine has,
// is none.
func (f Files) bytes(name string) float64 {
	n, ok := f.number(name)
	if !ok || n >= 1<<60 {
		return 0
	}
	return float64(n)
}

// gpus reads the files of the GPU driver.
func (f Files) gpus(m *event.Machine) {
	for _, path := range f.glob("/proc/driver/nvidia/gpus/*/information") {
		facts := f.fields(path, ":")
		m.GPUs = append(m.GPUs, event.GPU{Model: facts["Model"], UUID: facts["GPU UUID"]})
	}
	for word := range strings.FieldsSeq(strings.SplitN(f.text("/proc/driver/nvidia/version"), "\n", 2)[0]) {
		if word[0] >= '0' && word[0] <= '9' && strings.Count(word, ".") >= 1 {
			m.GPUDriver = word
			break
		}
	}
}
