// Package descriptors has the types of the language in which users describe benchmarks.
//
// A descriptor is a TOML file. Its keys are the fields of Descriptor and of the
// types in it; their comments are the manual, and parser.Keys lists them. Package parser
// reads them.
package descriptors

import (
	"time"

	"github.com/benchmark-ai/bai/descriptors/internal/types"
)

// A Descriptor describes one benchmark: its program, its machines, its data, and the
// metrics in its output. One file is one descriptor.
//
// A Descriptor is data: it holds no connections and no locks, may be copied, and is not
// changed by any function of this package once it has been parsed.
type Descriptor struct {
	// SpecVersion is the version of the language in which the file is written.
	// A program that knows an older language only refuses the file and says so.
	SpecVersion string `toml:"spec_version" need:"yes" kind:"spec version" example:"\"1.0\""`

	// Info describes the benchmark, its namespace and its schedule.
	Info Info `toml:"info" need:"yes"`

	// Hardware describes the machines of the benchmark, and their number.
	Hardware Hardware `toml:"hardware" need:"yes"`

	// Network is the network of the pods of the run. See docs/networks.md.
	Network Network `toml:"network"`

	// Env is the environment of the benchmark's process.
	Env Env `toml:"env" need:"yes"`

	// ML is the program that is measured. Without this table the image's own
	// entrypoint is run.
	ML *ML `toml:"ml"`

	// Roles are the kinds of pods of a run, in place of a strategy. A role has what env, ml
	// and hardware say where its own keys say nothing else, and output for its log. See
	// docs/roles.md.
	Roles []Role `toml:"roles"`

	// Steps are containers in the pod of the benchmark that do something before it, after
	// it, or at every end. A run of several pods has only steps of the last kind. See
	// docs/steps.md.
	Steps []Step `toml:"steps"`

	// Manifest has the objects of a run of strategy manifest. See docs/manifests.md.
	Manifest *Manifest `toml:"manifest"`

	// Data are the files that lie on the benchmark's disk before it starts.
	Data Data `toml:"data"`

	// Volumes are further volumes of the cluster that pods of the run mount. Their
	// content belongs to the user: the platform neither fetches nor stores it.
	Volumes []Volume `toml:"volumes"`

	// Output selects the metrics and files of the benchmark that are stored. Without this
	// table the platform stores only the log, and values that the benchmark emits itself.
	Output *Output `toml:"output"`

	// Server is the part that the benchmark talks to. Strategy inference needs
	// it, the other strategies do not use it.
	Server *Server `toml:"server"`

	// CustomParams are kept and passed on to the execution engine.
	CustomParams *CustomParams `toml:"custom_params"`

	// Limits end a run that takes too long, and say how often one is tried.
	Limits Limits `toml:"limits"`

	// Schedule says how a schedule fires. Without scheduling in info nothing
	// reads it.
	Schedule Schedule `toml:"schedule"`

	// Alarms watch metrics of the task from run to run, and open incidents. The alarms of a
	// task are those of its newest run. See docs/incidents.md.
	Alarms []Alarm `toml:"alarms"`

	// Cost relates what a run costs, and its energy, to the work that it did. See docs/cost.md.
	Cost Cost `toml:"cost"`

	// Sweep makes a set of runs of the descriptor: a cell for each combination of values,
	// and in each cell some repetitions.
	//
	// In a descriptor with this table {{name}} in a string stands for the cell's value of
	// the parameter name, and {{{{ for two braces. Without the table braces are braces.
	Sweep *Sweep `toml:"sweep"`
}

// Info describes a benchmark, its namespace and its schedule.
type Info struct {
	// Description is for people; nothing interprets it.
	Description string `toml:"description" need:"yes" example:"\"what is measured\""`

	// TaskName names the measured task, so that runs of one task can be compared. It is
	// the same as the label task_name: giving one gives the other.
	TaskName string `toml:"task_name" kind:"task name"`

	// ExecutionEngine names the cluster that carries the run out. Every platform has
	// default, which is also called local or kubernetes, and those that its settings
	// name; it refuses a run that names an engine that it lacks. See docs/engines.md.
	ExecutionEngine string `toml:"execution_engine" default:"default" kind:"name"`

	// Scheduling is single_run, or a cron expression of five fields: then the descriptor
	// is a schedule, and each firing is a run, or a set of runs if there is a table sweep.
	//
	// On a day on which clocks change, a time of the day (30 2 * * *) fires once:
	// directly after the change if the change skips it, and the first time if it occurs
	// twice. An interval, whose minute or hour begins with *, follows real time.
	Scheduling string `toml:"scheduling" default:"single_run" kind:"schedule"`

	// Timezone is the zone in which scheduling is read, by its IANA name.
	Timezone string `toml:"timezone" default:"UTC" kind:"time zone"`

	// Labels are attached to the run and to its objects. Runs are found and compared by
	// them.
	Labels map[string]string `toml:"labels" kind:"labels"`

	// Notify names the receivers of a notice of the end of the run, as those of alarms;
	// submitter is whoever submitted it. For a sweep the notice is that of the end of the set.
	Notify []string `toml:"notify" kind:"receivers" example:"[\"submitter\"]"`
}

// SingleRun is the scheduling of a descriptor that is run once.
const SingleRun = "single_run"

// Scheduled reports whether the descriptor is a schedule.
func (i Info) Scheduled() bool { return i.Scheduling != "" && i.Scheduling != SingleRun }

