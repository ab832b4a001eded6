package descriptors

import "time"

// A Descriptor describes one benchmark: what runs, on what, with which data,
// and which numbers are read from what it writes. One file is one descriptor.
//
// A Descriptor is data: it holds no connections and no locks, may be copied,
// and is not changed by any function of this package once Parse gave it out.
type Descriptor struct {
	// SpecVersion is the version of the language in which the file is written.
	// A program that knows an older language only refuses the file and says so.
	SpecVersion string `toml:"spec_version" need:"yes" kind:"spec version" example:"\"1.0\""`

	// Info says what the benchmark is, where it runs and how often.
	Info Info `toml:"info" need:"yes"`

	// Hardware says on what kind of machine the benchmark runs, and on how many.
	Hardware Hardware `toml:"hardware" need:"yes"`

	// Env is the environment of the benchmark's process.
	Env Env `toml:"env" need:"yes"`

	// ML is the program that is measured. Without this table the image's own
	// entrypoint is run.
	ML *ML `toml:"ml"`

	// Data are the files that lie on the benchmark's disk before it starts.
	Data Data `toml:"data"`

	// Output says what is kept of what the benchmark writes. Without this table
	// only the log is kept, and what the benchmark emits itself.
	Output *Output `toml:"output"`

	// Server is the part that the benchmark talks to. Strategy inference needs
	// it, the other strategies do not use it.
	Server *Server `toml:"server"`

	// CustomParams are kept and passed on to the execution engine.
	CustomParams *CustomParams `toml:"custom_params"`

	// Limits end a run that takes too long, and say how often one is tried.
	Limits Limits `toml:"limits"`
}

// Info says what a benchmark is, where it runs and how often.
type Info struct {
	// Description is for people; nothing interprets it.
	Description string `toml:"description" need:"yes" example:"\"what is measured\""`

	// TaskName names what is measured, so that runs of one task can be compared.
	// It is the same as the label task_name: giving one gives the other.
	TaskName string `toml:"task_name" kind:"label value"`

	// ExecutionEngine names what carries the run out: default, kubernetes, local
	// or another engine of the platform. A run for an engine that the platform
	// lacks ends at once, with reason EngineUnavailable.
	ExecutionEngine string `toml:"execution_engine" default:"default" kind:"name"`

	// Scheduling is single_run, or a cron expression of five fields: then the
	// descriptor is a schedule, and each firing is a run.
	Scheduling string `toml:"scheduling" default:"single_run" kind:"schedule"`

	// Timezone is the zone in which scheduling is read, by its IANA name.
	Timezone string `toml:"timezone" default:"UTC" kind:"time zone"`

	// Labels are attached to the run, to its objects and to each of its samples,
	// and are what runs are looked up and compared by.
	Labels map[string]string `toml:"labels" kind:"labels"`
}

// SingleRun is the scheduling of a descriptor that is run once.
const SingleRun = "single_run"

// Scheduled reports whether the descriptor is a schedule.
func (i Info) Scheduled() bool { return i.Scheduling != "" && i.Scheduling != SingleRun }

// Hardware says on what kind of machine a benchmark runs, and on how many.
type Hardware struct {
	// InstanceType is the cloud's name of the kind of machine. It may be left out
	// where gpus, cpus, memory or node_selector say what is needed.
	InstanceType string `toml:"instance_type" kind:"name"`

	// Strategy is how many pods a run has and what they are to each other: one;
	// equal ones that talk MPI (also called horovod); a client and its server
	// (also called client_server).
	Strategy Strategy `toml:"strategy" default:"single_node" one:"single_node mpi=horovod inference=client_server"`

	// AWSZoneID is the zone to run in by its account-independent ID. The platform
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

	// CPUs is what each pod is given, as request and as limit.
	CPUs string `toml:"cpus" kind:"cpus"`

	// Memory is what each pod is given, as request and as limit.
	Memory string `toml:"memory" kind:"memory"`

	// GPUResource is the name by which the cluster counts GPUs.
	GPUResource string `toml:"gpu_resource" default:"nvidia.com/gpu" kind:"resource"`

	// NodeSelector are the labels that a node must have.
	NodeSelector map[string]string `toml:"node_selector" kind:"node labels"`

	// Tolerations are the taints that a node may have.
	Tolerations []Toleration `toml:"tolerations"`
}

