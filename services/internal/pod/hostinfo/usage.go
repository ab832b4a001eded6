package hostinfo

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Names of the metrics of the benchmark itself, and units.
const (
	MetricCPU      = "system.cpu"              // cores
	MetricMemory   = "system.memory"           // B
	MetricRead     = "system.io.read"          // B/s
	MetricWrite    = "system.io.write"         // B/s
	MetricReceive  = "system.network.receive"  // B/s, of all interfaces of the pod but lo
	MetricTransmit = "system.network.transmit" // B/s
)

// Meter measures a benchmark's use of resources: by the control group of its container if
// that holds nothing else, else by its tree of processes.
type Meter struct {
	files          Files
	groupExclusive bool // the control groups are the benchmark's alone
	groups         groups
	root           int // process whose tree is the benchmark
	last           reading
	zones          []raplZone
}

// reading is the state of the counters at one time.
type reading struct {
	at                time.Time
	cpu               float64 // seconds
	memory            float64 // bytes
	read, written     float64
	received, sent    float64
	haveCPU, haveDisk bool
	haveNet           bool
}

// NewMeter returns a Meter of the benchmark whose process is root.
func NewMeter(f Files, root int) *Meter {
	m := &Meter{files: f, root: root, groups: f.groups("/proc/self/cgroup")}
	m.groupExclusive, m.zones = m.isGroupExclusive(), f.raplZones()
	m.last = m.read()
	return m
}

// isGroupExclusive reports whether no process is in the control group but this one and its
// descendants.
func (m *Meter) isGroupExclusive() bool {
	at := cmp.Or(m.groups[""], m.groups["memory"])
	if m.groups["memory"] != "" {
		at = m.groups["memory"]
	}
	if at == "" || m.files.text(at+"/memory.current") == "" && m.files.text(at+"/memory.usage_in_bytes") == "" {
		return false
	}
	mine := m.files.tree(os.Getpid())
	for pid := range strings.FieldsSeq(m.files.text(at + "/cgroup.procs")) {
		n, err := strconv.Atoi(pid)
		if err != nil || mine[n] == nil {
			return false
		}
	}
	return true
}

// Measure returns the use since the last call, as a line of the platform's client
// libraries, or nil if too little time has passed.
func (m *Meter) Measure() []byte {
	now := m.read()
	span := now.at.Sub(m.last.at).Seconds()
	if span < 0.01 {
		return nil
	}
	l := line{at: now.at}
	if now.haveCPU && m.last.haveCPU {
		l.add(MetricCPU, "cores", max(0, now.cpu-m.last.cpu)/span)
	}
	if now.memory > 0 {
		l.add(MetricMemory, "B", now.memory)
	}
	if now.haveDisk && m.last.haveDisk {
		l.add(MetricRead, "B/s", max(0, now.read-m.last.read)/span)
		l.add(MetricWrite, "B/s", max(0, now.written-m.last.written)/span)
	}
	if now.haveNet && m.last.haveNet {
		l.add(MetricReceive, "B/s", max(0, now.received-m.last.received)/span)
		l.add(MetricTransmit, "B/s", max(0, now.sent-m.last.sent)/span)
	}
	m.last = now
	return l.end()
}

// read reads all counters.
func (m *Meter) read() reading {
	r := reading{at: time.Now()}
	if m.groupExclusive {
		m.group(&r)
	} else {
		m.processes(&r)
	}
	m.network(&r)
	return r
}

// group reads the counters of the control group.
func (m *Meter) group(r *reading) {
	f := m.files
	if at, ok := m.groups[""]; ok {
		if usec, err := strconv.ParseFloat(f.fields(at+"/cpu.stat", " ")["usage_usec"], 64); err == nil {
			r.cpu, r.haveCPU = usec/1e6, true
		}
		r.memory = f.usedMemory(at+"/memory.current", at+"/memory.stat", "inactive_file")
		r.read, r.written, r.haveDisk = f.ioStat(at + "/io.stat")
	}
	if ns, ok := f.number(m.groups["cpuacct"] + "/cpuacct.usage"); ok && !r.haveCPU {
		r.cpu, r.haveCPU = float64(ns)/1e9, true
	}
	if at, ok := m.groups["memory"]; ok && r.memory == 0 {
		r.memory = f.usedMemory(at+"/memory.usage_in_bytes", at+"/memory.stat", "total_inactive_file")
	}
	if at, ok := m.groups["blkio"]; ok && !r.haveDisk {
		r.read, r.written, r.haveDisk = f.blkioBytes(at + "/blkio.throttle.io_service_bytes")
	}
}

// usedMemory returns the memory in use: without pages of files that have been idle for a
// while.
func (f Files) usedMemory(current, stat, idle string) float64 {
	n, ok := f.number(current)
	if !ok {
		return 0
	}
	unused, err := strconv.ParseInt(f.fields(stat, " ")[idle], 10, 64)
	if err != nil {
		unused = 0
	}
	return float64(max(0, n-unused))
}

