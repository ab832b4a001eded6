// Package pod is the protocol between the platform's programs in a benchmark's pod: the
// paths and formats of files, and the settings of each program. It does no I/O.
//
// A pod of a run has three volumes of the platform. The first, mounted at Dir in each
// container, holds the benchmark's output. Only ContainerInstall can write to the second,
// at bin. The third is the collector's own, at StateDir in its container alone: the files
// marked "collector's" lie there, under the same names. A pod of an older executor has no
// third volume and has them at Dir.
//
//	bin/bai-pod      the program, brought by ContainerInstall
//	bin/bai-pod-ship the program that pulls, collects and waits
//	bin/bai-emit     another name of bai-pod, under which it emits metrics
//	run/output       the benchmark's output, as records (see AppendRecord)
//	run/exit.json    the benchmark's exit (see Exit), written last, by rename
//	run/metrics      the metrics file of client libraries, one JSON object a line
//	run/fifo         the pipe of the original client library
//	run/fifo.lines   lines that were read from the pipe; collector's
//	run/collect.json the shipped position of each stream; collector's
//	run/series       the known series, 8 bytes each; collector's
//	run/system       the benchmark's use of the machine, in lines as client libraries emit them
//	run/prometheus   numbers that the benchmark serves, in such lines; collector's
//	run/otlp         numbers that programs sent by OpenTelemetry's protocol, in such lines; collector's
//	run/otlp.url     the collector's address for them, by rename; a second copy is collector's
//	run/environment.json  the benchmark's environment (event.Environment), by rename; written twice if it takes long
//	run/parser-<n>   output for a parser of kind command; it has no name any more while it is written
//	run/kept/        the benchmark's artifacts, under their stored names
//	run/kept.json    the list of artifacts (see ArtifactList), written before exit.json, by rename
//	run/benchmark.lock    locked while the benchmark's entrypoint runs, for steps after it
//	run/step-<name>.output, .json and .lock  the same of a step: records, exit and lock
//	run/step-<name>.started  a step that runs always has started its command
//	scripts/         code that was sent along with the descriptor
//	data/<n>         the data sets, in a volume of their own
//	shared/<n>       data sets that all pods of a role share, in a volume of the role
//
// If the kernel refuses mounts, the environment variable EnvDir has the path of the
// volume.
package pod

