// Package event is the vocabulary of the platform: one type for each fact that can happen
// to a benchmark run, and its form on the wire.
//
// One topic carries one type, so the topic decides how a reader decodes. The package does
// no I/O and reads no clock.
package event

import (
	"errors"
	"fmt"
	"time"
)

// Event is something that has happened to one run.
type Event interface {
	Topic() string   // where it is published; the same for all values of a type
	Head() Header    // run and cause of the event
	Validate() error // names every required field that is missing
}

// Topics, in the order of the flow.
const (
	TopicSubmitted = "bai.submitted"
	TopicCommands  = "bai.commands"
	TopicFetched   = "bai.fetched"
	TopicLaunched  = "bai.launched"
	TopicRetried   = "bai.retried"
	TopicStatus    = "bai.status"
	TopicFinished  = "bai.finished"
	TopicMetrics   = "bai.metrics"
	TopicLogs      = "bai.logs"

	TopicSummarised = "bai.summarised"

	TopicDead = "bai.dead" // messages that no consumer can handle
)

// Topics returns every topic of the platform, in the order of the flow.
func Topics() []string {
	return []string{
		TopicSubmitted, TopicCommands, TopicFetched, TopicLaunched, TopicRetried,
		TopicStatus, TopicFinished, TopicMetrics, TopicLogs, TopicSummarised, TopicDead,
	}
}

// Submitted says that a user asked for a run and was promised one.
type Submitted struct {
	Header

	Name       string            `json:"name,omitempty"`   // chosen by the user; unique per owner
	File       string            `json:"file,omitempty"`   // where the user read the descriptor
	Descriptor string            `json:"descriptor"`       // TOML, as it is run, at most 256 KiB
	Labels     map[string]string `json:"labels,omitempty"` // of the descriptor and the request, merged

	Overrides  []Override  `json:"overrides,omitempty"`   // values that the request replaced; part of Descriptor already
	Provenance *Provenance `json:"origination,omitempty"` // where the descriptor came from; nil for a file of the user's
	Bundle     *Bundle     `json:"script,omitempty"`      // code that was sent along, which the object store has; nil for none

	Use
}

// Use is a descriptor's information about its benchmark for people. The platform shows it
// and finds runs by it, and makes no other use of it.
type Use struct {
	Description      string   `json:"description,omitempty"` // up to 1 KiB of it
	Framework        string   `json:"framework,omitempty"`
	FrameworkVersion string   `json:"framework_version,omitempty"`
	DataIDs          []string `json:"data_ids,omitempty"` // of the sources and models that have one, in their order
}

// Override puts a value in the place of one of a descriptor's.
type Override struct {
	Path  string `json:"path"`  // the key, dotted
	Value string `json:"value"` // TOML, or the text of a string
}

// Provenance says where a descriptor came from.
type Provenance struct {
	URI    string `json:"uri"`    // https://, s3:// or stored:NAME@VERSION, without credentials
	SHA256 string `json:"sha256"` // of its bytes, hex
}

// Bundle is code that is sent along with a descriptor: an archive.
type Bundle struct {
	SHA256 string `json:"sha256"` // of the archive, hex
	Size   int64  `json:"size"`   // bytes
}

// Topic implements Event.
func (Submitted) Topic() string { return TopicSubmitted }

// Validate implements Event.
func (s Submitted) Validate() error {
	return errors.Join(s.Header.Validate(), required("descriptor", s.Descriptor))
}

// CommandKind is a change that a user requests for an existing run.
type CommandKind string

// CommandCancel requests the run's end. The cancel mark was stored before the command was
// sent.
const CommandCancel CommandKind = "cancel"

// Command says that a user asked something of a run.
type Command struct {
	Header

	Kind CommandKind `json:"kind"`
	By   string      `json:"by,omitempty"` // the user
}

// Topic implements Event.
func (Command) Topic() string { return TopicCommands }

// Validate implements Event.
func (c Command) Validate() error {
	return errors.Join(c.Header.Validate(), required("kind", string(c.Kind)))
}

// Data is one data set of a run, and where it lies once it was fetched.
type Data struct {
	Source   string `json:"source"`             // URL, as the descriptor has it, without credentials
	Path     string `json:"path"`               // where the benchmark expects it
	Object   string `json:"object,omitempty"`   // key in the object store; empty until fetched
	SHA256   string `json:"sha256,omitempty"`   // of the content, hex; empty until fetched
	Size     int64  `json:"size,omitempty"`     // bytes
	Unpack   bool   `json:"unpack,omitempty"`   // an archive that the puller unpacks at Path: the user's, or that of a folder
	Writable bool   `json:"writable,omitempty"` // the benchmark may change its copy
	Revision string `json:"revision,omitempty"` // of a repository: the commit that the content is of
}

// Fetched says that every data set of a run is in the object store.
type Fetched struct {
	Header

	Name       string            `json:"name,omitempty"`
	File       string            `json:"file,omitempty"`
	Descriptor string            `json:"descriptor"`
	Labels     map[string]string `json:"labels,omitempty"`
	Data       []Data            `json:"data"`
}

// Topic implements Event.
func (Fetched) Topic() string { return TopicFetched }

// Validate implements Event.
func (f Fetched) Validate() error {
	return errors.Join(f.Header.Validate(), required("descriptor", f.Descriptor))
}