// ioStat sums io.stat: "8:0 rbytes=1 wbytes=2 …" for each device.
func (f Files) ioStat(name string) (read, written float64, ok bool) {
	if _, err := os.Stat(f.path(name)); err != nil {
		return 0, 0, false
	}
	for field := range strings.FieldsSeq(f.text(name)) {
		key, value, _ := strings.Cut(field, "=")
		n, err := strconv.ParseFloat(value, 64)
		switch {
		case err != nil:
		case key == "rbytes":
			read += n
		case key == "wbytes":
			written += n
		}
	}
	return read, written, true
}

// blkioBytes sums blkio.throttle.io_service_bytes: "8:0 Read 1" for each device
// and operation.
func (f Files) blkioBytes(name string) (read, written float64, ok bool) {
	if _, err := os.Stat(f.path(name)); err != nil {
		return 0, 0, false
	}
	for text := range strings.Lines(f.text(name)) {
		fields := strings.Fields(text)
		if len(fields) != 3 {
			continue
		}
		n, err := strconv.ParseFloat(fields[2], 64)
		switch {
		case err != nil:
		case fields[1] == "Read":
			read += n
		case fields[1] == "Write":
			written += n
		}
	}
	return read, written, true
}

// network sums the interfaces of this network namespace but lo; see
// proc_net_dev(5).
func (m *Meter) network(r *reading) {
	for text := range strings.Lines(m.files.text("/proc/self/net/dev")) {
		name, counters, ok := strings.Cut(text, ":")
		fields := strings.Fields(counters)
		if !ok || len(fields) < 9 {
			continue
		}
		r.haveNet = true
		if strings.TrimSpace(name) == "lo" {
			continue
		}
		in, errIn := strconv.ParseFloat(fields[0], 64)
		out, errOut := strconv.ParseFloat(fields[8], 64)
		if errIn == nil && errOut == nil {
			r.received, r.sent = r.received+in, r.sent+out
		}
	}
}

// line is a line of samples of one time.
type line struct {
	at            time.Time
	values, units []byte
}

func (l *line) add(name, unit string, v float64) {
	l.values = strconv.AppendFloat(fmt.Appendf(l.values, "%q: ", name), v, 'f', -1, 64)
	l.values = append(l.values, ", "...)
	l.units = fmt.Appendf(l.units, ", %q: %q", name, unit)
}

// end returns the line, nothing where nothing was measured.
func (l *line) end() []byte {
	if len(l.values) == 0 {
		return nil
	}
	return fmt.Appendf(nil, "{%s\"@time\": %d.%09d, \"@unit\": {%s}}\n", l.values, l.at.Unix(), l.at.Nanosecond(), l.units[2:])
}

// process is one process in /proc.
type process struct {
	pid, parent int
	ticks       float64 // of itself and of children that have ended
	pages       float64
}

// hz is how many ticks a second has in /proc on every Linux that Go runs on.
const hz = 100

// tree returns a process and its descendants, by PID.
func (f Files) tree(root int) map[int]*process {
	dir, err := os.ReadDir(f.path("/proc"))
	if err != nil {
		return nil
	}
	all := make(map[int]*process)
	for _, entry := range dir {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			if p, ok := f.process(pid); ok {
				all[pid] = p
			}
		}
	}
	in := map[int]*process{}
	if p := all[root]; p != nil {
		in[root] = p
	}
	for grown := len(in) > 0; grown; {
		grown = false
		for pid, p := range all {
			if in[pid] == nil && in[p.parent] != nil {
				in[pid], grown = p, true
			}
		}
	}
	return in
}

// process reads /proc/PID/stat; see proc_pid_stat(5).
func (f Files) process(pid int) (*process, bool) {
	text := f.text(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 22 {
		return nil, false
	}
	p := &process{pid: pid}
	var errs []error
	number := func(i int) float64 {
		v, err := strconv.ParseFloat(fields[i], 64)
		errs = append(errs, err)
		return v
	}
	p.parent = int(number(1))
	p.ticks = number(11) + number(12) + number(13) + number(14)
	p.pages = number(21)
	return p, !slices.ContainsFunc(errs, func(err error) bool { return err != nil })
}

// processes reads the counters of the tree of processes. Memory that several
// share counts for each.
func (m *Meter) processes(r *reading) {
	for pid, p := range m.files.tree(m.root) {
		r.cpu += p.ticks / hz
		r.memory += p.pages * float64(os.Getpagesize())
		r.haveCPU = true
		facts := m.files.fields(fmt.Sprintf("/proc/%d/io", pid), ":")
		read, errR := strconv.ParseFloat(facts["read_bytes"], 64)
		written, errW := strconv.ParseFloat(facts["write_bytes"], 64)
		if errR == nil && errW == nil {
			r.read, r.written, r.haveDisk = r.read+read, r.written+written, true
		}
	}
}
