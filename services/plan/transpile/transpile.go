// Package transpile turns a descriptor into the Kubernetes objects of a run. It is
// pure: the same descriptor, data and settings always give the same objects.
//
// Each role of the run (package roles) becomes one Job. All pods have these containers:
//
//	bai-install  copies the platform's program into the pod
//	bai-mtu      sets the MTU of the pod's link to its network, if the descriptor gives one
//	bai-collect  ships samples, lines and artifacts, until the pod ends
//	step-…       the steps that run at the end of the pod, if there are any: sidecars, too
//	bai-pull     downloads the data, if there are any
//	bai-hosts    waits for the addresses of the run's pods, and writes the hosts file, if there are several
//	bai-wait     waits until another role is ready, if the role needs that
//	benchmark    the user's command, under `bai-pod exec`
//
// # Images' own entrypoints
//
// If the descriptor has no command, Images returns the images to ask registries about.
// With the answer in Input, the entrypoint runs in the same way as a command of a
// descriptor, in the image with the digest of the answer. Without an answer, the
// container has no command, and its log is its only output.
//
// # Data that pods share
//
// If a role has several pods, data with mount = "shared" are on a volume of a claim of
// the role. All of its pods mount the volume, the benchmark read-only. The pod with
// index 0 downloads the data, and the others wait.
package transpile

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/plan/inject"
	"github.com/benchmark-ai/bai/services/plan/refusal"
	"github.com/benchmark-ai/bai/services/plan/roles"
	"github.com/benchmark-ai/bai/services/plan/transpile/placement"
)

// Settings are the operator's settings for the objects of every run. The zero value
// works if pods need neither the platform's image nor brokers.
type Settings struct {
	Scope       string                `toml:"namespace"`    // Kubernetes namespace of the objects; empty means default
	Image       string                `toml:"image"`        // image with bai-pod; empty means bai-pod:latest
	Brokers     []string              `toml:"brokers"`      // addresses of the Kafka brokers for pods
	Access      pod.Access            `toml:"-"`            // to the brokers; it is written into Secrets only
	ObjectStore string                `toml:"object_store"` // URL of the object store for pods (file, http, https); {run} is the run
	Zones       map[string]string     `toml:"zones"`        // ID of a zone → its name
	Instances   descriptors.Instances `toml:"instances"`    // more instance types, one per line: name and GPUs, as "z9.huge 3"
	Deadline    time.Duration         `toml:"deadline"`     // deadline of runs without one; zero means none
	Keep        time.Duration         `toml:"keep"`         // how long Kubernetes keeps a finished Job; zero means a day
	Grace       time.Duration         `toml:"grace"`        // time between SIGTERM and SIGKILL in a pod; zero means 5 minutes
	// ShippingGrace is how long a pod stays after its benchmark while its collector cannot ship
	// everything, because brokers are down; zero means an hour, and a value below grace counts as grace.
	ShippingGrace time.Duration `toml:"owed"`
	NoLimits      bool          `toml:"no_limits"` // the cluster enforces no CPU and memory limits: pods only have requests
	OneMachine    bool          `toml:"-"`         // it is the local cluster, which has no zones: those of descriptors are not read
	NoRegistry    bool          `toml:"-"`         // no registry is asked for the entrypoint of an image
	Owner         bool          `toml:"-"`         // the first object is a ConfigMap that can own all others
	MaxLog        int64         `toml:"max_log"`   // stored bytes of output of a run without a limit; zero means no limit
	Reserve       int64         `toml:"-"`         // bytes of a pod's disk that its output leaves free; zero means none
	Gateway       string        `toml:"gateway"`   // URL of the gateway for pods (http, https); empty means that no artifacts are stored

	// exclusive: no other run on the nodes; spread: elsewhere if possible; pack: beside others if possible; anywhere; empty means spread
	Placement  string   `toml:"placement"`
	Placements []string `toml:"placements"` // placements that descriptors may name in place of this one; empty means any
	// Pod Security level of the pods' namespace: privileged, where the rights of allow are all that pods have; baseline; or restricted;
	// empty means baseline
	Security string `toml:"security"`
	// of all images: Always, IfNotPresent or Never; empty means that of the descriptor, else Kubernetes' default
	PullPolicy    string   `toml:"pull_policy"`
	PullSecrets   []string `toml:"pull_secrets"`   // pull secrets, besides that of the descriptor
	PriorityClass string   `toml:"priority_class"` // priority class of the pods of runs that name none; empty means none
	// scheduler of all pods; empty means the cluster's own; volcano also gets the gangs: deploy/kubernetes/volcano has the rights for that
	Scheduler string `toml:"scheduler"`
	// queue of runs that name none: of volcano if that is the scheduler, otherwise of Kueue; empty means none
	Queue string `toml:"queue"`

	// labels that the node of every pod must have; a descriptor may name no other value of one
	NodeSelector map[string]string `toml:"node_selector"`
	// taints that the node of every pod may have, besides those of the descriptor
	Tolerations []descriptors.Toleration `toml:"tolerations"`

	// objects that descriptors may name, by namespace; "*" is any; none without an entry
	Allow map[string]descriptors.Allowlist `toml:"allow"`

	AnyManifests bool `toml:"-"` // nothing is known of the kinds of manifests: they may have any

	// kinds that manifests may have beside Job, ConfigMap and Service, as PyTorchJob.v1.kubeflow.org; kubernetes.kinds has to name them too
	Manifests map[string]inject.Kind `toml:"manifests"`

	Shared Shared `toml:"shared"` // data that all pods of a role have in common
	Unpack Unpack `toml:"unpack"` // what archives may hold that pods unpack
	// MPIOperator says that the cluster has Kubeflow's MPI operator: a run of
	// strategy mpi is an MPIJob v2beta1, which kubernetes.kinds has to name too.
	MPIOperator bool `toml:"mpi_operator"`

	Domain string        `toml:"domain"` // domain of names in the cluster; empty means cluster.local
	Ready  time.Duration `toml:"ready"`  // time for a server or the workers to become ready; zero means 30 min
}

