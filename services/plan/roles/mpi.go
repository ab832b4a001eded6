package roles

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/plan/refusal"
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
	MPIDir    = pod.Dir + "/mpi"
	KeysDir   = pod.Dir + "/mpi-keys"
	mpiPodDir = pod.Dir + "/run/mpi" // files of a single pod
)

// mpi returns the workers, and the launcher that starts the processes on them.
func mpi(in Input, r Role) ([]Role, error) {
	slots, err := slotsOf(in, r)
	if err != nil {
		return nil, err
	}
	if len(r.Command) == 0 {
		return nil, refusal.Descriptor("strategy mpi needs ml.benchmark_code (add it)")
	}
	if in.Names.Operator && len(r.Steps) > 0 {
		return nil, refusal.Descriptor("this platform runs strategy mpi by Kubeflow's MPI operator, whose runs have no [[steps]] (leave them out)")
	}
	r.quietArtifacts()
	r.MPI, r.Network = true, networkMPI
	r.Vars = append(slices.Clip(r.Vars), transportVars(r.PodNetwork.Transport)...)
	sshPort := r.PodNetwork.SSHPort
	worker, launcher := r, r
	worker.Name, worker.Replicas, worker.Indexed, worker.EndsRun = roleWorker, in.Descriptor.Hardware.Distributed.NumInstances, true, false
	worker.Command, worker.Script, worker.Metrics, worker.Parsers, worker.ParserScripts = []string{MPIDir + "/worker"}, "", nil, nil, nil
	worker.Ports, worker.Steps = []int{sshPort}, nil
	worker.Listens = []int{sshPort}
	hosts := in.Names.Hosts(worker)
	worker.OwnsNames, worker.OwnsKeys, worker.SSHFiles = true, true, sshFiles(hosts, slots, sshPort)

	launcher.Name, launcher.Slots, launcher.Hardware, launcher.PodNetwork = roleLauncher, slots, launcherHardware(r.Hardware),
		launcherNetwork(r.PodNetwork)
	_, scripts := in.modelsAndScripts()
	launcher.Data, launcher.Shared = in.sources(roleLauncher)
	launcher.Data = append(launcher.Data, scripts...)
	launcher.Vars = append(slices.Clone(r.Vars), mpiVars(slots*worker.Replicas)...)
	launcher.Command = slices.Concat([]string{MPIDir + "/launch"}, launcherCommand(r, slots*worker.Replicas))
	targets := make([]string, 0, len(hosts))
	for _, h := range hosts {
		targets = append(targets, tcpTarget(h, sshPort))
	}
	launcher.AwaitArgs = in.awaitArgs(250*time.Millisecond, 5*time.Second, 1, targets...)
	return []Role{worker, launcher}, nil
}

// slotsOf returns the number of processes on each worker.
func slotsOf(in Input, r Role) (int, error) {
	p := in.Descriptor.Hardware.Distributed.ProcessesPerInstance
	if !p.OnePerGPU {
		return max(1, p.Number), nil
	}
	if n := r.GPUs(in.Instances); n > 0 {
		return n, nil
	}
	return 0, refusal.Descriptor(`hardware.distributed.processes_per_instance is "gpus", and a pod has none: give hardware.gpus, or a number`)
}

// launcherHardware returns the hardware of the launcher, which only starts processes.
func launcherHardware(h descriptors.Hardware) descriptors.Hardware {
	none := 0
	h.InstanceType, h.CPUs, h.Memory, h.GPUs, h.Requests, h.Limits = "", "", "", &none, nil, nil
	return h
}

// launcherNetwork returns the network of the launcher. It needs no devices, and is never in
// the network of its node: mpirun would take a worker on that node for its own host, and
// start the processes beside itself.
func launcherNetwork(n descriptors.Network) descriptors.Network {
	n.HostNetwork, n.RDMA = false, nil
	return n
}

// transportVars returns the variables by which the processes of Open MPI take a transport.
// Those of launcher and workers are the same, since mpirun passes on its own variables only
// in part.
func transportVars(t descriptors.Transport) []corev1.EnvVar {
	switch t {
	case descriptors.TCP:
		return []corev1.EnvVar{
			{Name: "OMPI_MCA_btl", Value: "self,tcp"}, {Name: "OMPI_MCA_pml", Value: "ob1"}, {Name: "OMPI_MCA_osc", Value: "^ucx"},
		}
	case descriptors.RDMATransport:
		return []corev1.EnvVar{
			{Name: "OMPI_MCA_btl", Value: "^openib"},
			{Name: "OMPI_MCA_pml", Value: "ucx"},
			{Name: "OMPI_MCA_osc", Value: "ucx"},
			{Name: "UCX_TLS", Value: "self,rc_x"},
		}
	}
	return nil
}

// StartsRanks reports whether a program, or its path, is one of those that start the processes of an MPI run: of Open MPI, PRRTE, MPICH,
// Intel MPI or Horovod, under each name that Debian gives them.
func StartsRanks(program string) bool {
	return slices.Contains([]string{
		"mpirun", "mpiexec", "mpirun.openmpi", "mpiexec.openmpi", "orterun", "prterun", "mpirun.mpich", "mpiexec.mpich",
		"mpiexec.hydra", "horovodrun",
	}, path.Base(program))
}

