package hostinfo_test

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod/hostinfo"
	"github.com/benchmark-ai/bai/services/internal/tooltest"
)

// files makes files of a system.
func files(t *testing.T, contents map[string]string) hostinfo.Files {
	t.Helper()
	root := t.TempDir()
	for name, text := range contents {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return hostinfo.Files{Root: root}
}

// server is a machine with two sockets, as a container of version 2 sees it.
func server() map[string]string {
	processor := func(n, socket, core string) string {
		return "processor\t: " + n + "\nmodel name\t: AMD EPYC 9454\nphysical id\t: " + socket + "\ncore id\t: " + core + "\nflags\t: fpu vme hypervisor sse\n\n"
	}
	return map[string]string{
		"proc/sys/kernel/osrelease":       "6.8.0-45-generic\n",
		"etc/os-release":                  "NAME=Debian\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n",
		"proc/cpuinfo":                    processor("0", "0", "0") + processor("1", "0", "0") + processor("2", "1", "0") + processor("3", "1", "1"),
		"proc/meminfo":                    "MemTotal:       16384 kB\nMemFree: 1 kB\n",
		"proc/self/status":                "Name:\tx\nCpus_allowed_list:\t0-1,3\n",
		"proc/self/cgroup":                "0::/\n",
		"sys/devices/system/node/node0/x": "", "sys/devices/system/node/node1/x": "", "sys/devices/system/node/possible": "0-1",
		"sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq": "3810500\n",
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
		"sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "performance\n",
		"sys/devices/system/cpu/intel_pstate/no_turbo":         "1\n",
		"sys/class/dmi/id/sys_vendor":                          "QEMU\n",
		"sys/fs/cgroup/cgroup.controllers":                     "cpu memory io\n",
		"sys/fs/cgroup/cgroup.procs":                           "1\n",
		"sys/fs/cgroup/cpu.max":                                "150000 100000\n",
		"sys/fs/cgroup/memory.max":                             "1073741824\n",
		"proc/driver/nvidia/version":                           "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31\nGCC version: 12\n",
		"proc/driver/nvidia/gpus/0000:01:00.0/information":     "Model: \t\t NVIDIA H200\nIRQ:   \t\t 1\nGPU UUID: \t GPU-1\n",
	}
}

func TestTheFilesOfTheKernelSayWhereItRuns(t *testing.T) {
	got := files(t, server()).Environment()
	want := event.Environment{Machine: event.Machine{
		Kernel: "6.8.0-45-generic", Architecture: runtime.GOARCH, OS: "Debian GNU/Linux 12 (bookworm)", CPUModel: "AMD EPYC 9454",
		CPUs: 4, CPUsAllowed: 3, Cores: 3, Sockets: 2, MaxMHz: 3810.5, Governor: "performance", Turbo: "off", Memory: 16 << 20, NUMANodes: 2,
		CPULimit: 1.5, MemoryLimit: 1 << 30, GPUs: []event.GPU{{Model: "NVIDIA H200", UUID: "GPU-1"}}, GPUDriver: "550.90.07", Hypervisor: "QEMU",
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheLimitThatBindsIsFoundInEveryKindOfGroup(t *testing.T) {
	for name, tt := range map[string]struct {
		files  map[string]string
		cpu    float64
		memory int64
	}{
		"version 2, below a parent with less": {map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/cgroup.controllers": "cpu", "sys/fs/cgroup/a/b/cgroup.procs": "1",
			"sys/fs/cgroup/a/b/cpu.max": "max 100000", "sys/fs/cgroup/a/cpu.max": "50000 100000",
			"sys/fs/cgroup/a/b/memory.max": "9000", "sys/fs/cgroup/a/memory.max": "8000",
		}, 0.5, 8000},
		"version 1": {map[string]string{
			"proc/self/cgroup":                             "4:memory:/x\n2:cpu,cpuacct:/x\n0::/\n",
			"sys/fs/cgroup/memory/x/cgroup.procs":          "1",
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": "4096", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
			"sys/fs/cgroup/cpu,cpuacct/x/cgroup.procs":     "1",
			"sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us": "200000", "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us": "100000",
		}, 2, 4096},
		"version 1 in a container, whose group is the root": {map[string]string{
			"proc/self/cgroup": "4:memory:/kubepods/x\n", "sys/fs/cgroup/memory/cgroup.procs": "1", "sys/fs/cgroup/memory/memory.limit_in_bytes": "4096",
		}, 0, 4096},
		"nothing that can be read": {nil, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := files(t, tt.files).Environment().Machine
			if m.CPULimit != tt.cpu || m.MemoryLimit != tt.memory {
				t.Errorf("%g processors and %d bytes, want %g and %d", m.CPULimit, m.MemoryLimit, tt.cpu, tt.memory)
			}
		})
	}
}

func TestWhatIsNotKnownIsSaid(t *testing.T) {
	e := files(t, nil).Environment()
	if text := strings.Join(e.Unknown, "; "); !strings.Contains(text, "model of the processor") || !strings.Contains(text, "turbo") || !strings.Contains(text, "memory") {
		t.Errorf("unknown: %s", text)
	}
}

// TestThisMachine compares the environment with the output of other programs.
func TestThisMachine(t *testing.T) {
	m := hostinfo.Files{}.Environment().Machine
	if m.CPUsAllowed != runtime.NumCPU() {
		t.Errorf("%d processors, want %d", m.CPUsAllowed, runtime.NumCPU())
	}
	if out, err := exec.CommandContext(t.Context(), "uname", "-r").Output(); err == nil && strings.TrimSpace(string(out)) != m.Kernel {
		t.Errorf("kernel %q, uname says %q", m.Kernel, out)
	}
	if out, err := exec.CommandContext(t.Context(), "nproc", "--all").Output(); err == nil && strings.TrimSpace(string(out)) != strconv.Itoa(m.CPUs) {
		t.Errorf("%d processors, nproc --all says %q", m.CPUs, out)
	}
}

// programs puts programs of that output in the place of all others.
func programs(t *testing.T, all map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, script := range all {
		tooltest.WriteProgram(t, filepath.Join(dir, name), "#!/bin/sh\n"+script)
	}
	t.Setenv("PATH", dir)
}

// run is a hostinfo.RunFunc of a process without a table of processes.
func run(ctx context.Context, out io.Writer, path string, args ...string) error {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdout, cmd.WaitDelay = out, 100*time.Millisecond
	return cmd.Run()
}

func TestProgramsThatAreThereAreAskedForTheirVersions(t *testing.T) {
	programs(t, map[string]string{
		"gcc":        "echo 'gcc (Debian 12.2.0-14) 12.2.0'; echo 'Copyright (C) 2022'",
		"nvcc":       "echo 'nvcc: NVIDIA (R) Cuda compiler driver'; echo 'Copyright (c) 2005-2024'; echo 'Cuda compilation tools, release 12.4, V12.4.131'",
		"mpirun":     "exit 1",
		"python3":    "case $1 in --version) echo Python 3.11.2;; *) echo torch 2.1.0; echo numpy 1.26;; esac",
		"nvidia-smi": "case $1 in --query*) echo 'NVIDIA H200, 143771, GPU-1, 550.90.07'; echo 'NVIDIA H200, [N/A], GPU-2, 550.90.07';; *) echo '| NVIDIA-SMI 550.90.07   Driver Version: 550.90.07   CUDA Version: 12.4     |';; esac",
	})
	var e event.Environment
	hostinfo.AddTools(t.Context(), run, &e)
	want := event.Environment{
		Final: true,
		Tools: map[string]string{"gcc": "gcc (Debian 12.2.0-14) 12.2.0", "nvcc": "Cuda compilation tools, release 12.4, V12.4.131", "python3": "Python 3.11.2", "torch": "2.1.0", "numpy": "1.26"},
		Machine: event.Machine{
			GPUs:      []event.GPU{{Model: "NVIDIA H200", Memory: 143771 << 20, UUID: "GPU-1"}, {Model: "NVIDIA H200", UUID: "GPU-2"}},
			GPUDriver: "550.90.07", CUDA: "12.4",
		},
	}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAProgramThatHangsIsNotWaitedFor(t *testing.T) {
	programs(t, map[string]string{"gcc": "exec sleep 60", "sleep": "exec /bin/sleep 60"})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	var e event.Environment
	begin := time.Now()
	hostinfo.AddTools(ctx, run, &e)
	if took := time.Since(begin); took > 50*time.Second || len(e.Tools) > 0 || !e.Final {
		t.Errorf("after %s: %+v", took, e)
	}
}

// values reads a line as the collector does.
func values(t *testing.T, text []byte) map[string]float64 {
	t.Helper()
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	out := make(map[string]float64)
	for name, v := range all {
		if f, ok := v.(float64); ok && !strings.HasPrefix(name, "@") {
			out[name] = f
		}
	}
	return out
}

func TestWhatATreeOfProcessesUses(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("there is no /proc here")
	}
	cmd := exec.Command("/bin/sh", "-c", "echo; sh -c 'while :; do :; done'")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait() // says that it was killed
	}()
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	m := hostinfo.NewMeter(hostinfo.Files{}, cmd.Process.Pid)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		text := m.Measure()
		if text == nil {
			continue
		}
		got := values(t, text)
		if got[hostinfo.MetricCPU] > 0.05 && got[hostinfo.MetricMemory] > 1000 {
			return
		}
	}
	t.Error("a loop uses no processor")
}