// Hardware describes the machines of a benchmark, and their number.
type Hardware struct {
	// InstanceType is the cloud's name of the machine type. It may be left out if gpus,
	// cpus, memory or node_selector describe the machine.
	InstanceType string `toml:"instance_type" kind:"name"`

	// PricePerHour is what one machine of the run costs in an hour. It wins over the price that
	// the platform's settings give the instance type. See docs/cost.md.
	PricePerHour string `toml:"price_per_hour" kind:"price" example:"\"3.06 USD\""`

	// Strategy is the number of pods of a run and their roles: one pod; equal pods that
	// communicate by MPI (also called horovod); a client and its server (also called
	// client_server); or those of the objects of the table manifest.
	Strategy Strategy `toml:"strategy" default:"single_node" one:"single_node mpi=horovod inference=client_server manifest"`

	// AWSZoneID is the zone to run in by its account-independent ID. The local
	// cluster has no zones and does not read it; on any other the platform
	// must know the zone.
	AWSZoneID string `toml:"aws_zone_id" kind:"name"`

	// AvailabilityZone is the zone to run in by its name. It wins over
	// aws_zone_id.
	AvailabilityZone string `toml:"availability_zone" kind:"name"`

	// Distributed says how many pods strategy mpi has. Other strategies do not
	// read it.
	Distributed Distributed `toml:"distributed"`

	// GPUs is the number of GPUs of each pod. Without it the instance type says
	// it.
	GPUs *int `toml:"gpus" kind:"gpus"`

	// CPUs is the CPU request and limit of each pod.
	CPUs string `toml:"cpus" kind:"cpus"`

	// Memory is the memory request and limit of each pod.
	Memory string `toml:"memory" kind:"memory"`

	// GPUResource is the name by which the cluster counts GPUs.
	GPUResource string `toml:"gpu_resource" default:"nvidia.com/gpu" kind:"resource"`

	// Requests are further resources that the scheduler sets aside for the benchmark's
	// container in each pod, by their names in the cluster: extended resources such as
	// "intel.com/sriov", hugepages-2Mi, hugepages-1Gi, cpu, memory and ephemeral-storage.
	// A resource that cpus, memory or gpus give cannot be here, too. Launchers have none.
	Requests map[string]string `toml:"requests" kind:"resources" example:"{ memory = \"8GiB\" }"`

	// Limits are the most that the container may use of these resources. The cluster
	// requires one of each extended resource and of hugepages, and the request, if there is
	// one, must be the same.
	Limits map[string]string `toml:"limits" kind:"resources" example:"{ \"vpc.amazonaws.com/efa\" = 1 }"`

	// NodeSelector are the labels that a node must have.
	NodeSelector map[string]string `toml:"node_selector" kind:"node labels"`

	// Tolerations are the taints that a node may have.
	Tolerations []Toleration `toml:"tolerations"`

	// Apart = "node" has each pod of the run on a node of its own, whatever its role, so
	// that no traffic between them stays on a machine. The run waits for that many nodes.
	// The local cluster is one machine, where the pods communicate over loopback.
	Apart string `toml:"apart" one:"node"`

	// Together has all pods of the run on nodes with the same value of a label: zone, for
	// topology.kubernetes.io/zone, or the key of another label of nodes, as of a rack or a
	// switch. The first pod chooses the value.
	Together string `toml:"together" kind:"topology" example:"\"zone\""`

	// Placement says which nodes the run shares with other runs: none (exclusive), as few
	// as possible (spread), as many as possible (pack), so that other nodes stay free, or
	// any (anywhere). The default is in the platform's settings (executor.pods.placement),
	// which also say which of these a descriptor may name.
	Placement string `toml:"placement" one:"exclusive spread pack anywhere"`

	// Priority is the priority class of the pods: the cluster finds nodes for pods of a
	// higher one first, and may evict others for them. The platform's settings say which
	// classes the descriptors of a namespace may name (executor.pods.allow), and which one
	// runs have that name none (executor.pods.priority_class).
	Priority string `toml:"priority" kind:"object name" example:"\"nightly\""`

	// Queue is the queue of the cluster in which the run waits for its turn: a LocalQueue of
	// Kueue, or a queue of volcano. The platform's settings say which queues the descriptors
	// of a namespace may name (executor.pods.allow), and which one runs have that name none
	// (executor.pods.queue). A run that Kueue has not admitted is queued, for as long as that
	// takes.
	Queue string `toml:"queue" kind:"object name" example:"\"benchmarks\""`

	// AvoidControlPlane prefers nodes that do not run the cluster's control plane, whose
	// work disturbs a measurement. Tolerations of the control plane's taint undo it.
	AvoidControlPlane bool `toml:"avoid_control_plane" default:"true"`
}

// A Strategy is the number of pods of a run and their roles: a short form of [[roles]].
type Strategy string

// The strategies, by the names that the parser gives them. An alias in a file
// (horovod, client_server) is read as the name here.
const (
	SingleNode Strategy = "single_node"
	MPI        Strategy = "mpi"
	Inference  Strategy = "inference"

	// FromManifest is the strategy of a run whose objects the descriptor gives itself.
	FromManifest Strategy = "manifest"

	// OwnRoles is the strategy of a descriptor with [[roles]]. No file says it.
	OwnRoles Strategy = "roles"
)

// Distributed says how many pods and processes strategy mpi has.
type Distributed struct {
	// NumInstances is the number of pods: 2 or more.
	NumInstances int `toml:"num_instances" default:"2"`

	// ProcessesPerInstance is the number of MPI processes in each pod, which is the
	// number of its slots: a whole number, or "gpus" for one on each GPU. Without it
	// there is one on each GPU, and one in a pod without GPUs. No process is bound to
	// a core unless env.vars or the command line of mpirun say so.
	ProcessesPerInstance Processes `toml:"processes_per_instance" kind:"processes"`
}

// Processes is a number of processes in each pod.
type Processes struct {
	OnePerGPU bool // as many as the pod has GPUs; Number is 0
	Number    int
}

// Network is the network of the pods of a run. Without its keys pods are in the pod network
// of the cluster.
type Network struct {
	// HostNetwork puts the pods into the network of their nodes, but for the launcher of
	// strategy mpi, which only starts processes. No network policy applies to such pods. The
	// ports that roles, servers and ssh listen on are ports of the node: no two pods of the
	// platform that have one of them get the same node. The platform's settings say which
	// namespaces may use it (executor.pods.allow).
	HostNetwork bool `toml:"host_network" default:"false"`

	// Attachment names a network of Multus that takes the place of the pod network in each
	// pod: a NetworkAttachmentDefinition, as name or as namespace/name. A name alone is one of
	// the namespace that Multus itself looks in, which is kube-system by default. Pods have to
	// reach the brokers and the gateway of the platform through it.
	Attachment string `toml:"attachment" kind:"attachment" example:"\"kube-system/sriov-fast\""`

	// MTU is the size in bytes of the largest packet, set on the pod's own link to its
	// network, never on one of the node. IPv4 asks every host to take packets of 576 bytes,
	// and none is larger than 65535. The platform's settings say which namespaces may use it.
	MTU int `toml:"mtu" kind:"mtu" example:"9000"`

	// RDMA gives each pod devices for remote direct memory access, and the right to lock
	// memory (IPC_LOCK), which processes have that run as root. Launchers have none. The
	// platform's settings say which namespaces may use it.
	RDMA *RDMA `toml:"rdma"`

	// Transport is the transport of the MPI processes for strategy mpi with Open MPI: TCP
	// (pml ob1, btl tcp), or RDMA by UCX (pml ucx, UCX_TLS=self,rc_x), which needs rdma.
	// Options of mpirun and variables of env win. Without it Open MPI chooses.
	Transport Transport `toml:"transport" one:"tcp rdma" example:"\"tcp\""`

	// SSHPort is where the workers of strategy mpi take connections of the launcher.
	SSHPort int `toml:"ssh_port" default:"2222" kind:"high port"`
}

// A Transport is the transport of MPI processes; the empty one leaves it to MPI.
type Transport string

// The transports.
const (
	TCP           Transport = "tcp"
	RDMATransport Transport = "rdma"
)

// RDMA describes devices for remote direct memory access.
type RDMA struct {
	// Resource is the name by which the cluster counts the devices.
	Resource string `toml:"resource" need:"yes" kind:"resource" example:"\"rdma/hca_shared_devices_a\""`

	// Count is the number of devices of each pod.
	Count int `toml:"count" default:"1" kind:"devices" example:"1"`
}