// A Strategy is how many pods a run has and what they are to each other.
type Strategy string

// The strategies, by the names that Parse gives them. An alias in a file
// (horovod, client_server) is read as the name here.
const (
	SingleNode Strategy = "single_node"
	MPI        Strategy = "mpi"
	Inference  Strategy = "inference"
)

// Distributed says how many pods and processes strategy mpi has.
type Distributed struct {
	// NumInstances is the number of pods: 2 or more.
	NumInstances int `toml:"num_instances" default:"2"`

	// ProcessesPerInstance is the number of MPI processes in each pod: a whole
	// number, or "gpus" for one on each GPU.
	ProcessesPerInstance Processes `toml:"processes_per_instance" default:"1" kind:"processes"`
}

// Processes is a number of processes in each pod.
type Processes struct {
	OnePerGPU bool // as many as the pod has GPUs; Number is 0
	Number    int
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
	// cluster. A descriptor never holds the value itself.
	Secrets map[string]SecretRef `toml:"secrets" kind:"secrets"`

	// ImagePullSecret names the secret with which the image is pulled.
	ImagePullSecret string `toml:"image_pull_secret" kind:"object name"`
}

// A SecretRef points at one value in a secret; written "name/key".
type SecretRef struct {
	Name string // of the secret, in the run's namespace
	Key  string // in the secret
}

// ML is the program that is measured.
type ML struct {
	// BenchmarkCode is the command. Its words are split as by a shell, but no
	// shell runs it: only $(NAME) stands for a variable. A text that begins with
	// #! is a script for the interpreter that this line names.
	BenchmarkCode string `toml:"benchmark_code" kind:"code" also:"command cmd code"`

	// Args are the arguments of benchmark_code or, without it, of the image's
	// entrypoint.
	Args string `toml:"args" kind:"command"`

	// Framework is what the program is written for.
	Framework string `toml:"framework" one:"mxnet tensorflow pytorch jax" empty:"yes"`

	// FrameworkVersion is the version of framework.
	FrameworkVersion string `toml:"framework_version"`

	// Script is code that is sent along with the descriptor.
	Script *Script `toml:"script"`
}

// Script is code that is sent along with a descriptor and unpacked before the
// benchmark starts, in the folder that BAI_SCRIPTS_PATH names.
type Script struct {
	// Archive is the name of the archive that is sent along.
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
	// Src is where the data come from: s3://, gs://, azblob://, http:// or
	// https://, and file:// where the platform's settings allow it.
	//
	// A prefix of a bucket, best with a slash at its end, is a folder; so is
	// git+https://host/repository@ref#path, the files of a commit, where ref is
	// a tag, a branch or a commit, and both ref and path may be left out.
	Src string `toml:"src" need:"yes" kind:"source" also:"uri url source" example:"\"https://example.org/set.gz\""`

	// Path is where the benchmark finds the data: the file itself, or the folder
	// where src is one or is unpacked.
	//
	// A path below /bai/data needs no mount: environment variables whose value
	// begins with it name the right place wherever that is.
	Path string `toml:"path" need:"yes" kind:"mount path" example:"\"/data\""`

	// ID names the source to engines that want a name.
	ID string `toml:"id" kind:"name"`

	// MD5 is the digest that the fetched bytes must have.
	MD5 string `toml:"md5" kind:"md5"`

	// SHA256 is the digest that the fetched bytes must have; of a folder it is
	// that of the list which this prints in it:
	// find * -type f | LC_ALL=C sort | xargs sha256sum.
	SHA256 string `toml:"sha256" kind:"sha256"`

	// Unpack unpacks the fetched tar, tar.gz, tar.zst or zip archive into path.
	Unpack bool `toml:"unpack" default:"false"`

	// ReadOnly lets the benchmark read the data but not change them.
	ReadOnly bool `toml:"read_only" default:"false"`
}

// Output says what is kept of what a benchmark writes.
type Output struct {
	// Metrics are the numbers that are read from the benchmark's log.
	Metrics []Metric `toml:"metrics"`

	// Artifacts are the files that are kept after the run.
	Artifacts []Artifact `toml:"artifacts"`
}