// Unpack limits the content of an archive that a pod unpacks.
type Unpack struct {
	MaxFiles int   `toml:"max_files"` // maximum number of files and folders; zero means 1,000,000
	MaxBytes int64 `toml:"max_bytes"` // zero means 1 GiB and 200 times the archive's size, at most 1 TiB unless the archive is larger
	Reserve  int64 `toml:"reserve"`   // bytes of the volume that stay free; zero means 256 MiB, less of a volume below 5 GiB
}

// Validate names every setting at fault, below the table called name.
func (s Settings) Validate(name string) error {
	var errs []error
	for _, key := range []string{"deadline", "keep", "grace", "owed", "ready"} {
		if d := map[string]time.Duration{
			"deadline": s.Deadline, "keep": s.Keep, "grace": s.Grace, "owed": s.ShippingGrace,
			"ready": s.Ready,
		}[key]; d < 0 {
			errs = append(errs, fmt.Errorf("%s.%s: must not be negative", name, key))
		}
	}
	if err := s.Instances.Check(); err != nil {
		errs = append(errs, fmt.Errorf("%s.instances: %w", name, err))
	}
	if err := descriptors.Allowlists(s.Allow).Check(); err != nil {
		errs = append(errs, fmt.Errorf("%s.allow: %w", name, err))
	}
	errs = append(errs, s.checkAddresses(name), s.checkRights(name), inject.CheckKinds(name, s.Manifests))
	errs = append(errs, placement.Check(name, s.NodeSelector, s.Tolerations))
	for i, p := range s.Placements {
		if !slices.Contains(placement.All(), p) {
			errs = append(errs, fmt.Errorf("%s.placements[%d]: %q: use %s", name, i, p, strings.Join(placement.All(), ", ")))
		}
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
		{"placement", s.Placement, slices.Concat([]string{""}, placement.All())},
		{"security", s.Security, []string{"", Privileged, Baseline, Restricted}},
		{"pull_policy", s.PullPolicy, []string{"", "Always", "IfNotPresent", "Never"}},
		{"shared.access", s.Shared.Access, accessModes()},
	} {
		if !slices.Contains(choice.of, choice.value) {
			errs = append(errs, fmt.Errorf("%s.%s: %q: use %s", name, choice.key, choice.value, strings.Join(choice.of[1:], ", ")))
		}
	}
	return errors.Join(errs...)
}