// A Role is one kind of pods of a run.
type Role struct {
	// Name names the role in logs, samples and reasons, and the variables BAI_HOSTS_NAME,
	// which has the names of the hosts of its pods, and BAI_PORT_NAME, which has the port of
	// ready. No two roles have the same.
	Name string `toml:"name" need:"yes" kind:"role" example:"\"server\""`

	// Replicas is the number of pods, from 1 on. All roles together have 1000 at most.
	Replicas int `toml:"replicas" default:"1" example:"2"`

	// DockerImage is the container image in place of that of env.
	DockerImage string `toml:"docker_image" kind:"image" also:"image" example:"\"networkstatic/iperf3:latest\""`

	// BenchmarkCode is the command, or a script, in place of benchmark_code and args of ml.
	BenchmarkCode string `toml:"benchmark_code" kind:"code" also:"command cmd code" example:"\"iperf3 -s\""`

	// Args are the arguments in place of args of ml.
	Args string `toml:"args" kind:"command" example:"\"-p 5201\""`

	// Vars are environment variables beside those of env; they win over these.
	Vars map[string]string `toml:"vars" kind:"variables" also:"env" example:"{ THREADS = \"4\" }"`

	// VarOrder are the names in Vars in the order of the file.
	VarOrder []string `toml:"-"`

	// GPUs is the number of GPUs of each pod in place of that of hardware.
	GPUs *int `toml:"gpus" kind:"gpus" example:"0"`

	// CPUs is the CPU request and limit of each pod in place of those of hardware.
	CPUs string `toml:"cpus" kind:"cpus" example:"2"`

	// Memory is the memory request and limit of each pod in place of those of hardware.
	Memory string `toml:"memory" kind:"memory" example:"\"1GiB\""`

	// Ready says when a pod of the role is ready. A role that has it, and does not end the
	// run, serves others: the run fails if one of its pods ends before the run does. A role
	// without it may end at any time with exit code 0.
	Ready *Ready `toml:"ready"`

	// StartsAfter names roles: the pods start their commands when all pods of these are
	// ready.
	StartsAfter []string `toml:"starts_after" kind:"roles" example:"[\"server\"]"`

	// EndsRun says that the end of the run waits for the end of the role. The run ends when
	// all pods of all such roles have ended with exit code 0; it ends the pods of other
	// roles then. If there is no such role, the last one of the file ends the run. A pod
	// that fails ends the run at once, whatever its role.
	EndsRun *bool `toml:"ends_run" kind:"switch" example:"true"`
}

// A Manifest is the objects of a run of strategy manifest, and when they have ended.
type Manifest struct {
	// Objects are Kubernetes objects as YAML documents, with a line --- between two of them.
	// The platform lists the kinds that it takes (executor.pods.manifests); Job, ConfigMap and
	// Service are always among them. The run ends when all objects of kinds that end have
	// ended: it has succeeded if all have, and failed as soon as one has failed.
	//
	// Names get the run's ID in front, so that runs do not meet. Where a pod template names a
	// ConfigMap, a claim or a Service of the manifest, it gets the new name; programs find the
	// beginning of all names in the variable BAI_OBJECTS: NAME of the manifest is
	// $(BAI_OBJECTS)-NAME. In known kinds each pod gets what pods of runs have: labels,
	// variables, data, volumes and the collector. Its measured container has what env, ml and
	// hardware say where it says nothing itself.
	Objects string `toml:"objects" kind:"manifest" also:"object" example:"\"{apiVersion: batch/v1, kind: Job, …}\""`

	// File names a file with the objects, in place of objects: a path from the folder of the
	// descriptor, which it does not leave. baictl reads the file and sends its text along, as
	// {name = "objects.yaml", text = "…"}, so that a stored descriptor is whole.
	File ManifestFile `toml:"file" kind:"manifest file" example:"\"objects.yaml\""`

	// Pods selects the pods of objects whose pod templates the platform does not know: those of
	// kinds of one's own, and of TrainJob, where it is not needed. It is a label selector as
	// kubectl takes it, or a table of labels and their values. One of the labels has a value
	// with $(BAI_OBJECTS) in it, the beginning of all names, so that no pod of another run is
	// selected. The state of these pods is shown, and their log is followed.
	Pods string `toml:"pods" kind:"pod selector" example:"\"trainer=$(BAI_OBJECTS),role in (node,leader)\""`

	// Copies is how many times the objects are made, from 1 to 100. All copies must succeed.
	// BAI_COPY has the number of the copy, from 0 on.
	Copies int `toml:"copies" default:"1" kind:"copies" example:"3"`

	// Succeeded says when an object of a kind that the platform does not know has succeeded,
	// as kubectl wait does: condition=TYPE, or jsonpath={.status.phase}=VALUE, with | between
	// several values.
	Succeeded string `toml:"succeeded" kind:"condition" example:"\"condition=Ready\""`

	// Failed says when such an object has failed. Without it only limits.deadline or a cancel
	// ends a run whose object never succeeds.
	Failed string `toml:"failed" kind:"condition" example:"\"jsonpath={.status.phase}=Failed|Error\""`
}

// A ManifestFile is a file with the objects of a manifest.
type ManifestFile struct {
	Name     string // a path from the folder of the descriptor, with slashes
	Text     string
	Attached bool // the text is here
}

// When says when a step runs, seen from the benchmark.
type When string

// The times of steps.
const (
	Before When = "before" // the benchmark starts once the step has succeeded
	After  When = "after"  // the step starts once the benchmark has succeeded
	Always When = "always" // the step runs at the end of each attempt, however that ends
)

// A Step is a container in the pod of the benchmark that does something before it, after it,
// or at every end. Steps run one after the other, in the order of the file as far as needs allow.
type Step struct {
	// Name names the step in logs and reasons, and the folder of its output,
	// /bai-steps/NAME. No two steps have the same.
	Name string `toml:"name" need:"yes" kind:"step" example:"\"warm-cache\""`

	// When says when the step runs: before the command of the benchmark starts, after it
	// has succeeded, or always: at the end of each attempt, whether it has succeeded, failed,
	// was canceled or passed its deadline. If a step before or after fails, the steps after it
	// and the benchmark do not run, and the run fails with reason StepFailed; steps with
	// always run all the same, and their failure is in the message of the run alone.
	When When `toml:"when" need:"yes" one:"before after always" example:"\"before\""`

	// Command is the command of the step, or a script. The step has the variables, secrets,
	// data and volumes of the benchmark. It may write files of 1 MiB in all to the folder
	// that the variable BAI_STEP_OUTPUT names; the steps after it, and the benchmark if it
	// runs after it, can read them.
	Command string `toml:"command" need:"yes" kind:"code" also:"benchmark_code cmd code" example:"\"warm-cache /data\""`

	// Image is the container image in place of that of env.
	Image string `toml:"image" kind:"image" also:"docker_image" example:"\"docker.io/library/debian:12\""`

	// Needs names steps that have to succeed first. A step with when = "always" can need
	// such steps only.
	Needs []string `toml:"needs" kind:"steps" example:"[\"load-tables\"]"`

	// Deadline is how long the step may take; then it is ended and has failed.
	Deadline time.Duration `toml:"deadline" default:"10m" kind:"duration" also:"timeout" example:"\"5m\""`

	// Vars are environment variables beside those of env; they win over these.
	Vars map[string]string `toml:"vars" kind:"variables" also:"env" example:"{ TABLES = \"4\" }"`

	// VarOrder are the names in Vars in the order of the file.
	VarOrder []string `toml:"-"`
}

