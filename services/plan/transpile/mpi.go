package transpile

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// Roles of strategy mpi.
const (
	roleWorker   = "worker"
	roleLauncher = "launcher"
)

// networkMPI ends the name of the Service of the pods of strategy mpi.
const networkMPI = "mpi"

// Keys are the ssh keys by which the pods of an attempt authenticate each other. They
// are made for each attempt, and stored in a separate Secret.
type Keys struct {
	Private    []byte // private key of the launcher, in OpenSSH format
	Public     []byte // public key of the launcher, in authorized_keys format
	HostKey    []byte // host key of all workers
	KnownHosts []byte // public part of HostKey, for the host HostAlias
}

// HostAlias is the name of all workers in Keys.KnownHosts.
const HostAlias = "worker"

// Paths of the ssh files and keys of a run.
const (
	mpiDir    = pod.Dir + "/mpi"
	keysDir   = pod.Dir + "/mpi-keys"
	mpiPodDir = pod.Dir + "/run/mpi" // files of a single pod
	sshPort   = 2222                 // a port that needs no privileges
)

// mpi returns the workers, and the launcher that starts the processes on them.
func mpi(in Input, s Settings, r role) ([]role, error) {
	d := in.Descriptor.Hardware.Distributed
	slots, err := slotsOf(in, s)
	if err != nil {
		return nil, err
	}
	if len(r.command) == 0 {
		return nil, &RefusedError{
			Reason:  event.InvalidDescriptor,
			Message: "strategy mpi needs ml.benchmark_code (add it)",
		}
	}
	for i := range r.artifacts {
		r.artifacts[i].Quiet = true // any rank may leave the file
	}
	worker, launcher := r, r
	worker.name, worker.replicas, worker.indexed, worker.endsRun, worker.mpi = roleWorker, d.NumInstances, true, false, true
	worker.network, worker.ownsNames = networkMPI, true
	worker.command, worker.script, worker.metrics, worker.ports = []string{mpiDir + "/worker"}, "", nil, []int{sshPort}
	b := builder{in: in, settings: s, role: worker}
	worker.sshFiles, worker.ownsKeys = sshFiles(b.hosts(), slots), true

	launcher.slots = slots
	launcher.name, launcher.mpi, launcher.network, launcher.hardware = roleLauncher, true, networkMPI, launcherHardware(r.hardware)
	_, scripts := in.modelsAndScripts()
	launcher.data, launcher.shared = in.sources(roleLauncher)
	launcher.data = append(launcher.data, scripts...)
	launcher.vars = append(slices.Clone(r.vars), mpiVars(slots*d.NumInstances)...)
	launcher.command = slices.Concat([]string{mpiDir + "/launch"}, launcherCommand(r, slots*d.NumInstances))
	var targets []string
	for _, h := range b.hosts() {
		targets = append(targets, fmt.Sprintf("tcp://%s:%d", h, sshPort))
	}
	launcher.awaitArgs = s.awaitArgs(250*time.Millisecond, 5*time.Second, 1, targets...)
	return []role{worker, launcher}, nil
}

// slotsOf returns the number of processes on each worker.
func slotsOf(in Input, s Settings) (int, error) {
	p := in.Descriptor.Hardware.Distributed.ProcessesPerInstance
	if !p.OnePerGPU {
		return max(1, p.Number), nil
	}
	if n := (builder{settings: s, role: role{hardware: in.Descriptor.Hardware}}).gpus(); n > 0 {
		return n, nil
	}
	return 0, &RefusedError{
		Reason:  event.InvalidDescriptor,
		Message: `hardware.distributed.processes_per_instance is "gpus", and a pod has none: give hardware.gpus, or a number`,
	}
}

// launcherHardware returns the hardware of the launcher, which only starts processes.
func launcherHardware(h descriptors.Hardware) descriptors.Hardware {
	none := 0
	h.InstanceType, h.CPUs, h.Memory, h.GPUs = "", "", "", &none
	return h
}

// launcherCommand returns the command of the launcher: the user's command, under mpirun
// unless it is a script or calls mpirun itself.
func launcherCommand(r role, processes int) []string {
	own := []string{"mpirun", "mpiexec", "mpiexec.hydra", "mpiexec.openmpi", "mpirun.openmpi", "horovodrun", "prterun"}
	if r.script != "" || slices.Contains(own, path.Base(r.command[0])) {
		return r.command
	}
	return slices.Concat([]string{"mpirun", "-n", strconv.Itoa(processes)}, r.command)
}