// Launched says that the objects of one attempt of a run were created.
type Launched struct {
	Header

	Cluster string `json:"cluster"`           // the engine: its name in settings, or the kind of the default one, kubernetes or local
	Scope   string `json:"scope"`             // the Kubernetes namespace of the objects
	Job     string `json:"job"`               // name of the Job whose end ends the run
	UID     string `json:"uid,omitempty"`     // of that Job
	Retries int    `json:"retries,omitempty"` // attempts that may follow this one after an infra failure
	// Ns; how long a pod may wait for a resource that may never come; zero is the
	// watcher's default.
	PendingDeadline time.Duration `json:"pending_deadline,omitempty"`
	// Always are the names of the steps that run at every end of the attempt, in the order in
	// which they run.
	Always []string `json:"always,omitempty"`
}

// Topic implements Event.
func (Launched) Topic() string { return TopicLaunched }

// Validate implements Event.
func (l Launched) Validate() error {
	return errors.Join(l.Header.Validate(), required("job", l.Job))
}

// Retried says that an attempt failed through no fault of the user's, and that
// Header.Attempt is the number of the attempt that follows it.
type Retried struct {
	Header

	Class      Class    `json:"class"`
	Reason     Reason   `json:"reason"`
	Message    string   `json:"message"`              // why the attempt before failed
	Collectors []string `json:"collectors,omitempty"` // UIDs of that attempt's pods whose data are awaited, and their Followers

	Machines []MachineUse `json:"machines,omitzero"` // of that attempt; nil if they are not known
}

// MachineUse is the use of one machine by an attempt of a run: a node of the cluster.
type MachineUse struct {
	Node         string    `json:"node"`
	InstanceType string    `json:"instance_type,omitempty"`  // empty if it is not known
	PricePerHour string    `json:"price_per_hour,omitempty"` // as the descriptor gives it; empty if it does not
	From         time.Time `json:"from"`                     // when the first pod was bound to the node
	Until        time.Time `json:"until"`                    // when the last pod there ended
}

// Topic implements Event.
func (Retried) Topic() string { return TopicRetried }

// Validate implements Event.
func (r Retried) Validate() error {
	if r.Attempt < 2 {
		return errors.Join(r.Header.Validate(), fmt.Errorf("attempt: %d, want 2 or more", r.Attempt))
	}
	return errors.Join(r.Header.Validate(), required("reason", string(r.Reason)))
}

// Progress is how much of something countable is done.
type Progress struct {
	Done  int64  `json:"done"`
	Total int64  `json:"total,omitempty"` // zero: not known
	Unit  string `json:"unit"`            // bytes or items
}

// Status is the progress of a run for its user. Its text is written for the user, not for
// the operator.
type Status struct {
	Header

	Phase    Phase     `json:"phase"`
	Reason   Reason    `json:"reason,omitempty"` // why it waits, where it waits
	Message  string    `json:"message"`
	Progress *Progress `json:"progress,omitempty"`
}

// Topic implements Event.
func (Status) Topic() string { return TopicStatus }

// Validate implements Event.
func (s Status) Validate() error {
	return errors.Join(s.Header.Validate(), required("phase", string(s.Phase)))
}

// Finished says that a run has ended. The first in the partition is the truth.
type Finished struct {
	Header

	Outcome    Outcome    `json:"outcome"`
	Class      Class      `json:"class,omitempty"`  // whose fault a failure is
	Reason     Reason     `json:"reason,omitempty"` // empty for a success
	Message    string     `json:"message"`
	ExitCode   *int       `json:"exit_code,omitempty"`  // of the benchmark, where it ran to an end
	Started    *time.Time `json:"started,omitempty"`    // when the benchmark's process began
	Ended      *time.Time `json:"ended,omitempty"`      // when it ended
	Collectors []string   `json:"collectors,omitempty"` // UIDs of the last attempt's pods whose data are awaited, and their Followers

	// Images are the digests of the images of the last attempt's pods, by UID, as the
	// cluster reports them, or NoImage.
	Images map[string]string `json:"images,omitempty"`

	Machines []MachineUse `json:"machines,omitzero"` // of the last attempt; nil if they are not known
}

// NoImage stands for the image where a cluster runs this machine's own programs.
const NoImage = "none"

// Topic implements Event.
func (Finished) Topic() string { return TopicFinished }

// Validate implements Event.
func (f Finished) Validate() error {
	errs := []error{f.Header.Validate(), required("outcome", string(f.Outcome))}
	if f.Outcome == Failed {
		errs = append(errs, required("class", string(f.Class)), required("reason", string(f.Reason)))
	}
	return errors.Join(errs...)
}

// Summarised says that the points of a run that has ended are stored: its values in the
// series of its task. It comes once for each revision of them: again when late samples
// change the summary.
type Summarised struct {
	Header

	Revision int64 `json:"revision"` // of the points; zero for a run without samples
	Complete bool  `json:"complete"` // all samples of the run are in its points
}

// Topic implements Event.
func (Summarised) Topic() string { return TopicSummarised }

// Validate implements Event.
func (s Summarised) Validate() error {
	if s.Revision < 0 {
		return errors.Join(s.Header.Validate(), fmt.Errorf("revision: %d, want 0 or more", s.Revision))
	}
	return s.Header.Validate()
}