// Ready says when a pod is ready: exactly one of port, http, file and log.
type Ready struct {
	// Port is a TCP port on which the pod accepts connections.
	Port *int `toml:"port" kind:"port" example:"5201"`

	// HTTP is a port and a path where the pod answers with a status from 200 to 399.
	HTTP string `toml:"http" kind:"port and path" example:"\":8080/ping\""`

	// File is a file that the command creates, or changes.
	File string `toml:"file" kind:"path" example:"\"/tmp/ready\""`

	// Log is a regular expression that matches a line which the command writes.
	Log string `toml:"log" kind:"pattern" example:"'listening on port [0-9]+'"`
}

// A Toleration lets a run's pods onto nodes with a taint.
type Toleration struct {
	// Key is the taint's key. Without it every key is tolerated, and operator is
	// Exists.
	Key string `toml:"key" kind:"label key"`

	// Operator says whether the taint's value is compared.
	Operator string `toml:"operator" default:"Equal" one:"Equal Exists"`

	// Value is the taint's value, for operator Equal.
	Value string `toml:"value" kind:"label value"`

	// Effect is the taint's effect. Without it every effect is tolerated.
	Effect string `toml:"effect" one:"NoSchedule PreferNoSchedule NoExecute"`

	// Seconds is how long a taint with effect NoExecute is tolerated; for ever
	// without it.
	Seconds *int `toml:"toleration_seconds" kind:"seconds"`
}

// Env is the environment of a process.
type Env struct {
	// DockerImage is the container image, by its name and tag or digest.
	DockerImage string `toml:"docker_image" need:"yes" kind:"image" also:"image" example:"\"python:3.12\""`

	// Privileged gives the container the rights of its node.
	Privileged bool `toml:"privileged" default:"false"`

	// ExtendedShm makes /dev/shm as large as the pod's memory.
	ExtendedShm bool `toml:"extended_shm" default:"true"`

	// Vars are environment variables. $(NAME) in a value stands for a variable
	// that comes before it.
	Vars map[string]string `toml:"vars" kind:"variables"`

	// VarOrder are the names in Vars in the order of the file.
	VarOrder []string `toml:"-"`

	// Secrets are environment variables whose values lie in secrets of the
	// cluster. A descriptor never holds the value itself. The platform's settings
	// say which secrets descriptors may name.
	Secrets map[string]SecretRef `toml:"secrets" kind:"secrets"`

	// SecretFiles are read-only files whose contents lie in secrets of the cluster, by
	// their paths, as programs read credentials of clouds. The container's processes have
	// the files' group, so that the mode is 0440. Kubernetes would give that group the
	// files of a claim too: with volumes.claim there is none, and the mode is 0444.
	SecretFiles map[string]SecretRef `toml:"secret_files" kind:"secret files"`

	// ImagePullSecret names the secret with which the image is pulled: one that
	// the platform's settings allow.
	ImagePullSecret string `toml:"image_pull_secret" kind:"object name"`

	// PullPolicy says when a node pulls the image: for every pod, if the node has none of
	// the name, or never, for images that are loaded onto nodes. The default is that of
	// Kubernetes: always for the tag latest and without a tag, else if_not_present. The
	// platform's settings may fix another (executor.pods.pull_policy).
	PullPolicy PullPolicy `toml:"pull_policy" one:"always=Always if_not_present=IfNotPresent never=Never"`
}

// A PullPolicy says when a node pulls an image; the empty one leaves it to Kubernetes.
type PullPolicy string

// The policies, by the names that the parser gives them.
const (
	PullAlways       PullPolicy = "always"
	PullIfNotPresent PullPolicy = "if_not_present"
	PullNever        PullPolicy = "never"
)

// Kubernetes returns the policy as Kubernetes names it.
func (p PullPolicy) Kubernetes() string {
	return map[PullPolicy]string{PullAlways: "Always", PullIfNotPresent: "IfNotPresent", PullNever: "Never"}[p]
}

// A SecretRef points at one value in a secret; written "name/key".
type SecretRef = types.SecretRef

// ML is the program that is measured.
type ML struct {
	// BenchmarkCode is the command. Its words are split as by a shell, but no
	// shell runs it: only $(NAME) stands for a variable. A text that begins with
	// #! is a script for the interpreter that this line names. It finds bai-emit,
	// which emits metrics (bai-emit loss=0.25), at the end of its PATH.
	BenchmarkCode string `toml:"benchmark_code" kind:"code" also:"command cmd code"`

	// Args are the arguments of benchmark_code or, without it, of the image's
	// entrypoint.
	Args string `toml:"args" kind:"command"`

	// Framework is the framework of the program: any name. It is stored with the run and
	// shown, and baictl list --framework finds the run by it.
	Framework string `toml:"framework" kind:"line" example:"\"pytorch\""`

	// FrameworkVersion is the version of framework, kept and shown with it.
	FrameworkVersion string `toml:"framework_version" kind:"line" example:"\"2.4\""`

	// Script says that code has to be sent along with the descriptor, as baictl
	// submit --script DIR does. Without it code may be sent along all the same.
	Script *Script `toml:"script"`
}

// Script is code that is sent along with a descriptor (baictl submit --script DIR)
// and unpacked before the benchmark starts, in the folder that BAI_SCRIPTS_PATH
// names: $(BAI_SCRIPTS_PATH)/run.sh as benchmark_code runs a file of it. The code
// is the benchmark's own copy, which it may change; a server has none.
type Script struct {
	// Archive is the name of the code. Any code that is sent along takes its place.
	Archive string `toml:"script" need:"yes" kind:"tar" example:"\"code.tar\""`
}

// Data are the files that lie on the benchmark's disk before it starts.
type Data struct {
	// Sources are the data sets. Each is fetched once, also where many runs want
	// it.
	Sources []Source `toml:"sources" need:"yes"`
}

// A Source is one data set or model.
type Source struct {
	// Src is the address of the data: s3://, gs://, azblob://, http:// or https://, and
	// file:// if the platform's settings allow it.
	//
	// A prefix of a bucket, best with a slash at its end, is a folder; so is
	// git+https://host/repository@ref#path, the files of a commit, where ref is a tag, a
	// branch or a commit, and both ref and path may be left out.
	//
	// The bytes are stored as the server sends them, as curl does: a body with
	// Content-Encoding: gzip stays packed.
	Src string `toml:"src" need:"yes" kind:"source" also:"uri url source" example:"\"https://example.org/set.gz\""`

	// Path is where the benchmark finds the data: the file itself, or the folder
	// where src is one or is unpacked.
	//
	// A path below /bai/data needs no mount: environment variables whose value
	// begins with it name the right place wherever that is.
	Path string `toml:"path" need:"yes" kind:"mount path" example:"\"/data\""`

	// ID names the source. It is kept with the run and shown, and baictl list
	// --data-id finds the run by it.
	ID string `toml:"id" kind:"name"`

	// MD5 is the digest that the fetched bytes must have.
	MD5 string `toml:"md5" kind:"md5"`

	// SHA256 is the digest that the fetched bytes must have; of a folder it is
	// that of the list which this prints in it:
	// find * -type f | LC_ALL=C sort | xargs sha256sum.
	SHA256 string `toml:"sha256" kind:"sha256"`

	// Unpack unpacks the fetched tar, tar.gz, tar.bz2, tar.zst or zip archive
	// into path.
	Unpack bool `toml:"unpack" default:"false"`

	// ReadOnly lets the benchmark read the data but not change them. With false
	// each pod has a copy that it may change.
	ReadOnly bool `toml:"read_only" default:"true"`

	// Mount says whether each pod has the data on a disk of its own (copy), or all
	// pods of a role read them from one volume, to which they are brought once
	// (shared). A role of one pod has a copy in any case.
	Mount Mount `toml:"mount" default:"copy" one:"copy shared"`

	// Role names the only pods that have the data. Without it, the pods that measure have
	// them: the workers of strategy mpi, the client of strategy inference, the benchmark
	// of strategy single_node, and those of all [[roles]]. To give data to two roles, list
	// the source twice.
	Role string `toml:"role" kind:"role" example:"\"server\""`
}