// checkAddresses names the addresses that no program of a pod could read.
func (s Settings) checkAddresses(name string) error {
	var errs []error
	for _, a := range []struct{ key, value, schemes, example string }{
		{"object_store", s.ObjectStore, "file, http or https", "https://bai.example/v1/runs/{run}"},
		{"gateway", s.Gateway, "http or https", "https://bai.example"},
	} {
		u, err := url.Parse(a.value)
		switch {
		case a.value == "":
		case err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https"):
		case err == nil && u.Host == "" && u.Scheme == "file" && path.IsAbs(u.Path) && a.key == "object_store":
		default:
			errs = append(errs, fmt.Errorf("%s.%s: %q is no URL that pods read: use %s, as %s", name, a.key, a.value, a.schemes, a.example))
		}
	}
	return errors.Join(errs...)
}

// Values of Settings.Security.
const (
	Privileged = "privileged"
	Baseline   = "baseline"
	Restricted = "restricted"
)

// DefaultImage is the image with bai-pod if the settings name none.
const DefaultImage = "bai-pod:latest"

// Input is the input for one attempt of a run.
type Input struct {
	Run        event.Fetched
	Descriptor *descriptors.Descriptor // descriptor of Run
	Keys       roles.Keys              // ssh keys of an MPI run; Objects does not need them
	Images     []cluster.Image         // registry answers for Images; empty if unknown
}

// Workload has the objects of one attempt of a run.
type Workload struct {
	Scope string // Kubernetes namespace
	Job   string // name of the Job whose end ends the run
	Pods  int    // number of pods of all roles; several pods are a gang and must be scheduled together
	// Objects must be created in this order. They have no secret values; the Secrets
	// among them are empty (see Secrets).
	Objects []cluster.Object

	Retries         int           // number of attempts that may follow this one
	PendingDeadline time.Duration // zero means the watcher's setting
	Keep            descriptors.Keep
}

// jobName returns the name of an attempt's objects.
func jobName(run string, attempt int) string { return fmt.Sprintf("bai-%s-%d", run, attempt) }

// Objects returns the workload of one attempt of a run. The only error is
// *refusal.Error.
func Objects(in Input, s Settings) (Workload, error) {
	builders, err := buildersOf(in, s)
	if err != nil {
		return Workload{}, err
	}
	limits := in.Descriptor.Limits
	p := Workload{
		Scope: s.scope(), Retries: max(0, limits.Retries+1-in.Run.Attempt),
		PendingDeadline: limits.PendingDeadline, Keep: limits.Keep,
	}
	if s.Owner {
		p.Objects = append(p.Objects, builders[len(builders)-1].roleConfigMap())
	}
	for _, b := range builders {
		p.Objects = append(p.Objects, b.prerequisites()...)
		p.Pods += b.role.Replicas
	}
	own, pods, err := ofManifest(builders)
	if err != nil {
		return Workload{}, err
	}
	p.Pods = max(p.Pods, pods)
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
	if own == nil {
		own = jobs(builders)
	}
	p.Objects = append(p.Objects, own...)
	p.Job = jobName(in.Run.Run, in.Run.Attempt)
	return p, nil
}

// Secrets returns the Secrets of an attempt with their data, including the token with
// which the pods act for the run. They replace the empty Secrets in Workload.Objects,
// and are never stored.
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
		if b.role.OwnsKeys {
			secrets = append(secrets, b.keysSecret(in.Keys))
		}
	}
	return secrets, nil
}

