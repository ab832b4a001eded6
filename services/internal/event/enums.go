package event

// Phase is how far a run has come.
type Phase string

// Phases, in the order in which a run passes them. A retried run goes back to
// PhaseQueued.
const (
	PhaseSubmitted Phase = "submitted"
	PhaseFetching  Phase = "fetching"
	PhaseQueued    Phase = "queued"
	PhaseLaunching Phase = "launching"
	PhasePending   Phase = "pending"
	PhaseRunning   Phase = "running"
	PhaseCanceling Phase = "canceling"
	PhaseFinished  Phase = "finished"
)

// Phases returns every phase, in the order in which a run passes them.
func Phases() []Phase {
	return []Phase{
		PhaseSubmitted, PhaseFetching, PhaseQueued, PhaseLaunching,
		PhasePending, PhaseRunning, PhaseCanceling, PhaseFinished,
	}
}

// Outcome is how a finished run ended.
type Outcome string

// Outcomes.
const (
	Succeeded Outcome = "succeeded"
	Failed    Outcome = "failed"
	Canceled  Outcome = "canceled"
)

// Class is whose fault a failure is.
type Class string

// Classes. Only ClassInfra may be retried.
const (
	ClassUser     Class = "user"
	ClassInfra    Class = "infra"
	ClassPlatform Class = "platform"
	ClassTimeout  Class = "timeout"
)

// Reason is why something is as it is: one CamelCase word that a program can
// match.
type Reason string

// QueuedInCluster reports whether it is the reason of a run in PhaseQueued whose
// objects exist: such a run is as far as one in PhasePending, and may become that again.
func (r Reason) QueuedInCluster() bool { return r == NodesInUse || r == QueueSuspended }

// Reasons, in the order of the flow in which they can arise.
const (
	InvalidDescriptor Reason = "InvalidDescriptor" // the descriptor cannot be run as written
	EngineUnavailable Reason = "EngineUnavailable" // info.execution_engine names an engine that is not here
	StrategyUnknown   Reason = "StrategyUnknown"   // hardware.strategy is not one that this platform launches
	FetchFailed       Reason = "FetchFailed"       // a data set could not be had
	ChecksumMismatch  Reason = "ChecksumMismatch"  // a data set does not have its digest
	SourceRefused     Reason = "SourceRefused"     // a data set's URL is not one that settings allow
	DataTooLarge      Reason = "DataTooLarge"      // a data set is larger than settings allow
	NoSpace           Reason = "NoSpace"           // the object store or the platform's disk is full; why a run waits, never why it ends
	LaunchRefused     Reason = "LaunchRefused"     // the cluster refused an object of the run
	NeedsImage        Reason = "NeedsImage"        // runs the image's entrypoint, where no images are run
	NeedsNamespaces   Reason = "NeedsNamespaces"   // needs mounts or pods that this machine's kernel refuses
	NeedsGPU          Reason = "NeedsGPU"          // asks for more GPUs than there are
	NeedsDevice       Reason = "NeedsDevice"       // asks for a resource of a cluster that this machine has not
	Unschedulable     Reason = "Unschedulable"     // no node can take the pod
	NodeScaling       Reason = "NodeScaling"       // a node is being added for the pod; why a run waits, never why it ends
	NodesInUse        Reason = "NodesInUse"        // other runs are on the nodes that the pod could use; why a run waits, never why it ends
	QueueSuspended    Reason = "QueueSuspended"    // the cluster's queue has not admitted the job; why a run waits, never why it ends
	ImagePullBackOff  Reason = "ImagePullBackOff"  // the image cannot be had
	ConfigError       Reason = "ConfigError"       // the container cannot be created as asked
	VolumeError       Reason = "VolumeError"       // a volume cannot be mounted
	PullFailed        Reason = "PullFailed"        // data could not be brought into the pod
	NotReady          Reason = "NotReady"          // a role that others wait for was not ready in time
	EndedEarly        Reason = "EndedEarly"        // a role that others need ended before they did
	InitFailed        Reason = "InitFailed"        // the pod could not be prepared
	CommandNotFound   Reason = "CommandNotFound"   // the benchmark's command does not exist or cannot be executed
	StepFailed        Reason = "StepFailed"        // a step before or after the benchmark failed, or took too long
	AlwaysNotRun      Reason = "AlwaysNotRun"      // a step with when = "always" could not be run; what a status says, never why a run ends
	NonZeroExit       Reason = "NonZeroExit"       // the benchmark reported a failure
	NoResults         Reason = "NoResults"         // the benchmark ended well, and its output has no result for a parser
	ObjectFailed      Reason = "ObjectFailed"      // an object of the manifest says that it failed, and no pod shows why
	Signaled          Reason = "Signaled"          // the benchmark was ended by a signal
	OOMKilled         Reason = "OOMKilled"         // the benchmark ran out of memory (OOM)
	Evicted           Reason = "Evicted"           // the node needed the room
	Preempted         Reason = "Preempted"         // a pod of higher priority took its node, or the cluster's queue suspended the job
	NodeLost          Reason = "NodeLost"          // the node does not answer
	SidecarFailed     Reason = "SidecarFailed"     // a sidecar of the benchmark failed
	DeadlineExceeded  Reason = "DeadlineExceeded"  // limits.deadline passed
	PendingTooLong    Reason = "PendingTooLong"    // limits.pending_deadline passed
	JobDisappeared    Reason = "JobDisappeared"    // the job is gone, and the platform did not delete it
	JobDeleted        Reason = "JobDeleted"        // the job was deleted from outside the platform
	CanceledByUser    Reason = "CanceledByUser"
	PlatformStopped   Reason = "PlatformStopped" // the platform was stopped, and ended its runs
	VersionSkew       Reason = "VersionSkew"     // a service is older than the gateway, and cannot read its descriptor
	NoProgress        Reason = "NoProgress"      // the run has not changed for too long
	PoisonedEvent     Reason = "PoisonedEvent"   // an event of the run could not be read

	ScheduleMissed Reason = "ScheduleMissed" // of a schedule: a firing has no run, or its run did not end in time
)