// A Mount says how pods share data.
type Mount string

// The mounts.
const (
	MountCopy   Mount = "copy"
	MountShared Mount = "shared"
)

// A Volume is a volume of the cluster: exactly one of claim, template, ephemeral
// and nfs says which.
type Volume struct {
	// Path is where the pods find it.
	Path string `toml:"path" need:"yes" kind:"mount path" example:"\"/scratch\""`

	// Role names the only pods that mount it; without it all pods of the run do.
	// The benchmark of strategy single_node is benchmark.
	Role string `toml:"role" kind:"role" example:"\"server\""`

	// ReadOnly lets the pods read the volume but not change it.
	ReadOnly bool `toml:"read_only" default:"false"`

	// Claim names a PersistentVolumeClaim that exists, in the namespace where runs
	// are, and that the platform's settings allow.
	Claim string `toml:"claim" kind:"object name"`

	// Template is a PersistentVolumeClaim that is made for the run, shared by its
	// pods, and deleted with them.
	Template *ClaimTemplate `toml:"template"`

	// Ephemeral is space of each pod's own, which is gone with the pod.
	Ephemeral *Ephemeral `toml:"ephemeral"`

	// NFS is a folder of an NFS server.
	NFS *NFS `toml:"nfs"`
}

// A ClaimTemplate describes a PersistentVolumeClaim.
type ClaimTemplate struct {
	// Size is how much it holds.
	Size string `toml:"size" need:"yes" kind:"memory" example:"\"10GiB\""`

	// StorageClass names the class of storage; the cluster's default without it.
	StorageClass string `toml:"storage_class" kind:"object name"`

	// Access decides which pods may mount the volume: the pods of one node, read-only
	// those of many, those of many, or one pod.
	Access string `toml:"access" default:"ReadWriteOnce" one:"ReadWriteOnce ReadOnlyMany ReadWriteMany ReadWriteOncePod"`
}

// Ephemeral is a volume that exists only as long as its pod.
type Ephemeral struct {
	// Size is how much it holds.
	Size string `toml:"size" need:"yes" kind:"memory" example:"\"10GiB\""`

	// StorageClass names the class of storage from which it is taken; without it it
	// is taken from the disk of the node.
	StorageClass string `toml:"storage_class" kind:"object name"`
}

// NFS names a folder of an NFS server.
type NFS struct {
	// Server is the server's name or address.
	Server string `toml:"server" need:"yes" kind:"object name" example:"\"nfs.example.org\""`

	// Path is the folder that the server exports.
	Path string `toml:"path" need:"yes" kind:"path" example:"\"/export/data\""`
}

// Output selects the metrics and files of a benchmark that are stored.
type Output struct {
	// Metrics are the numbers that are read from the benchmark's log, and those that the
	// benchmark emits, or a parser finds, and that have another unit or a direction here.
	Metrics []Metric `toml:"metrics"`

	// Parsers take the numbers that a known benchmark tool prints from its output, with
	// their units and directions.
	Parsers []Parser `toml:"parsers"`

	// Artifacts are the files that are kept after the run, however it ended. Where
	// the whole container is killed, as the kernel does when its memory runs out on
	// nodes with cgroup v2, those on volumes alone: its own file system is gone. A status
	// of the run names those that were there before the benchmark and have not changed.
	Artifacts []Artifact `toml:"artifacts"`

	// System is the interval at which the platform measures the benchmark's use of its
	// machine: processors, memory, disks, networks and GPUs. It is true for every second,
	// false for no measurement, or a time. Without it the platform measures every second.
	System *time.Duration `toml:"system" kind:"every" example:"\"5s\""`

	// Prometheus is the address in its pod where the benchmark serves numbers in
	// Prometheus' text format: one URL, or several. The platform reads them from the
	// first answer until the benchmark ends, and once more then, if the address still
	// answers. With several URLs, their numbers have the label instance, the host and
	// port, unless the numbers have that label already.
	Prometheus []string `toml:"prometheus" kind:"loopback" example:"\"http://127.0.0.1:9090/metrics\""`

	// PrometheusInterval is how often they are read.
	PrometheusInterval time.Duration `toml:"prometheus_interval" default:"1s" kind:"duration"`

	// PrometheusNames is a regular expression in Go's dialect (RE2). Only numbers
	// are kept in whose name it matches; all are without it.
	PrometheusNames string `toml:"prometheus_names" kind:"pattern" example:"'^train_'"`

	// OTLP has the pod take numbers that programs send by OpenTelemetry's protocol
	// over HTTP. The benchmark finds where in
	// OTEL_EXPORTER_OTLP_METRICS_ENDPOINT, which OpenTelemetry's libraries read.
	OTLP bool `toml:"otlp" default:"false"`

	// Destinations are where rows of the run's results go beside the platform's store,
	// once the run is summarised. The settings of the platform say what each one is, and
	// which namespaces may name it. Only those of the table output are read.
	Destinations []Destination `toml:"destinations"`
}

// A Destination gets rows of a run's results, each of them once.
type Destination struct {
	// Name is that of a destination in the settings of the platform.
	Name string `toml:"name" need:"yes" kind:"name" example:"\"warehouse\""`

	// Rows decides what a row is: a summary (of the samples of one metric, with one unit
	// and one set of labels), or a sample of the last attempt. With rows = "summaries" and
	// a column metric.NAME.FIELD, the whole run is one row.
	Rows string `toml:"rows" default:"summaries" one:"summaries samples"`

	// Columns are the columns of a row, each with its value: run.FIELD, label.KEY,
	// summary.FIELD, metric.NAME.FIELD or sample.FIELD. Without it they are run, metric,
	// unit and labels, with n, min, median, max, mean and sd of a summary, or with time,
	// step and value of a sample.
	Columns map[string]string `toml:"columns" kind:"columns" example:"{ run = \"run.id\", rate = \"metric.rate.median\" }"`
}

// CommandParser is the value of Parser.Kind for a program of one's own.
const CommandParser = "command"

// The values of Destination.Rows.
const (
	SummaryRows = "summaries"
	SampleRows  = "samples"
)