// buildersOf returns the builders of a run's objects, one for each role.
func buildersOf(in Input, s Settings) ([]builder, error) {
	names := roles.Names{
		Attempt: jobName(in.Run.Run, in.Run.Attempt), Scope: s.scope(),
		Operator: s.MPIOperator && in.Descriptor.Hardware.Strategy == descriptors.MPI,
	}
	all, err := roles.Of(roles.Input{
		Descriptor: in.Descriptor, Data: in.Run.Data, Images: in.Images, Names: names, Ready: s.Ready, Instances: s.Instances,
	})
	if err != nil {
		return nil, err
	}
	if err := checkVolumes(in, s); err != nil {
		return nil, err
	}
	if err := s.checkPlacement(in.Descriptor.Hardware); err != nil {
		return nil, err
	}
	builders := make([]builder, 0, len(all))
	for _, r := range all {
		zone, err := zoneOf(r.Hardware, s)
		if err != nil {
			return nil, err
		}
		if _, err := s.selector(r.Hardware, zone); err != nil {
			return nil, err
		}
		if err := s.checkRole(r); err != nil {
			return nil, err
		}
		if err := checkParsers(in, r, s); err != nil {
			return nil, err
		}
		builders = append(builders, builder{in: in, settings: s, role: r, names: names, zone: zone})
	}
	return builders, nil
}

// checkRole refuses a role whose container the settings do not allow.
func (s Settings) checkRole(r roles.Role) error {
	if err := s.checkPullPolicy(r.Env); err != nil {
		return err
	}
	if r.Env.Privileged && s.Security == Restricted {
		return refusal.Descriptor("env.privileged is true, and this platform's pods keep to the level restricted of Pod Security")
	}
	return s.checkNetwork(r.PodNetwork)
}

// checkVolumes refuses volumes that the Pod Security level restricted does not allow.
func checkVolumes(in Input, s Settings) error {
	i := slices.IndexFunc(in.Descriptor.Volumes, func(v descriptors.Volume) bool { return v.NFS != nil })
	if i < 0 || s.Security != Restricted {
		return nil
	}
	return refusal.Descriptor("volumes[%d] is a folder of an NFS server, and this platform's pods keep to the level restricted of Pod Security, which has none: name a claim of that folder (volumes.claim)", i)
}

// zoneOf returns the zone of the hardware, or "" for any zone.
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
	return "", refusal.Descriptor("hardware.aws_zone_id is %q, a zone that this platform does not know: %s; hardware.availability_zone takes the name of any", h.AWSZoneID, suffix)
}

// RetentionPeriod returns how long Kubernetes keeps a finished Job that the platform
// has not deleted.
func (s Settings) RetentionPeriod() time.Duration { return cmp.Or(s.Keep, 24*time.Hour) }

func (s Settings) scope() string {
	if s.Scope == "" {
		return "default"
	}
	return s.Scope
}

// job returns the Job of a role. It never retries a pod, since the platform makes the
// attempts.
func (b builder) job() *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: b.meta()}
	j.APIVersion, j.Kind = "batch/v1", "Job"
	j.Spec = batchv1.JobSpec{
		BackoffLimit:            new(int32),
		TTLSecondsAfterFinished: seconds32(max(b.settings.RetentionPeriod(), b.in.Descriptor.Limits.Keep.For), 0),
		ActiveDeadlineSeconds:   b.deadline(),
		Template:                corev1.PodTemplateSpec{ObjectMeta: b.podMeta(), Spec: b.podSpec()},
	}
	if b.role.Indexed {
		n, mode := int32(b.role.Replicas), batchv1.IndexedCompletion //nolint:gosec // a descriptor has at most some thousands
		j.Spec.Parallelism, j.Spec.Completions, j.Spec.CompletionMode = &n, &n, &mode
	}
	b.setKueueQueue(j)
	return j
}

// deadline returns the deadline of a Job. The Jobs whose end the run waits for have the
// run's deadline. The others end with the run and have a longer deadline, so that theirs
// never ends the run.
func (b builder) deadline() *int64 {
	d := cmp.Or(b.in.Descriptor.Limits.Deadline, b.settings.Deadline)
	if d == 0 {
		return nil
	}
	if !b.role.EndsRun && b.role.End != cluster.EndAwaited {
		d += b.podGrace() + 2*time.Minute
	}
	s := max(1, int64(d.Round(time.Second)/time.Second))
	return &s
}

// seconds32 returns d in seconds, or fallback if d is zero.
func seconds32(d, fallback time.Duration) *int32 {
	if d == 0 {
		d = fallback
	}
	s := int32(min(max(1, d/time.Second), 1<<30)) //nolint:gosec // bounded
	return &s
}