// mpiVars returns the variables that give every mpirun the hosts and the way to reach
// them, and that turn off binding of ranks to cores. Each pod would count cores from
// the machine's first one, so ranks of pods on one machine would share a core.
func mpiVars(processes int) []corev1.EnvVar {
	var vars []corev1.EnvVar
	for _, v := range [][2]string{
		{"BAI_MPI_PROCESSES", strconv.Itoa(processes)},
		{"BAI_MPI_HOSTFILE", mpiDir + "/hostfile"},
		// Open MPI 4.
		{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
		{"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
		{"OMPI_MCA_orte_default_hostfile", mpiDir + "/hostfile"},
		{"OMPI_MCA_orte_keep_fqdn_hostnames", "1"},
		{"OMPI_MCA_plm_rsh_agent", mpiDir + "/rsh"},
		{"OMPI_MCA_plm_rsh_no_tree_spawn", "1"},
		{"OMPI_MCA_hwloc_base_binding_policy", "none"},
		// Open MPI 5.
		{"PRTE_ALLOW_RUN_AS_ROOT", "1"},
		{"PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
		{"PRTE_MCA_prte_default_hostfile", mpiDir + "/hostfile"},
		{"PRTE_MCA_prte_keep_fqdn_hostnames", "1"},
		{"PRTE_MCA_plm_ssh_agent", mpiDir + "/rsh"},
		{"PRTE_MCA_plm_ssh_no_tree_spawn", "1"},
		{"PRTE_MCA_hwloc_default_binding_policy", "none"},
		// MPICH, which does not bind by default.
		{"HYDRA_HOST_FILE", mpiDir + "/hostfile.hydra"},
		{"HYDRA_LAUNCHER", "ssh"},
		{"HYDRA_LAUNCHER_EXEC", mpiDir + "/rsh"},
		// Intel MPI.
		{"I_MPI_HYDRA_HOST_FILE", mpiDir + "/hostfile.hydra"},
		{"I_MPI_HYDRA_BOOTSTRAP", "ssh"},
		{"I_MPI_HYDRA_BOOTSTRAP_EXEC", mpiDir + "/rsh"},
		{"I_MPI_PIN", "off"},
	} {
		vars = append(vars, corev1.EnvVar{Name: v[0], Value: v[1]})
	}
	return vars
}

// sshFiles returns the files that the pods of a run need for ssh.
func sshFiles(hosts []string, slots int) map[string]string {
	var open, hydra strings.Builder
	for _, h := range hosts {
		fmt.Fprintf(&open, "%s slots=%d\n", h, slots)
		fmt.Fprintf(&hydra, "%s:%d\n", h, slots)
	}
	return map[string]string{
		"hostfile":       open.String(),
		"hostfile.hydra": hydra.String(),
		"ssh_config": lines(
			"Host *", "Port "+strconv.Itoa(sshPort), "IdentityFile "+mpiPodDir+"/id", "IdentitiesOnly yes", "BatchMode yes",
			"HostKeyAlias "+HostAlias, "UserKnownHostsFile "+keysDir+"/known_hosts", "GlobalKnownHostsFile /dev/null",
			"StrictHostKeyChecking yes", "ConnectTimeout 20", "LogLevel ERROR"),
		"sshd_config": lines(
			"Port "+strconv.Itoa(sshPort), "HostKey "+mpiPodDir+"/host", "AuthorizedKeysFile "+keysDir+"/id.pub", "PidFile none",
			"StrictModes no", "UsePAM no", "PasswordAuthentication no", "KbdInteractiveAuthentication no",
			"PermitRootLogin prohibit-password", "MaxStartups 1000", "MaxSessions 1000", "LogLevel ERROR", "ForceCommand "+mpiDir+"/session"),
		"rsh": lines("#!/bin/sh", "exec ssh -F "+mpiDir+`/ssh_config "$@"`),
		"launch": lines("#!/bin/sh -e", "umask 077", "mkdir -p "+mpiPodDir, "cp "+keysDir+"/id "+mpiPodDir+"/id",
			"umask 022", requireProgram("$1", "openmpi-bin or mpich", `command -v "$1" >/dev/null`), `exec "$@"`),
		"worker": lines("#!/bin/sh -e", "umask 077", "mkdir -p "+mpiPodDir, "cp "+keysDir+"/host "+mpiPodDir+"/host",
			"export -p > "+mpiPodDir+"/environment", "umask 022", "mkdir -p /run/sshd 2>/dev/null || true",
			"sshd=$(command -v sshd || echo /usr/sbin/sshd)",
			requireProgram("sshd", "openssh-server", `[ -x "$sshd" ]`),
			`exec "$sshd" -D -e -f `+mpiDir+"/sshd_config"),
		"session": lines("#!/bin/sh", ". "+mpiPodDir+"/environment", `exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"`),
	}
}

// requireProgram returns a line of a shell script that exits if a test fails.
func requireProgram(program, from, test string) string {
	return fmt.Sprintf(`%s || { echo "strategy mpi needs %s, in the image or on the local cluster's machine: install %s (Debian)" >&2; exit 127; }`, test, program, from)
}

func lines(ls ...string) string { return strings.Join(ls, "\n") + "\n" }