// A Parser reads the output of a benchmark tool once the benchmark has ended. A
// benchmark that ends well and whose output has no result has failed: NoResults.
type Parser struct {
	// Kind is the tool, or the form of its output; auto guesses it, and command is a
	// program of one's own. The page docs/parsers.md has the metrics of each.
	Kind string `toml:"kind" need:"yes" one:"auto bmf command csv fio gbench gnu-time gobench hyperfine imb iperf2 iperf3 jmh json junit k6 mlperf openfoam osu perftest pytest-benchmark tf-cnn torchbench" example:"\"iperf3\""`

	// Path is the file that has the output. A pattern must match one file. A file that
	// was there before the benchmark and has not changed does not count. Without path the
	// parser reads what the benchmark writes to standard output and standard error.
	Path string `toml:"path" kind:"path" example:"\"/tmp/result.json\""`

	// Stream is where the benchmark writes the output if there is no path: stdout,
	// stderr, or both. Without it the parser reads both, or stdout alone if the output is
	// one document, such as JSON. Of fio it reads both: stderr has the servers that fio
	// has lost.
	Stream string `toml:"stream" one:"stdout stderr both"`

	// Metrics are the metrics of the kinds json and csv, each with the path of its number
	// in the document, as results.rate or runs[0].rate, or with its column. Without it each
	// number is a metric. Their units are those of [[output.metrics]].
	Metrics map[string]string `toml:"metrics" kind:"metric paths" example:"{ rate = \"results.rate\" }"`

	// Command is the program of kind command, or a script. It runs in the benchmark's
	// container once the benchmark has ended, in its working directory and with its
	// variables, reads the output, or the file at path, from standard input, and prints a
	// JSON object a line, as docs/parsers.md says.
	Command string `toml:"command" kind:"code" also:"cmd with" example:"\"python3 parse.py\""`

	// Deadline is how long the command may take; then it is killed and has failed.
	Deadline time.Duration `toml:"deadline" default:"1m" kind:"duration" also:"timeout"`

	// Memory is how much data each process of the command may have in memory.
	Memory int64 `toml:"memory" default:"1GiB" kind:"size"`

	// Required says whether a benchmark has failed that leaves no result. If it is
	// false, a status of the run says what is missing.
	Required bool `toml:"required" default:"true"`

	// Role names the role whose pods leave the output. The default is each role whose
	// end is that of the run.
	Role string `toml:"role" kind:"role" example:"\"client\""`
}

// A Metric is a number that is read from the lines that a benchmark writes, or, without a
// pattern, one that the benchmark emits or a parser finds.
type Metric struct {
	// Name names the metric.
	Name string `toml:"name" need:"yes" kind:"metric name" example:"\"throughput\""`

	// Units is the unit of the number. Numbers of this name that the benchmark emits, or
	// that a parser finds, have it, too: they are converted if they have another one.
	Units string `toml:"units" need:"yes" kind:"line" example:"\"images/s\""`

	// Pattern is a regular expression in Go's dialect (RE2). Without it the metric is one
	// that the benchmark emits or a parser finds. On each line where
	// it matches, the group named value, else the first group without a name, else
	// the first group, else the whole match is the number; an exponent that follows
	// the end of the match directly, as in 1e-3, is part of it. A group named unit says
	// in which unit the line gives it; the number is then converted to units. A
	// group named step is the benchmark's own count, one named time when it was
	// measured: seconds since 1970, or a time as 2006-01-02T15:04:05Z, or without
	// a zone as 2006-01-02 15:04:05.000 or 2006-01-02T15:04:05.000, which is taken
	// to be UTC. Other groups with names are labels. Of a line that is longer than
	// 64 KiB the beginning is searched, and no match counts that goes up to its end.
	Pattern string `toml:"pattern" kind:"pattern" example:"'([0-9.]+) images/s'"`

	// Parser is the input of the pattern: lines is each line of the log by itself; json
	// is each member of a line that is a JSON object, written as path=value, as in
	// train.loss=0.25. There NaN and Infinity are numbers, too, and the object's members
	// step, time and timestamp apply to all numbers found in it. blocks is several lines
	// together, with line feeds between them, of standard output and standard error
	// separately: see block.
	Parser string `toml:"parser" default:"lines" one:"lines json blocks"`

	// Block is a regular expression that matches the first line of each block of
	// lines, for the parser blocks. A block goes on until the next begins, and no
	// further than block_lines, block_time and 64 KiB of text. In pattern, (?s) has
	// . match line feeds, and (?m) has ^ and $ match at each line.
	Block string `toml:"block" kind:"pattern" example:"'^epoch '"`

	// BlockLines is how many lines a block has at most.
	BlockLines int `toml:"block_lines" default:"1000" kind:"block lines"`

	// BlockTime is how much later than the one before it a line of a block may be.
	BlockTime time.Duration `toml:"block_time" default:"1m" kind:"duration"`

	// Direction says which of two numbers is the better one. It is kept and shown
	// with every number of this name, for programs that compare runs.
	Direction Direction `toml:"direction" one:"higher lower"`
}

// BlockParser is the value of Metric.Parser that reads Metric.Block.
const BlockParser = "blocks"

// A Direction says which of two numbers is the better one.
type Direction string

// The directions; the empty one says nothing.
const (
	Higher Direction = "higher"
	Lower  Direction = "lower"
)

// An Artifact is a file that is kept after the run.
type Artifact struct {
	// Path is where the benchmark leaves the file or folder. Of a folder every file
	// is kept, whatever its name is in UTF-8. Links to folders, links that lead out
	// of it, FIFOs, sockets and names that are not UTF-8 are not kept, and a status
	// of the run names them.
	Path string `toml:"path" need:"yes" kind:"path" example:"\"/tmp/results\""`

	// MaxSize is the size from which on the artifact is not kept.
	MaxSize int64 `toml:"max_size" default:"100MiB" kind:"size"`
}

// Server is the part of an inference benchmark that answers.
type Server struct {
	// Hardware is the machine that the server runs on: the keys of the table
	// hardware but for strategy, distributed, apart, together and placement.
	Hardware Hardware `toml:"hardware" need:"yes" without:"strategy distributed apart together placement priority queue"`

	// Env is the server's environment and program.
	Env ServerEnv `toml:"env" need:"yes"`

	// Models are the files that lie on the server's disk before it starts.
	Models []Source `toml:"models" without:"role"`

	// Output selects the metrics and files of the server that are stored.
	Output *Output `toml:"output"`
}

// ServerEnv is the environment and the program of a server.
type ServerEnv struct {
	Env

	// Ports are where the server listens. The benchmark finds the first as
	// INFERENCE_SERVER_PORT, the others as INFERENCE_SERVER_PORT_1 and so on.
	Ports []int `toml:"ports" need:"yes" kind:"ports" example:"[8080]"`

	// StartCommand is the command, or a script, as benchmark_code; the image's
	// entrypoint is run where it is empty.
	StartCommand string `toml:"start_command" need:"yes" kind:"code" example:"\"serve\""`

	// StartCommandArgs are the arguments of start_command or of the image's
	// entrypoint.
	StartCommandArgs string `toml:"start_command_args" kind:"command"`

	// ReadinessProbe says when the server is ready. The benchmark starts then.
	ReadinessProbe *Probe `toml:"readiness_probe" also:"liveliness_probe liveness_probe"`
}