func TestAGroupOfItsOwnIsMeasuredAsAWhole(t *testing.T) {
	self := strconv.Itoa(os.Getpid())
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		t.Skip("there is no /proc here")
	}
	f := files(t, map[string]string{
		"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cgroup.controllers": "cpu", "sys/fs/cgroup/cgroup.procs": self + "\n",
		"proc/" + self + "/stat": string(stat), "sys/fs/cgroup/cpu.stat": "usage_usec 1000000\nuser_usec 1\n",
		"sys/fs/cgroup/memory.current": "5000\n", "sys/fs/cgroup/memory.stat": "anon 1\ninactive_file 1000\n",
		"sys/fs/cgroup/io.stat": "8:0 rbytes=100 wbytes=200 rios=1\n8:16 rbytes=1 wbytes=2\n",
		"proc/self/net/dev":     "Inter-| Receive\n face |bytes\n    lo: 5 0 0 0 0 0 0 0 5 0\n  eth0: 1000 0 0 0 0 0 0 0 2000 0\n",
	})
	m := hostinfo.NewMeter(f, os.Getpid())
	for name, text := range map[string]string{"cpu.stat": "usage_usec 2000000\n", "io.stat": "8:0 rbytes=1100 wbytes=200\n8:16 rbytes=1 wbytes=2\n"} {
		if err := os.WriteFile(filepath.Join(f.Root, "sys/fs/cgroup", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var text []byte
	for text == nil { // for some milliseconds
		text = m.Measure()
	}
	got := values(t, text)
	if got[hostinfo.MetricMemory] != 4000 || got[hostinfo.MetricCPU] <= 0 || got[hostinfo.MetricRead] <= 0 || got[hostinfo.MetricWrite] != 0 || got[hostinfo.MetricReceive] != 0 {
		t.Errorf("measured %v", got)
	}
	if share := got[hostinfo.MetricCPU] / got[hostinfo.MetricRead]; share < 0.00099 || share > 0.00101 {
		t.Errorf("a second of the processor and 1,000 bytes in the same time: %v", got)
	}
}

func TestGPUsAreMeasuredWhereThereIsATool(t *testing.T) {
	programs(t, map[string]string{"nvidia-smi": "echo '0, 97, 1024, 350.5'; echo '1, [N/A], 2048, [N/A]'; echo 'No devices were found'"})
	var lines []string
	hostinfo.GPUs(t.Context(), run, time.Second, func(l []byte) { lines = append(lines, string(l)) })
	if len(lines) != 2 {
		t.Fatalf("%q", lines)
	}
	got := []map[string]float64{values(t, []byte(lines[0])), values(t, []byte(lines[1]))}
	want := []map[string]float64{
		{hostinfo.MetricGPU: 97, hostinfo.MetricGPUMemory: 1024 << 20, hostinfo.MetricGPUPower: 350.5}, {hostinfo.MetricGPUMemory: 2048 << 20},
	}
	if diff := cmp.Diff(want, got); diff != "" || !strings.Contains(lines[1], `"@labels": {"gpu":"1"}`) {
		t.Errorf("%s (-want +got):\n%s", lines[1], diff)
	}
}

func TestOnlyTheGPUsOfTheBenchmarkAreMeasured(t *testing.T) {
	for list, want := range map[string]string{
		"1":              "--id=1",
		"0, 3":           "--id=0,3",
		"GPU-2f9e1a0c,1": "--id=GPU-2f9e1a0c,1",
		"1,-1,2":         "--id=1", // CUDA reads no further
		"MIG-2f9e1a0c":   "--query-gpu=index,utilization.gpu,memory.used,power.draw",
		"":               "",
		"-1":             "",
		"NoDevFiles":     "",
	} {
		t.Run(list, func(t *testing.T) {
			asked := filepath.Join(t.TempDir(), "asked")
			programs(t, map[string]string{"nvidia-smi": "echo $1 > " + asked})
			t.Setenv("CUDA_VISIBLE_DEVICES", list)
			hostinfo.GPUs(t.Context(), run, time.Second, func([]byte) {})
			measured, _ := os.ReadFile(asked) // none where nobody was asked
			hostinfo.AddTools(t.Context(), run, &event.Environment{})
			listed, _ := os.ReadFile(asked)
			if got := strings.TrimSpace(string(measured)); got != want {
				t.Errorf("measured %q, want %q", got, want)
			}
			if got := string(listed) != ""; got != (want != "") {
				t.Errorf("listed %q", listed)
			}
		})
	}
}

// Texts of DCGM 3, as its manual and its source print them: no GPU wrote them here.
const (
	discovery = `2 GPUs found.
+--------+----------------------------------------------------------------------+
| GPU ID | Device Information                                                   |
+--------+----------------------------------------------------------------------+
| 0      | Name: NVIDIA H100 80GB HBM3                                          |
|        | PCI Bus ID: 00000000:19:00.0                                         |
|        | Device UUID: GPU-2f9e1a0c-7d7a-11ee-b962-0242ac120002                |
+--------+----------------------------------------------------------------------+
| 1      | Name: NVIDIA H100 80GB HBM3                                          |
|        | PCI Bus ID: 00000000:3B:00.0                                         |
|        | Device UUID: GPU-3a1b2c3d-7d7a-11ee-b962-0242ac120002                |
+--------+----------------------------------------------------------------------+
0 NvSwitches found.
+-----------+
| Switch ID |
+-----------+
+-----------+
`
	dmon = `#Entity   GPUTL          FBUSD          POWER
ID                       MB             W
GPU 0     97             1024           350.5
GPU 1     N/A            2048           N/A
GPU-I 3   12             10             1
GPU 7     1              1              1
`
)

func TestGPUsAreMeasuredByDCGMWhereItAnswers(t *testing.T) {
	const first, second = "GPU-2f9e1a0c-7d7a-11ee-b962-0242ac120002", "GPU-3a1b2c3d-7d7a-11ee-b962-0242ac120002"
	dcgmi := func(discovery, dmon string) string {
		return "case $1 in discovery) cat <<'EOF'\n" + discovery + "EOF\n;; dmon) test \"$*\" = \"dmon -e 203,252,155 -d 1000\" || exit 9; cat <<'EOF'\n" + dmon + "EOF\nesac"
	}
	smi := func(list string) string {
		return "case $1 in *uuid) printf '" + list + "' ;; *) echo '5, 11, 12, 13' ;; esac"
	}
	for name, tt := range map[string]struct {
		programs map[string]string
		want     []string // labels of each line
	}{
		"by the numbers of nvidia-smi, then by that": {
			map[string]string{"dcgmi": dcgmi(discovery, dmon), "nvidia-smi": smi("5, " + first + "\\n6, " + second + "\\n")},
			[]string{`{"gpu":"5","uuid":"` + first + `"}`, `{"gpu":"6","uuid":"` + second + `"}`, `{"gpu":"5"}`},
		},
		"only those that are visible here": {
			map[string]string{"dcgmi": dcgmi(discovery, dmon), "nvidia-smi": smi("0, " + second + "\\n")},
			[]string{`{"gpu":"0","uuid":"` + second + `"}`, `{"gpu":"5"}`},
		},
		"all where there is no nvidia-smi": {
			map[string]string{"dcgmi": dcgmi(discovery, dmon)},
			[]string{`{"gpu":"0","uuid":"` + first + `"}`, `{"gpu":"1","uuid":"` + second + `"}`},
		},
		"by nvidia-smi where nobody answers dcgmi": {
			map[string]string{"dcgmi": "echo 'Error: unable to establish a connection to the specified host: localhost'; exit 1", "nvidia-smi": smi("5, " + first + "\\n")},
			[]string{`{"gpu":"5"}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tt.programs["cat"] = "exec /bin/cat"
			programs(t, tt.programs)
			var got []string
			hostinfo.GPUs(t.Context(), run, time.Second, func(l []byte) {
				_, labels, _ := strings.Cut(string(l), `"@labels": `)
				got = append(got, strings.TrimSuffix(labels, "}\n"))
			})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzWhatDCGMSays: whatever tools print, a line is one JSON object of numbers, or
// none.
func FuzzWhatDCGMSays(f *testing.F) {
	for line := range strings.Lines(dmon) {
		f.Add(discovery, "0, GPU-2f9e1a0c-7d7a-11ee-b962-0242ac120002\n", line)
	}
	f.Add(discovery, "", "GPU 0 NaN Inf -1")
	f.Add(discovery, "\x00\xff, GPU-2f9e1a0c-7d7a-11ee-b962-0242ac120002", "GPU 0 1e308 1e308 1e-400")
	f.Add("| 99999 | Device UUID: GPU-a", "", "GPU 99999 1 2 3 4")
	f.Fuzz(func(t *testing.T, table, list, text string) {
		l := hostinfo.DCGMLine(text, table, list, time.Unix(1, 0))
		if l == nil {
			return
		}
		var object map[string]any
		if err := json.Unmarshal(l, &object); err != nil || l[len(l)-1] != '\n' || strings.Count(string(l), "\n") != 1 {
			t.Errorf("%q: %v", l, err)
		}
	})
}

// BenchmarkMeasure is the cost of one measurement, which is taken every second beside a
// benchmark.
func BenchmarkMeasure(b *testing.B) {
	m := hostinfo.NewMeter(hostinfo.Files{}, os.Getpid())
	for b.Loop() {
		m.Measure()
	}
}
