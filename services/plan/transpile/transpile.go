// Package transpile turns a descriptor into the Kubernetes objects that carry a
// run out. It is pure: the same descriptor, data and settings always give the
// same objects.
//
// A strategy is a list of roles; each role becomes one Job. A role says what is
// special about its pods, and the rest, what surrounds every benchmark, is
// written once:
//
//	bai-install  brings the one program into the pod
//	bai-collect  ships samples, lines and artifacts, for as long as the pod lives
//	bai-pull     brings the data, where there are any
//	bai-wait     waits until another role is ready, where the role needs one
//	benchmark    the user's command, under `bai-pod exec`
//
// # Strategy inference
//
// The roles are server and client. The server has a Service, and the client,
// whose end ends the run, finds it as INFERENCE_SERVER_HOST and
// INFERENCE_SERVER_PORT, and further ports as INFERENCE_SERVER_PORT_1 and so on.
// The client begins once the server's probe, or without one each of its ports,
// answers.
//
// # Strategy mpi
//
// The roles are worker, an indexed Job, and launcher, whose end ends the run; a
// headless Service gives each of their pods a name. Workers run the image's sshd until the run is over; the
// launcher begins once all of them answer. A command that is neither a script nor
// names mpirun itself is run under mpirun, one process for each slot; a script is
// run once, on the launcher, and calls mpirun where it wants to. Environment
// variables tell the mpirun of Open MPI (4 and 5), MPICH and Intel MPI which
// hosts there are and how to reach them, so that it needs no options. Where
// settings say that Kubeflow's MPI operator is there, one MPIJob takes the place of
// the two Jobs and the Service; its pods are the same.
//
// # Images' own entrypoints
//
// Where the descriptor names no command, Images says which images' registries are to
// be asked. With the answer in Input the entrypoint is run as a descriptor's own
// command is, of the very image that the answer is about; without one the
// container has no command, and its log is all that there is of its output.
//
// # Data that pods share
//
// Where a role has several pods, data with mount = "shared" lie on a volume that
// a claim of the role's makes, and that all of its pods mount, the benchmark for
// reading: the pod with index 0 brings them there, the others wait.
//
// # Files of the user's
//
// The data of a run are those of the descriptor's sources, then the server's
// models, in the order of the descriptor. Sources lie in the pods of the role that
// they name, else in those that measure: workers, client or benchmark. Code that was sent along comes after
// them, with the path that Scripts gives it, whether or not the descriptor asks
// for it (ml.script). It is unpacked in each pod that runs what the user measures,
// but not in a server's: there BAI_SCRIPTS_PATH names its folder, in the
// environment and, as $(BAI_SCRIPTS_PATH) or ${BAI_SCRIPTS_PATH}, in the command.
package transpile

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// Settings are what an operator decides about the objects of every run. The
// zero value works where pods need neither an image of ours nor brokers.
type Settings struct {
	Scope         string                `toml:"namespace"`    // Kubernetes namespace of the objects; empty means default
	Image         string                `toml:"image"`        // image with bai-pod; empty means bai-pod:latest
	Brokers       []string              `toml:"brokers"`      // of Kafka, as pods reach them
	Access        pod.Access            `toml:"-"`            // to the brokers; it is written into Secrets only
	ObjectStore   string                `toml:"object_store"` // its URL, as pods reach it
	Zones         map[string]string     `toml:"zones"`        // ID of a zone → its name
	Instances     descriptors.Instances `toml:"instances"`    // kinds of machines beside those that are known, a line each: its name and its GPUs, as "z9.huge 3"
	Deadline      time.Duration         `toml:"deadline"`     // of runs that give none; zero means none
	Keep          time.Duration         `toml:"keep"`         // how long Kubernetes keeps an ended Job that nobody deleted; zero means a day
	Grace         time.Duration         `toml:"grace"`        // between SIGTERM and SIGKILL to what runs in a pod; zero means 5 minutes
	ShippingGrace time.Duration         `toml:"owed"`         // how long a pod stays after its benchmark while its collector cannot ship all that it has, because brokers are away; zero means an hour, and less than grace is grace
	NoLimits      bool                  `toml:"no_limits"`    // the cluster enforces no limits of CPU and memory: what a pod is given is asked for only
	OneMachine    bool                  `toml:"-"`            // it is the local cluster, which has no zones: those of descriptors are not read
	NoRegistry    bool                  `toml:"-"`            // no registry is asked for the entrypoint of an image
	Owner         bool                  `toml:"-"`            // the first object is a ConfigMap that can own all others; the executor knows where that is of use
	MaxLog        int64                 `toml:"max_log"`      // bytes of output that are kept of runs that give no limit; zero means no limit
	Reserve       int64                 `toml:"-"`            // bytes of the disk under a pod's volume that stay free of its output; zero means none
	Gateway       string                `toml:"gateway"`      // URL of the gateway, as pods reach it; empty means that no artifacts are kept

	Placement     string   `toml:"placement"`      // exclusive: no other run on a run's nodes; spread: elsewhere if there is room; anywhere; empty means spread
	Security      string   `toml:"security"`       // Pod Security level that pods keep to: baseline, or restricted; empty means baseline
	PullPolicy    string   `toml:"pull_policy"`    // of all images: Always, IfNotPresent or Never; empty is Kubernetes' choice
	PullSecrets   []string `toml:"pull_secrets"`   // with which images are pulled, beside that of the descriptor
	PriorityClass string   `toml:"priority_class"` // of all pods; empty means none
	Scheduler     string   `toml:"scheduler"`      // of all pods; empty means the cluster's own; volcano is told of gangs
	Queue         string   `toml:"queue"`          // of volcano where that is the scheduler, else of Kueue; empty means none

	Allow map[string]descriptors.Allowlist `toml:"allow"` // objects that descriptors may name, by their namespace; "*" is any. Without an entry they may name none

	Shared Shared `toml:"shared"` // data that all pods of a role have in common
	Unpack Unpack `toml:"unpack"` // what archives may hold that pods unpack
	// MPIOperator says that the cluster has Kubeflow's MPI operator: a run of
	// strategy mpi is an MPIJob v2beta1, which kubernetes.kinds has to name too.
	MPIOperator bool `toml:"mpi_operator"`

	Domain string        `toml:"domain"` // of the cluster's names; empty means cluster.local
	Ready  time.Duration `toml:"ready"`  // how long a server or the workers may take to be ready; zero means 30 min
}