// A Metric is a number that is read from the lines that a benchmark writes.
type Metric struct {
	// Name names the metric.
	Name string `toml:"name" need:"yes" kind:"metric name" example:"\"throughput\""`

	// Units is what the number counts.
	Units string `toml:"units" need:"yes" kind:"line" example:"\"images/s\""`

	// Pattern is a regular expression in Go's dialect (RE2). On each line where
	// it matches, the group named value, else the first group, else the whole
	// match is the number. A group named unit says in which unit the line gives
	// it; the number is then converted to units.
	Pattern string `toml:"pattern" need:"yes" kind:"pattern" example:"'([0-9.]+) images/s'"`

	// Parser says what the pattern is held against: lines is each line of the log
	// by itself.
	Parser string `toml:"parser" default:"lines" one:"lines"`

	// Direction says which of two numbers is the better one, for programs that
	// compare runs.
	Direction Direction `toml:"direction" one:"higher lower"`
}

// A Direction says which of two numbers is the better one.
type Direction string

// The directions; the empty one says nothing.
const (
	Higher Direction = "higher"
	Lower  Direction = "lower"
)

// An Artifact is a file that is kept after the run.
type Artifact struct {
	// Path is where the benchmark leaves the file or folder.
	Path string `toml:"path" need:"yes" kind:"path" example:"\"/tmp/results\""`

	// MaxSize is the size from which on the artifact is not kept.
	MaxSize int64 `toml:"max_size" default:"100MiB" kind:"size"`
}

// Server is the part of an inference benchmark that answers.
type Server struct {
	// Hardware is the machine that the server runs on: the keys of the table
	// hardware but for strategy and distributed.
	Hardware Hardware `toml:"hardware" need:"yes" without:"strategy distributed"`

	// Env is the server's environment and program.
	Env ServerEnv `toml:"env" need:"yes"`

	// Models are the files that lie on the server's disk before it starts.
	Models []Source `toml:"models"`

	// Output says what is kept of what the server writes.
	Output *Output `toml:"output"`
}

// ServerEnv is the environment and the program of a server.
type ServerEnv struct {
	Env

	// Ports are where the server listens. The benchmark finds the first as
	// INFERENCE_SERVER_PORT, the others as INFERENCE_SERVER_PORT_1 and so on.
	Ports []int `toml:"ports" need:"yes" kind:"ports" example:"[8080]"`

	// StartCommand is the command; the image's entrypoint is run where it is
	// empty. Its words are split as those of benchmark_code.
	StartCommand string `toml:"start_command" need:"yes" kind:"command" example:"\"serve\""`

	// StartCommandArgs are the arguments of start_command or of the image's
	// entrypoint.
	StartCommandArgs string `toml:"start_command_args" kind:"command"`

	// ReadinessProbe says when the server is ready. The benchmark starts then.
	ReadinessProbe *Probe `toml:"readiness_probe" also:"liveliness_probe liveness_probe"`
}

// A Probe asks a server over HTTP whether it is ready.
type Probe struct {
	// Path is what is asked for.
	Path string `toml:"path" need:"yes" kind:"http path" example:"\"/ping\""`

	// Port is where it is asked for; the first of ports without it.
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

// CustomParams are kept and passed on to the execution engine. The engines
// default, kubernetes and local read none of them.
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

// Limits end a run that takes too long, and say how often one is tried. What is
// not given is left to the platform's settings.
type Limits struct {
	// Deadline is how long the run may take from its launch; then it ends with
	// class timeout, reason DeadlineExceeded.
	Deadline time.Duration `toml:"deadline" kind:"duration" also:"timeout"`

	// PendingDeadline is how long the run may wait for a machine.
	PendingDeadline time.Duration `toml:"pending_deadline" kind:"duration"`

	// Retries is how often the run is tried again when the infrastructure failed.
	// What the benchmark itself got wrong is never tried again.
	Retries int `toml:"retries" default:"0" kind:"retries"`

	// MaxLogSize is the size from which on the log is not kept.
	MaxLogSize int64 `toml:"max_log_size" kind:"size"`

	// Keep says whether the objects of a run stay in the cluster after its end, to
	// be looked at: never, those of failed runs, or all for a time. Without it the
	// platform's settings say it.
	Keep Keep `toml:"keep" kind:"keep"`
}

// Keep says how long the objects of a run stay in the cluster after its end. The
// zero Keep says nothing.
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