// launcherCommand returns the command of the launcher: the user's command, under mpirun
// unless it is a script or calls mpirun itself.
func launcherCommand(r Role, processes int) []string {
	if r.Script != "" || StartsRanks(r.Command[0]) {
		return r.Command
	}
	return slices.Concat([]string{"mpirun", "-n", strconv.Itoa(processes)}, r.Command)
}

// mpiVars returns the variables that give every mpirun the hosts and the way to reach
// them, and that turn off binding of ranks to cores. Each pod would count cores from
// the machine's first one, so ranks of pods on one machine would share a core.
func mpiVars(processes int) []corev1.EnvVar {
	var vars []corev1.EnvVar
	for _, v := range [][2]string{
		{"BAI_MPI_PROCESSES", strconv.Itoa(processes)},
		{"BAI_MPI_HOSTFILE", MPIDir + "/hostfile"},
		// Open MPI 4.
		{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
		{"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
		{"OMPI_MCA_orte_default_hostfile", MPIDir + "/hostfile"},
		{"OMPI_MCA_orte_keep_fqdn_hostnames", "1"},
		{"OMPI_MCA_plm_rsh_agent", MPIDir + "/rsh"},
		{"OMPI_MCA_plm_rsh_no_tree_spawn", "1"},
		{"OMPI_MCA_hwloc_base_binding_policy", "none"},
		// Open MPI 5.
		{"PRTE_ALLOW_RUN_AS_ROOT", "1"},
		{"PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
		{"PRTE_MCA_prte_default_hostfile", MPIDir + "/hostfile"},
		{"PRTE_MCA_prte_keep_fqdn_hostnames", "1"},
		{"PRTE_MCA_plm_ssh_agent", MPIDir + "/rsh"},
		{"PRTE_MCA_plm_ssh_no_tree_spawn", "1"},
		{"PRTE_MCA_hwloc_default_binding_policy", "none"},
		// MPICH, which does not bind by default.
		{"HYDRA_HOST_FILE", MPIDir + "/hostfile.hydra"},
		{"HYDRA_LAUNCHER", "ssh"},
		{"HYDRA_LAUNCHER_EXEC", MPIDir + "/rsh"},
		// Intel MPI.
		{"I_MPI_HYDRA_HOST_FILE", MPIDir + "/hostfile.hydra"},
		{"I_MPI_HYDRA_BOOTSTRAP", "ssh"},
		{"I_MPI_HYDRA_BOOTSTRAP_EXEC", MPIDir + "/rsh"},
		{"I_MPI_PIN", "off"},
	} {
		vars = append(vars, corev1.EnvVar{Name: v[0], Value: v[1]})
	}
	return vars
}

// sshFiles returns the files that the pods of a run need for ssh.
func sshFiles(hosts []string, slots, port int) map[string]string {
	var open, hydra strings.Builder
	for _, h := range hosts {
		fmt.Fprintf(&open, "%s slots=%d\n", h, slots)
		fmt.Fprintf(&hydra, "%s:%d\n", h, slots)
	}
	return map[string]string{
		"hostfile":       open.String(),
		"hostfile.hydra": hydra.String(),
		"ssh_config": lines(
			"Host *", "Port "+strconv.Itoa(port), "IdentityFile "+mpiPodDir+"/id", "IdentitiesOnly yes", "BatchMode yes",
			"HostKeyAlias "+HostAlias, "UserKnownHostsFile "+KeysDir+"/known_hosts", "GlobalKnownHostsFile /dev/null",
			"StrictHostKeyChecking yes", "ConnectTimeout 20", "LogLevel ERROR"),
		"sshd_config": lines(
			"Port "+strconv.Itoa(port), "HostKey "+mpiPodDir+"/host", "AuthorizedKeysFile "+KeysDir+"/id.pub", "PidFile none",
			"StrictModes no", "UsePAM no", "PasswordAuthentication no", "KbdInteractiveAuthentication no",
			"PermitRootLogin prohibit-password", "MaxStartups 1000", "MaxSessions 1000", "LogLevel ERROR",
			"ForceCommand "+MPIDir+"/session"),
		"rsh": lines("#!/bin/sh", "exec ssh -F "+MPIDir+`/ssh_config "$@"`),
		"launch": lines("#!/bin/sh -e", "umask 077", "mkdir -p "+mpiPodDir, "cp "+KeysDir+"/id "+mpiPodDir+"/id",
			"umask 022", requireProgram("$1", "openmpi-bin or mpich", `command -v "$1" >/dev/null`), `exec "$@"`),
		"worker": lines("#!/bin/sh -e", "umask 077", "mkdir -p "+mpiPodDir, "cp "+KeysDir+"/host "+mpiPodDir+"/host",
			"export -p > "+mpiPodDir+"/environment", "umask 022", "mkdir -p /run/sshd 2>/dev/null || true",
			"sshd=$(command -v sshd || echo /usr/sbin/sshd)",
			requireProgram("sshd", "openssh-server", `[ -x "$sshd" ]`),
			`exec "$sshd" -D -e -f `+MPIDir+"/sshd_config"),
		"session": lines("#!/bin/sh", ". "+mpiPodDir+"/environment", `exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"`),
	}
}

// requireProgram returns a line of a shell script that exits if a test fails.
func requireProgram(program, from, test string) string {
	return fmt.Sprintf(`%s || { echo "strategy mpi needs %s, in the image or on the local cluster's machine: install %s (Debian)" >&2; exit 127; }`, test, program, from)
}

func lines(ls ...string) string { return strings.Join(ls, "\n") + "\n" }