// Unpack is what one archive may hold that a pod unpacks.
type Unpack struct {
	MaxFiles int   `toml:"max_files"` // and folders; zero means 1,000,000
	MaxBytes int64 `toml:"max_bytes"` // zero means 1 GiB and 200 times the archive's size, 1 TiB at most where the archive is not larger itself
	Reserve  int64 `toml:"reserve"`   // bytes of the volume that stay free; zero means 256 MiB, less of a volume below 5 GiB
}

// Validate names every setting at fault, below the table called name.
func (s Settings) Validate(name string) error {
	var errs []error
	for _, key := range []string{"deadline", "keep", "grace", "owed", "ready"} {
		if d := map[string]time.Duration{"deadline": s.Deadline, "keep": s.Keep, "grace": s.Grace, "owed": s.ShippingGrace, "ready": s.Ready}[key]; d < 0 {
			errs = append(errs, fmt.Errorf("%s.%s: must not be negative", name, key))
		}
	}
	if err := s.Instances.Check(); err != nil {
		errs = append(errs, fmt.Errorf("%s.instances: %w", name, err))
	}
	if err := descriptors.Allowlists(s.Allow).Check(); err != nil {
		errs = append(errs, fmt.Errorf("%s.allow: %w", name, err))
	}
	if s.MaxLog < 0 {
		errs = append(errs, fmt.Errorf("%s.max_log: must not be negative", name))
	}
	if u := s.Unpack; u.MaxFiles < 0 || u.MaxBytes < 0 || u.Reserve < 0 {
		errs = append(errs, fmt.Errorf("%s.unpack: max_files, max_bytes and reserve must not be negative", name))
	}
	for _, choice := range []struct {
		key, value string
		of         []string
	}{
		{"placement", s.Placement, []string{"", Exclusive, Spread, Anywhere}},
		{"security", s.Security, []string{"", Baseline, Restricted}},
		{"pull_policy", s.PullPolicy, []string{"", "Always", "IfNotPresent", "Never"}},
		{"shared.access", s.Shared.Access, accessModes()},
	} {
		if !slices.Contains(choice.of, choice.value) {
			errs = append(errs, fmt.Errorf("%s.%s: %q: use %s", name, choice.key, choice.value, strings.Join(choice.of[1:], ", ")))
		}
	}
	return errors.Join(errs...)
}