// A Probe asks a server over HTTP whether it is ready.
type Probe struct {
	// Path is the path of the request.
	Path string `toml:"path" need:"yes" kind:"http path" example:"\"/ping\""`

	// Port is where it is asked for, one of ports or another; the first of ports
	// without it.
	Port *int `toml:"port" kind:"port"`

	// Scheme is how it is asked for.
	Scheme string `toml:"scheme" default:"http" kind:"scheme"`

	// InitialDelaySeconds is how long after the start the first question comes.
	InitialDelaySeconds int `toml:"initial_delay_seconds" default:"10" kind:"seconds"`

	// PeriodSeconds is how much time lies between two questions.
	PeriodSeconds int `toml:"period_seconds" default:"10" kind:"count"`

	// TimeoutSeconds is how long an answer may take.
	TimeoutSeconds int `toml:"timeout_seconds" default:"1" kind:"count"`

	// SuccessThreshold is how many good answers in a row make the server ready.
	SuccessThreshold int `toml:"success_threshold" default:"1" kind:"count"`

	// FailureThreshold is how many bad answers in a row make it unready.
	FailureThreshold int `toml:"failure_threshold" default:"3" kind:"count"`
}

// CustomParams are kept and passed on to the execution engine. A cluster reads none of
// them; an engine of kind exec is given the whole table. See docs/engines.md.
type CustomParams struct {
	// PythonVersion is the version of Python that the engine runs.
	PythonVersion string `toml:"python_version" one:"py2 py3"`

	// SagemakerJobName is the name of the training job.
	SagemakerJobName string `toml:"sagemaker_job_name"`

	// Merge waits until the job is done and copies its last numbers.
	Merge bool `toml:"merge" default:"false"`

	// Dashboard names the dashboard that shows the numbers.
	Dashboard string `toml:"dashboard"`

	// Region is the dashboard's region.
	Region string `toml:"region"`

	// HyperParams are handed to the program as they are.
	HyperParams map[string]any `toml:"hyper_params"`
}

// Limits end a run that takes too long, and set the number of its tries. Limits that are
// not given come from the platform's settings.
type Limits struct {
	// Deadline is how long the run may take from its launch; then it ends with
	// class timeout, reason DeadlineExceeded.
	Deadline time.Duration `toml:"deadline" kind:"duration" also:"timeout"`

	// PendingDeadline is how long the run may wait for a resource that may never come: a
	// machine, a volume, an image, a server or worker that runs and is not ready. The
	// clock stops while an autoscaler reports that it adds a node, for 20 min each time
	// at most, and while other runs of the platform are on the nodes that the run could
	// use.
	PendingDeadline time.Duration `toml:"pending_deadline" kind:"duration"`

	// Retries is how often the run is tried again after a failure of the infrastructure.
	// A failure of the benchmark itself is never tried again.
	Retries int `toml:"retries" default:"0" kind:"retries"`

	// MaxLogSize is how much of each pod's log is stored. Of a longer log the beginning
	// and the end are stored, the end being half of it and at most 16 MiB, with the
	// number of lines between them. Patterns of metrics see all of the output, even the
	// lines that are not stored. The default is in the platform's settings
	// (executor.pods.max_log): bai standalone stores 256 MiB, and services without that
	// setting store all.
	MaxLogSize int64 `toml:"max_log_size" kind:"size"`

	// Keep decides whether the objects of a run stay in the cluster after its end, for
	// inspection: never, those of failed runs, or all for a time. The default is in the
	// platform's settings. Servers and workers that still run at the end are ended first:
	// their Jobs stay with those of the benchmark, while Kubernetes removes pods that it
	// had to end. The objects of canceled runs, of runs that were given up while they
	// waited for a machine or an image, and pods of a lost machine are not kept.
	Keep Keep `toml:"keep" kind:"keep"`
}

// Keep is how long the objects of a run stay in the cluster after its end. The zero Keep
// leaves it to the platform's settings.
type Keep struct {
	Rule string        // never, failed or for
	For  time.Duration // how long, for Rule for
}

// The rules of Keep.
const (
	KeepNever  = "never"
	KeepFailed = "failed"
	KeepFor    = "for"
)

// Schedule says how a schedule fires.
type Schedule struct {
	// Concurrency decides what a firing does while a run of an earlier one goes on: allow
	// lets both run, forbid makes no new run (see missed), replace cancels the earlier
	// one. A set of runs goes on until it has ended.
	Concurrency string `toml:"concurrency" default:"allow" one:"allow forbid replace" also:"concurrency_policy"`

	// Missed decides about firings whose time passed while the platform was away: skip
	// makes none of them, latest makes the last one, all makes all, in order. A firing
	// that concurrency forbids is missed too: with all it waits for the earlier run, else
	// it makes no run.
	Missed string `toml:"missed" default:"latest" one:"skip latest all"`

	// MissedWindow is how late a firing that was missed may still be made.
	MissedWindow time.Duration `toml:"missed_window" default:"1h" kind:"duration" also:"starting_deadline"`

	// Jitter is by how much firings are late, at most, so that schedules of one
	// time do not all fire at once. It is another part of it for each schedule,
	// and always the same for one.
	Jitter time.Duration `toml:"jitter" kind:"duration"`

	// Suspend makes a schedule that does not fire until it is resumed. Without the key a
	// new version of a schedule stays active, or suspended, as it was.
	Suspend *bool `toml:"suspend" kind:"switch"`

	// History is how many finished firings are listed with their outcome, beside those
	// whose runs go on. The runs themselves are kept as all runs are.
	History int `toml:"history" default:"20" kind:"history"`

	// Start is the first time at which the schedule may fire. Without a zone of
	// its own it is a time of info.timezone.
	Start string `toml:"start" kind:"moment"`

	// End is when the schedule fires no more. Without a zone of its own it is a
	// time of info.timezone.
	End string `toml:"end" kind:"moment"`
}

// The values of Schedule.Concurrency.
const (
	Allow   = "allow"
	Forbid  = "forbid"
	Replace = "replace"
)

// The values of Schedule.Missed.
const (
	SkipMissed   = "skip"
	LatestMissed = "latest"
	AllMissed    = "all"
)

// How many runs of a set are active at a time.
const (
	DefaultActiveRuns = 100                 // with Sweep.MaxParallel 0
	MaxActiveRuns     = types.MaxActiveRuns // whatever Sweep.MaxParallel is
)