import (
	"path"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// Dir is where the volume is mounted.
const Dir = "/bai"

// ImageBinary is where the program lies in the image that brings it.
const ImageBinary = "/bai-pod"

// ShipSuffix ends the name of the program that pulls, collects and waits. It lies beside
// the other, wherever that is.
const ShipSuffix = "-ship"

// Names below Dir.
const (
	Binary          = "bin/bai-pod"
	ShipBinary      = Binary + ShipSuffix
	Emit            = "bin/bai-emit" // in the folder that the command's PATH ends with
	Output          = "run/output"
	ExitFile        = "run/exit.json"
	BenchmarkLock   = "run/benchmark.lock"
	Metrics         = "run/metrics"
	FIFO            = "run/fifo"
	Spool           = "run/fifo.lines"
	Cursor          = "run/collect.json"
	Series          = "run/series"
	System          = "run/system"
	Scraped         = "run/prometheus"
	OTLP            = "run/otlp"
	OTLPURL         = "run/otlp.url"
	EnvironmentFile = "run/environment.json" // an event.Environment, by rename
	ArtifactsDir    = "run/kept"
	ArtifactsFile   = "run/kept.json"
	Data            = "data"
	Shared          = "shared"
	Scripts         = "scripts"
)

// Files of the Secret that the puller and the collector are given, mounted at
// SecretDir in these two containers alone.
const (
	SecretDir   = "/bai-secret"
	CollectFile = "collect.json" // a Collect
	PullFile    = "pull.json"    // a Pull
)

// StateDir is where the collector's own volume is mounted, in its container alone.
const StateDir = "/bai-state"

// VolumesDir is where the collector sees, read-only, those of the benchmark's
// volumes on which artifacts lie: each at its path there.
const VolumesDir = "/bai-volumes"

// StepsDir is where the output folders of steps are mounted, each at its name: writable in
// the container of its step, and read-only in those that run after it.
const StepsDir = "/bai-steps"

// ContainerStep begins the name of the container of a step.
const ContainerStep = "step-"

// AfterBenchmark is what `bai-pod step` is given in place of the name of another step if
// its step runs after the benchmark.
const AfterBenchmark = "-"

// MaxStepOutput is how many bytes of files a step may leave in its output folder.
const MaxStepOutput = 1 << 20

// Exit codes of the entrypoint for a step that has failed by a rule of the platform. The
// container's last words have the reason.
const (
	StepTimedOut      = 124
	StepOutputRefused = 65
	StepKilled        = 75 // of a step that runs always: it was killed in this pod before
)

// StepOutput returns where the output of a step lies below Dir. The lock of the benchmark
// is BenchmarkLock.
func StepOutput(name string) string { return "run/step-" + name + ".output" }

// StepExit is like StepOutput.
func StepExit(name string) string { return "run/step-" + name + ".json" }

// StepLock is like StepOutput.
func StepLock(name string) string { return "run/step-" + name + ".lock" }

// StepStarted is like StepOutput: the file exists once the command of a step that runs
// always has been started.
func StepStarted(name string) string { return "run/step-" + name + ".started" }

// Environment variables.
const (
	EnvDir       = "BAI_DIR"        // where Dir is; empty means Dir
	EnvSecretDir = "BAI_SECRET_DIR" // where SecretDir is; empty means SecretDir
	EnvStateDir  = "BAI_STATE_DIR"  // where the collector's own files lie; empty means where Dir is
	EnvPodUID    = "BAI_POD_UID"    // of the pod, by the downward API
	// Bytes of output that are stored, which bounds the records ahead of the collector;
	// empty means no limit.
	EnvMaxLog = "BAI_MAX_LOG"
	// Bytes of the volume's disk that remain free of output: below it nothing is shipped,
	// and below RecordingFloor of it the benchmark waits; empty means none.
	EnvReserve = "BAI_RESERVE"
	// How long the wrapper waits for the collector to be ready, as 10s; empty means not
	// at all.
	EnvAwait     = "BAI_AWAIT"
	EnvGrace     = "BAI_GRACE"               // how long the wrapper waits between SIGTERM and SIGKILL, as 10s; empty means 10s, as in steps
	EnvMessage   = "BAI_TERMINATION_MESSAGE" // where a container leaves its last words; empty means TerminationMessage
	EnvArtifacts = "BAI_ARTIFACTS"           // artifacts to store once the command has ended: []Artifact as JSON; empty means none
	EnvParsers   = "BAI_PARSERS"             // parsers of its output and files: []Parser as JSON; empty means none
	EnvNode      = "BAI_NODE"                // name of the node, by the downward API; empty means that of the system
	// Interval of the measurements of the benchmark's use, as 1s; empty means 1s, 0 no
	// measurement.
	EnvSystem     = "BAI_SYSTEM"
	EnvIndex      = "BAI_INDEX"       // of the pod within its role, where it has several
	EnvRole       = "BAI_ROLE"        // for the benchmark to know, of a descriptor with roles
	EnvRoleIndex  = "BAI_ROLE_INDEX"  // likewise
	EnvHosts      = "BAI_HOSTS_"      // and the role's name in upper case, - as _: the names of its pods' hosts, with blanks between them
	EnvPort       = "BAI_PORT_"       // likewise: the port at which the role is ready, if it is ready by one
	EnvStepOutput = "BAI_STEP_OUTPUT" // of a step: its output folder
	// The command is ready when this file exists, or when a line of its output matches
	// this regular expression (RE2). Then its entrypoint listens on ReadyPort.
	EnvReadyFile = "BAI_READY_FILE"
	EnvReadyLog  = "BAI_READY_LOG"
	// Descriptor where a collector that is outside its pod's network is given sockets of
	// it; empty means that it is inside.
	EnvSockets = "BAI_SOCKETS"
	EnvObjects = "BAI_OBJECTS"      // beginning of the names of a manifest's objects
	EnvCopy    = "BAI_COPY"         // number of the copy of a manifest, from 0 on
	EnvScripts = "BAI_SCRIPTS_PATH" // where code lies that was sent along with the descriptor
	// EnvBackend is for client libraries: "fifo", the only one of the original's that is of use in a pod. Ours append to EnvFile where it
	// is set.
	EnvBackend  = "BENCHMARK_AI"
	EnvFile     = "BENCHMARK_AI_FILE"               // the metrics file
	EnvFIFO     = "BENCHMARK_AI_FIFO_FILEPATH"      // the pipe
	EnvFIFOWait = "BENCHMARK_AI_FIFO_MAX_WAIT_TIME" // seconds that the original client library waits for the pipe
	EnvExitCode = "BAI_EXIT_CODE"                   // of a parser of kind command: the exit code of the benchmark
	EnvStrict   = "BENCHMARK_AI_STRICT"             // set by users: 1 makes a program that cannot emit a value fail
	EnvRun      = "BENCHMARK_AI_RUN"                // the run's ID, for the benchmark to know
	EnvAttempt  = "BENCHMARK_AI_ATTEMPT"
)

// ReadyPort is where the entrypoint of a command accepts connections once it is ready.
const ReadyPort = 2223

// Environment variables of OpenTelemetry's libraries, with their values in the plan. The
// entrypoint replaces DefaultOTLP by the content of OTLPURL.
const (
	EnvOTLPEndpoint = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
	EnvOTLPProtocol = "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL"
	EnvOTLPEvery    = "OTEL_METRIC_EXPORT_INTERVAL" // ms

	DefaultOTLP  = "http://127.0.0.1:4318/v1/metrics"
	OTLPProtocol = "http/protobuf"
	OTLPEvery    = "5000"
)

// ScriptsDir is where code that was sent along lies in the benchmark's
// container: the path that it has among the data of its run.
const ScriptsDir = Dir + "/" + Scripts

// CodeScheme is how the source of code begins that was sent along with a run.
const CodeScheme = "script:"

// Code returns code that was sent along as it is among the data of its run.
func Code(s event.Bundle) event.Data {
	return event.Data{Source: CodeScheme + s.SHA256, Path: ScriptsDir, SHA256: s.SHA256, Size: s.Size, Unpack: true, Writable: true}
}

// CodeOf returns the code that was sent along, of the data of a run; nil for none.
func CodeOf(data []event.Data) *event.Bundle {
	for _, d := range data {
		if d.Path == ScriptsDir {
			return &event.Bundle{SHA256: d.SHA256, Size: d.Size}
		}
	}
	return nil
}

// TerminationMessage is where Kubernetes reads a container's last words.
const TerminationMessage = "/dev/termination-log"

// Exit codes of the puller. Its last line of output has the reason.
const (
	PullUser  = 65 // the user's data cannot be used: an archive that is none
	PullInfra = 75 // everything else
)

// PathIn returns where name lies in the volume that is mounted at dir, Dir if empty.
func PathIn(dir, name string) string {
	if dir == "" {
		dir = Dir
	}
	return path.Join(dir, name)
}

// Collect holds the settings of `bai-pod-ship collect`.
type Collect struct {
	Header    event.Header `json:"header"` // of the launch; ID, run, attempt and lineage are taken from it
	Role      string       `json:"role"`
	Index     int          `json:"index"`
	Container string       `json:"container"` // whose output it is
	Brokers   []string     `json:"brokers"`
	Access    Access       `json:"access,omitzero"` // to the brokers
	Token     string       `json:"token"`           // of the run
	Metrics   []Metric     `json:"metrics,omitempty"`
	// Bytes of output that are kept, of its beginning and of its end; zero means no
	// limit.
	MaxLog  int64 `json:"max_log,omitempty"`
	MaxLine int   `json:"max_line,omitempty"` // bytes of a line that are kept; zero means 64 KiB
	// As EnvReserve: with less free, the user is warned, and nothing is shipped.
	Reserve int64 `json:"reserve,omitempty"`

	Gateway   string        `json:"gateway,omitempty"`   // URL of the gateway, which takes artifacts; empty means that none are kept
	Artifacts []Artifact    `json:"artifacts,omitempty"` // artifacts to store
	Volumes   []string      `json:"volumes,omitempty"`   // paths of the benchmark's volumes that lie below VolumesDir
	Scrape    Scrape        `json:"scrape,omitzero"`     // where the benchmark serves numbers
	Series    int           `json:"series,omitempty"`    // series that are kept, its share of those of the run; zero means MaxSeries
	OTLP      bool          `json:"otlp,omitempty"`      // whether it listens for numbers that programs send
	Steps     []string      `json:"steps,omitempty"`     // names of the steps whose output is shipped, too
	LastStep  string        `json:"last_step,omitempty"` // of the steps after the benchmark the last one; empty means that there are none
	Drain     time.Duration `json:"drain,omitempty"`     // ns; time to ship the rest after a signal to stop; zero means 25 s
}

// Access is how a pod writes to the brokers. The zero value is plain TCP.
type Access struct {
	TLS        bool   `json:"tls,omitempty"`
	CA         string `json:"ca,omitempty"` // PEM; empty means those that the image trusts
	ServerName string `json:"server_name,omitempty"`
	Mechanism  string `json:"mechanism,omitempty"` // of SASL; empty means no authentication
	User       string `json:"user,omitempty"`
	Password   string `json:"password,omitempty"`

	Compression string `json:"compression,omitempty"` // of its messages; empty means that of package kafka
}

// Artifact is a file or folder that is kept after the run.
type Artifact struct {
	Path    string `json:"path"`               // or a pattern; absolute, or relative to the benchmark's working directory
	MaxSize int64  `json:"max_size,omitempty"` // bytes of all matching files; the files beyond it are not stored; zero means no limit
	Quiet   bool   `json:"quiet,omitempty"`    // that there is none is nothing to talk about
}

// Parser reads the output of a benchmark tool once the benchmark has ended.
type Parser struct {
	Kind string `json:"kind"` // of package parsers
	// of the file, or a pattern that one file matches; empty means the benchmark's output
	Path     string            `json:"path,omitempty"`
	Stream   string            `json:"stream,omitempty"`   // stdout, stderr or both, of the output; empty means what the kind reads
	Metrics  map[string]string `json:"metrics,omitempty"`  // of the kinds json and csv: name → path or column
	Optional bool              `json:"optional,omitempty"` // no result is no failure

	// Of the kind command: the program and its arguments, in which $(NAME) stands for a variable; how long it may run, in ns; and how many
	// bytes of data it may have.
	Command  []string      `json:"command,omitempty"`
	Deadline time.Duration `json:"deadline,omitempty"`
	Memory   int64         `json:"memory,omitempty"`
}

// NoResults begins the last words of a benchmark's container that ends with ExitNoResults.
const NoResults = "NoResults: "

// ExitNoResults is the exit code of the entrypoint for a benchmark that has ended well and
// has left no result for a parser.
const ExitNoResults = 65

// ArtifactList lists the artifacts of a benchmark.
type ArtifactList struct {
	Files   []string `json:"files,omitempty"`   // names below ArtifactsDir, in order
	Notices []string `json:"notices,omitempty"` // skipped files and the reasons, for the user to read
}

// Metric is a pattern to look for in the output, or the unit and direction of a metric that comes
// from elsewhere.
type Metric struct {
	Name    string `json:"name"`
	Unit    string `json:"unit,omitempty"`
	Pattern string `json:"pattern,omitempty"` // RE2; see extract.Compile for its groups; empty means none
	Parser  string `json:"parser,omitempty"`  // the input of the pattern; empty means lines
	Block   Block  `json:"block,omitzero"`    // of the parser of blocks

	Direction string `json:"direction,omitempty"` // event.Higher or event.Lower; empty where the descriptor says nothing
}

// Scrape is where a benchmark serves numbers in the text format of Prometheus.
type Scrape struct {
	URLs  []string      `json:"urls,omitempty"`
	Every time.Duration `json:"every,omitempty"` // ns; zero means a second
	Names string        `json:"names,omitempty"` // RE2; only numbers whose name it matches are kept
}

// Block says which lines of the output belong together.
type Block struct {
	Begin  string        `json:"begin"`            // RE2, of the first line
	Lines  int           `json:"lines,omitempty"`  // at most; zero means 1000
	Within time.Duration `json:"within,omitempty"` // ns from one line to the next, at most; zero means a minute
}

// Pull holds the settings of `bai-pod-ship pull`.
type Pull struct {
	Header  event.Header `json:"header"`
	Brokers []string     `json:"brokers,omitempty"`
	Access  Access       `json:"access,omitzero"` // to the brokers
	Token   string       `json:"token,omitempty"`
	// URL of the object store as the pod reaches it; where {run} is in it, the run is
	// meant, and the token lets in.
	Store string       `json:"store"`
	Data  []event.Data `json:"data"` // number n goes to data/<n>, a file, or a directory where Unpack is set

	// Shared are the numbers of the data sets that go to shared/<n> instead: the pod with
	// Index 0 fetches them, and the others wait for them.
	Shared []int `json:"shared,omitempty"`
	Index  int   `json:"-"` // of the pod within its role
	// Linked allows a file that is not writable to be the very file of an object store on
	// this disk: the benchmark sees it through a read-only mount.
	Linked bool `json:"-"`

	MaxFiles int `json:"max_files,omitempty"` // and folders that one archive may hold; zero means 1,000,000
	// Bytes that one archive may hold; zero means 1 GiB and 200 times its size, 1 TiB at
	// most where it is not larger itself.
	MaxUnpacked int64 `json:"max_unpacked,omitempty"`
	// Bytes of the pod's own volume that are left free while archives are unpacked; zero
	// means 256 MiB, less of a volume below 5 GiB.
	Reserve int64 `json:"reserve,omitempty"`
}

// Exit is how the process of the benchmark, or of a step, ended.
type Exit struct {
	Code    int       `json:"code"`              // as a shell would say it: 128 + n after signal n, 127 not found, 126 not executable
	Signal  string    `json:"signal,omitempty"`  // SIGKILL
	Problem string    `json:"problem,omitempty"` // why it could not be started, in the kernel's words
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	User    float64   `json:"user_seconds"`
	System  float64   `json:"system_seconds"`
	MaxRSS  int64     `json:"max_rss_bytes"`
	Stopped bool      `json:"stopped,omitempty"`       // it was signalled to end
	Skipped bool      `json:"skipped,omitempty"`       // of a step: it did not run, because what it comes after did not succeed
	Dropped int64     `json:"dropped_bytes,omitempty"` // output that was not recorded, because the reader was behind

	DroppedLines int64    `json:"dropped_lines,omitempty"` // line feeds in it
	Notices      []string `json:"notices,omitempty"`       // results and artifacts that are missing, for the user to read

	Tools map[string]string `json:"tools,omitempty"` // versions of the tools whose output parsers read, by kind
}