// Placements.
const (
	Exclusive = "exclusive"
	Spread    = "spread"
	Anywhere  = "anywhere"
)

// Levels of Pod Security.
const (
	Baseline   = "baseline"
	Restricted = "restricted"
)

// DefaultImage is the image with bai-pod if settings name none.
const DefaultImage = "bai-pod:latest"

// Input is what one attempt of a run is made from.
type Input struct {
	Run        event.Fetched
	Descriptor *descriptors.Descriptor // of Run
	Keys       Keys                    // of a run whose pods speak ssh; Objects needs none
	Images     []cluster.Image         // answers of registries to what Images asks; none where they are not known
}

// Workload is one attempt of a run as objects.
type Workload struct {
	Scope string // Kubernetes namespace
	Job   string // name of the Job whose end ends the run
	Pods  int    // of all roles; more than one are a gang, to be placed together
	// Objects are to be created in this order. They hold no secret value: the
	// Secrets among them are empty, see Secrets.
	Objects []cluster.Object

	Retries         int           // attempts that may follow this one
	PendingDeadline time.Duration // zero: whatever the watcher's settings say
	Keep            descriptors.Keep
}

// A RefusedError says why a descriptor that is well formed cannot be run here.
type RefusedError struct {
	Reason  event.Reason
	Message string // for the user
}

// Error implements error.
func (e *RefusedError) Error() string { return string(e.Reason) + ": " + e.Message }

// jobName is the name of an attempt's objects.
func jobName(run string, attempt int) string { return fmt.Sprintf("bai-%s-%d", run, attempt) }

// Objects returns the plan for one attempt of a run. Its only error is
// *RefusedError.
func Objects(in Input, s Settings) (Workload, error) {
	builders, err := buildersOf(in, s)
	if err != nil {
		return Workload{}, err
	}
	limits := in.Descriptor.Limits
	p := Workload{Scope: s.scope(), Retries: max(0, limits.Retries+1-in.Run.Attempt), PendingDeadline: limits.PendingDeadline, Keep: limits.Keep}
	if s.Owner {
		p.Objects = append(p.Objects, builders[len(builders)-1].roleConfigMap())
	}
	for _, b := range builders {
		p.Objects = append(p.Objects, b.prerequisites()...)
		p.Pods += b.role.replicas
	}
	if n := isolationPolicy(builders, p.Pods); n != nil {
		p.Objects = append(p.Objects, n)
	}
	made, err := claims(builders)
	if err != nil {
		return Workload{}, err
	}
	p.Objects = append(p.Objects, made...)
	if g := podGroup(builders, p.Pods); g != nil {
		p.Objects = append(p.Objects, g)
	}
	p.Objects = append(p.Objects, jobs(builders)...)
	p.Job = jobName(in.Run.Run, in.Run.Attempt)
	return p, nil
}

// Secrets returns the Secrets of an attempt whole, with the token that lets its
// pods speak for the run. They belong in place of those of Plan.Objects, and
// are never stored.
func Secrets(in Input, s Settings, token string) ([]*corev1.Secret, error) {
	builders, err := buildersOf(in, s)
	if err != nil {
		return nil, err
	}
	secrets := make([]*corev1.Secret, 0, len(builders)+1)
	for _, b := range builders {
		secret, err := b.filledSecret(token)
		if err != nil {
			return nil, err
		}
		secrets = append(secrets, secret)
		if b.role.ownsKeys {
			secrets = append(secrets, b.keysSecret(in.Keys))
		}
	}
	return secrets, nil
}