// A Sweep makes a set of runs of one descriptor. A name with a dot is the path of a key,
// as baictl's --set takes it; the cell sets the key to its value. A name without a dot is a
// parameter, for {{name}} in strings.
//
// In the descriptor that the parser returns, all other fields are those of the first cell.
// Package sweep expands the table.
type Sweep struct {
	// Repetitions is how many runs of each cell are counted. Beside stop_when it is left
	// out: stop_when.max is the number of repetitions.
	Repetitions int `toml:"repetitions" default:"1" kind:"repetitions"`

	// Warmup is how many runs of each cell come before its repetitions. They are stored as
	// all runs are, and no result of the set counts them.
	Warmup int `toml:"warmup" default:"0" kind:"warm-up runs"`

	// Order is the order of the runs. With sequential all runs of a cell follow each
	// other: its warm-up runs, then its repetitions. With interleaved the warm-up runs of
	// all cells come first, then the first repetition of every cell, then the second of
	// every cell, and so on. With random the warm-up runs come first too, then all
	// repetitions of all cells in an order that seed decides.
	Order Order `toml:"order" default:"sequential" one:"sequential random interleaved"`

	// Seed decides the order random; the same seed always gives the same order. Without it
	// the seed is 0.
	Seed int64 `toml:"seed" kind:"seed"`

	// MaxParallel is how many runs of the set are active at a time: with 0, 100, and never
	// more than 200. As many of them run as the platform has slots.
	MaxParallel int `toml:"max_parallel" default:"0" kind:"parallel runs"`

	// OnFailure decides what follows a run that failed: continue makes the other runs all
	// the same, stop makes no further one.
	OnFailure string `toml:"on_failure" default:"continue" one:"continue stop"`

	// StopWhen ends the repetitions of a cell once one of its metrics is precise enough.
	StopWhen *StopWhen `toml:"stop_when"`

	// Product has a list of values for each name; there is a cell for every combination of
	// them, the last name of the file changing fastest.
	Product map[string][]any `toml:"product" kind:"axes"`

	// Zip has lists of one length, which advance together: the first values of all lists,
	// then the second ones. Beside product they are one more axis, the fastest.
	Zip map[string][]any `toml:"zip" kind:"axes"`

	// Explicit are further cells, after the combinations of product and zip. A key of the
	// descriptor that a row does not name is as the file has it.
	Explicit []map[string]any `toml:"explicit" kind:"rows"`

	// Exclude leaves out the cells that have all values of one of its rows.
	Exclude []map[string]any `toml:"exclude" kind:"rows"`
}

// StopWhen says when a cell has enough repetitions. Order random has no such rule.
type StopWhen struct {
	// Metric is the name of a metric of the results of the set, as run.duration.
	Metric string `toml:"metric" need:"yes" kind:"metric name" example:"\"latency\""`

	// HalfWidth is half the width of the interval of the metric's median, in percent of the
	// median: a cell whose interval is as narrow has no further repetition.
	HalfWidth float64 `toml:"half_width" need:"yes" kind:"percentage" example:"\"2%\""`

	// Min is the number of repetitions that each cell has at least.
	Min int `toml:"min" default:"6" kind:"repetitions" example:"6"`

	// Max is the number of repetitions that a cell has at most.
	Max int `toml:"max" need:"yes" kind:"most repetitions" example:"30"`
}

// An Order is the order of the runs of a set.
type Order string

// The orders.
const (
	Sequential  Order = "sequential"
	Random      Order = "random"
	Interleaved Order = "interleaved"
)

// The values of Sweep.OnFailure.
const (
	Continue = "continue"
	Stop     = "stop"
)

// An Alarm opens an incident when something becomes of a metric that it is not meant to. One of
// when, above, below and beyond says what.
type Alarm struct {
	// Metric names the metric: one of output, one that the benchmark emits or a parser finds,
	// run.duration, run.queued, cost.amount, energy.joules, cost.per.NAME, energy.per.NAME, or
	// one of system.*. Each combination of labels, and each cell of a sweep, is watched by
	// itself. Only when = "failed" has no metric.
	Metric string `toml:"metric" kind:"metric name" example:"\"throughput\""`

	// When is the condition: the metric has changed to the worse (regression) or at all
	// (change), is over a limit (above, below, beyond, which their keys say, too), runs of the
	// task do not succeed (failed), or no value of the metric came in time (missing).
	When Condition `toml:"when" one:"regression change above below beyond failed missing" example:"\"regression\""`

	// MinChange is the change, up or down, from which on when = "regression" and "change" open
	// an incident. Smaller ones are shown in the history.
	MinChange float64 `toml:"min_change" kind:"share" example:"\"2%\""`

	// Above is a limit that values are not meant to be above.
	Above *float64 `toml:"above" kind:"limit" example:"250.0"`

	// Below is a limit that values are not meant to be below.
	Below *float64 `toml:"below" kind:"limit" example:"90.0"`

	// Beyond is how much worse than the median of a baseline values may be.
	Beyond float64 `toml:"beyond" kind:"share" example:"\"5%\""`

	// Baseline names the baseline of beyond, as baictl baseline sets it.
	Baseline string `toml:"baseline" kind:"baseline" example:"\"main\""`

	// For is how many consecutive runs have to be over a limit, or have to fail. Without it
	// these are 2, and 1 for failed.
	For *int `toml:"for" kind:"consecutive" example:"2"`

	// Within is how long the next value may take, for when = "missing". Without it the schedule
	// of the descriptor says when it is due.
	Within time.Duration `toml:"within" kind:"duration" example:"\"26h\""`

	// Statistic is what of a run's samples is its value. A percentile is judged only if the run
	// has enough samples: 50 for p90, 100 for p95, 500 for p99.
	Statistic Statistic `toml:"statistic" default:"median" one:"median mean min max p90 p95 p99 last"`

	// Unit is that of above or below. Without it they are in the unit of the metric.
	Unit string `toml:"unit" kind:"line" example:"\"ms\""`

	// Notify names the receivers of notices, as the settings of the platform name them;
	// submitter is whoever submitted the run. Without it the settings say who is notified for
	// the namespace.
	Notify []string `toml:"notify" kind:"receivers" example:"[\"perf-team\"]"`

	// Confirm has runs of the last good and the first bad edition made, one after the other,
	// before anyone is notified. An alarm with it needs a condition that has values.
	Confirm *Confirm `toml:"confirm"`
}

// Confirm says how many runs may be made to confirm an incident. They wait for slots as other
// runs do, count against the limits of the team, and are no part of the history.
type Confirm struct {
	// Pairs is how many pairs of runs are compared: one of the old edition and one of the new
	// one, in random order. Fewer are made if their answer stands earlier.
	Pairs int `toml:"pairs" default:"5" kind:"pairs"`

	// MaxRuns is how many runs are made at most, those that fail included. Without it these are
	// three for each pair.
	MaxRuns *int `toml:"max_runs" kind:"confirmation runs" example:"12"`

	// MaxCost is what the runs cost at most, estimated by what such runs have cost: no run is made
	// that would pass it. Where no cost is known it cannot be kept, so it needs max_runs beside it,
	// or a price of the machines. See docs/cost.md.
	MaxCost string `toml:"max_cost" kind:"price" example:"\"20 USD\""`

	// Deadline is how long the runs may take in all. After it the incident is judged without
	// them.
	Deadline time.Duration `toml:"deadline" default:"24h" kind:"duration"`
}

// Cost relates what a run costs, and its energy, to the work that it did.
type Cost struct {
	// Per names metrics that count the work of a run: images, tokens, requests. A run has
	// cost.per.NAME and energy.per.NAME for each, if the metric and the cost or the energy are
	// known.
	Per []string `toml:"per" kind:"cost metrics" example:"[\"images\"]"`

	// Count says how the samples of these metrics make a number: the last one, for a metric
	// that counts up, or the sum of all, for one that says how much was done since the sample
	// before. Series of the metric with different labels add up.
	Count Count `toml:"count" default:"last" one:"last sum" example:"\"sum\""`
}

// A Count says how samples make a number of things.
type Count string

// The counts.
const (
	LastSample   Count = "last"
	SumOfSamples Count = "sum"
)