// buildersOf returns what makes the objects of a run, one for each role.
func buildersOf(in Input, s Settings) ([]builder, error) {
	roles, err := rolesOf(in, s)
	if err != nil {
		return nil, err
	}
	if err := checkVolumes(in, s); err != nil {
		return nil, err
	}
	builders, pods := make([]builder, 0, len(roles)), 0
	for _, r := range roles {
		pods += r.replicas
	}
	for _, r := range roles {
		r.otherPods = pods - 1
		zone, err := zoneOf(r.hardware, s)
		if err != nil {
			return nil, err
		}
		if r.env.Privileged && s.Security == Restricted {
			return nil, &RefusedError{
				Reason:  event.InvalidDescriptor,
				Message: "env.privileged is true, and this platform's pods keep to the level restricted of Pod Security",
			}
		}
		builders = append(builders, builder{in: in, settings: s, role: r, zone: zone})
	}
	return builders, nil
}

// checkVolumes refuses volumes that pods of the level restricted of Pod Security may
// not have.
func checkVolumes(in Input, s Settings) error {
	i := slices.IndexFunc(in.Descriptor.Volumes, func(v descriptors.Volume) bool { return v.NFS != nil })
	if i < 0 || s.Security != Restricted {
		return nil
	}
	return &RefusedError{
		Reason:  event.InvalidDescriptor,
		Message: fmt.Sprintf("volumes[%d] is a folder of an NFS server, and this platform's pods keep to the level restricted of Pod Security, which has none: name a claim of that folder (volumes.claim)", i),
	}
}

// zoneOf returns the zone that the hardware is to be in, empty for any.
func zoneOf(h descriptors.Hardware, s Settings) (string, error) {
	if s.OneMachine {
		return "", nil
	}
	if h.AvailabilityZone != "" || h.AWSZoneID == "" {
		return h.AvailabilityZone, nil
	}
	if zone, ok := s.Zones[h.AWSZoneID]; ok {
		return zone, nil
	}
	suffix := "it knows none"
	if len(s.Zones) > 0 {
		suffix = "it knows " + strings.Join(slices.Sorted(maps.Keys(s.Zones)), ", ")
	}
	return "", &RefusedError{
		Reason:  event.InvalidDescriptor,
		Message: fmt.Sprintf("hardware.aws_zone_id is %q, a zone that this platform does not know: %s; hardware.availability_zone takes the name of any", h.AWSZoneID, suffix),
	}
}

// RetentionPeriod is how long Kubernetes keeps an ended Job that nobody deleted.
func (s Settings) RetentionPeriod() time.Duration { return cmp.Or(s.Keep, 24*time.Hour) }

func (s Settings) scope() string {
	if s.Scope == "" {
		return "default"
	}
	return s.Scope
}

// job returns the Job of a role. It never tries a pod again: attempts are ours.
func (b builder) job() *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: b.meta()}
	j.APIVersion, j.Kind = "batch/v1", "Job"
	j.Spec = batchv1.JobSpec{
		BackoffLimit:            new(int32),
		TTLSecondsAfterFinished: seconds32(max(b.settings.RetentionPeriod(), b.in.Descriptor.Limits.Keep.For), 0),
		ActiveDeadlineSeconds:   b.deadline(),
		Template:                corev1.PodTemplateSpec{ObjectMeta: b.podMeta(), Spec: b.podSpec()},
	}
	if b.role.indexed {
		n, mode := int32(b.role.replicas), batchv1.IndexedCompletion //nolint:gosec // a descriptor has at most some thousands
		j.Spec.Parallelism, j.Spec.Completions, j.Spec.CompletionMode = &n, &n, &mode
	}
	b.setKueueQueue(j)
	return j
}

// deadline is that of the run, for the Job whose end ends it. Others, which end
// with it, are given longer, so that theirs is never what ends the run.
func (b builder) deadline() *int64 {
	d := cmp.Or(b.in.Descriptor.Limits.Deadline, b.settings.Deadline)
	if d == 0 {
		return nil
	}
	if !b.role.endsRun {
		d += b.podGrace() + 2*time.Minute
	}
	s := max(1, int64(d.Round(time.Second)/time.Second))
	return &s
}

// seconds32 returns d in seconds, or fallback where it is zero.
func seconds32(d, fallback time.Duration) *int32 {
	if d == 0 {
		d = fallback
	}
	s := int32(min(max(1, d/time.Second), 1<<30)) //nolint:gosec // bounded
	return &s
}
