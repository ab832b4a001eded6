// Package transpile turns a descriptor into the Kubernetes objects that carry a
// run out. It is pure: the same descriptor, data and settings always give the
// same objects.
//
// A strategy is a list of roles; each role becomes one Job. A role says what is
// special about its pods, and the rest, what surrounds every benchmark, is
// written once:
//
//	bai-install  brings the one program into the pod
//	bai-collect  ships samples and lines, for as long as the pod lives
//	bai-pull     brings the data, where there are any
//	benchmark    the user's command, under `bai-pod exec`
package transpile

import (
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
)

// Settings are what an operator decides about the objects of every run. The
// zero value works where pods need neither an image of ours nor brokers.
type Settings struct {
	Scope       string                `toml:"namespace"`    // Kubernetes namespace of the objects; empty means default
	Image       string                `toml:"image"`        // image with bai-pod; empty means DefaultImage
	Brokers     []string              `toml:"brokers"`      // of Kafka, as pods reach them
	ObjectStore string                `toml:"object_store"` // its URL, as pods reach it
	Zones       map[string]string     `toml:"zones"`        // ID of a zone → its name
	Instances   descriptors.Instances `toml:"instances"`    // kinds of machines beside those that are known
	Deadline    time.Duration         `toml:"deadline"`     // of runs that give none; zero means none
	Keep        time.Duration         `toml:"keep"`         // how long Kubernetes keeps an ended Job that nobody deleted; zero means a day
	Grace       time.Duration         `toml:"grace"`        // between SIGTERM and SIGKILL to a pod; zero means a minute
	NoLimits    bool                  `toml:"no_limits"`    // the cluster enforces no limits of CPU and memory: what a pod is given is asked for only
	MaxLog      int64                 `toml:"max_log"`      // bytes of output that are kept of runs that give no limit; zero means no limit
}

// Validate names every setting at fault, below the table called name.
func (s Settings) Validate(name string) error {
	var errs []error
	for _, key := range []string{"deadline", "keep", "grace"} {
		if d := map[string]time.Duration{"deadline": s.Deadline, "keep": s.Keep, "grace": s.Grace}[key]; d < 0 {
			errs = append(errs, fmt.Errorf("%s.%s: must not be negative", name, key))
		}
	}
	if err := s.Instances.Check(); err != nil {
		errs = append(errs, fmt.Errorf("%s.instances: %w", name, err))
	}
	if s.MaxLog < 0 {
		errs = append(errs, fmt.Errorf("%s.max_log: must not be negative", name))
	}
	return errors.Join(errs...)
}

// DefaultImage is the image with bai-pod if settings name none.
const DefaultImage = "bai-pod:latest"

// Input is what one attempt of a run is made from.
type Input struct {
	Run        event.Fetched
	Descriptor *descriptors.Descriptor // of Run
}

// Plan is one attempt of a run as objects.
type Plan struct {
	Scope string // Kubernetes namespace
	Job   string // name of the Job whose end ends the run
	Pods  int    // of all roles; more than one are a gang, to be placed together
	// Objects are to be created in this order. They hold no secret value: the
	// Secrets among them are empty, see Secrets.
	Objects []cluster.Object

	Retries         int           // attempts that may follow this one
	PendingDeadline time.Duration // zero: whatever the watcher's settings say
}

// A RefusedError says why a descriptor that is well formed cannot be run here.
type RefusedError struct {
	Reason  event.Reason
	Message string // for the user
}

// Error implements error.
func (e *RefusedError) Error() string { return string(e.Reason) + ": " + e.Message }

// Name is the name of an attempt's objects.
func Name(run string, attempt int) string { return fmt.Sprintf("bai-%s-%d", run, attempt) }

// Objects returns the plan for one attempt of a run. Its only error is
// *RefusedError.
func Objects(in Input, s Settings) (Plan, error) {
	roles, err := rolesOf(in)
	if err != nil {
		return Plan{}, err
	}
	zone, err := zoneOf(in.Descriptor.Hardware, s)
	if err != nil {
		return Plan{}, err
	}
	limits := in.Descriptor.Limits
	p := Plan{Scope: s.scope(), Retries: max(0, limits.Retries+1-in.Run.Attempt), PendingDeadline: limits.PendingDeadline}
	for _, r := range roles {
		b := builder{in: in, settings: s, role: r, zone: zone}
		p.Objects = append(p.Objects, b.supplies()...)
		p.Pods += r.replicas
	}
	for _, r := range roles {
		b := builder{in: in, settings: s, role: r, zone: zone}
		p.Objects = append(p.Objects, b.job())
		if r.ends {
			p.Job = b.name()
		}
	}
	return p, nil
}

// Secrets returns the Secrets of an attempt whole, with the token that lets its
// pods speak for the run. They belong in place of those of Plan.Objects, and
// are never stored.
func Secrets(in Input, s Settings, token string) ([]*corev1.Secret, error) {
	roles, err := rolesOf(in)
	if err != nil {
		return nil, err
	}
	secrets := make([]*corev1.Secret, 0, len(roles))
	for _, r := range roles {
		b := builder{in: in, settings: s, role: r}
		secret, err := b.filled(token)
		if err != nil {
			return nil, err
		}
		secrets = append(secrets, secret)
	}
	return secrets, nil
}

// Strategies returns the strategies that can be transpiled, by name.
func Strategies() []string {
	return []string{string(descriptors.SingleNode)}
}

// role is one kind of pod of a run: what it runs, how often, and what its end
// means.
type role struct {
	name     string // event.Source.Role of its samples and lines
	replicas int
	ends     bool // its end, good or bad, ends the run
	env      descriptors.Env
	hardware descriptors.Hardware
	command  []string // run under bai-pod; nil means the image's entrypoint
	args     []string // of the image's entrypoint
	script   string   // text of the script that command runs; empty for none
	data     []event.Data
	metrics  []descriptors.Metric
}

// rolesOf returns what pods a run has, by its strategy.
func rolesOf(in Input) ([]role, error) {
	switch d := in.Descriptor; d.Hardware.Strategy {
	case descriptors.SingleNode:
		r, err := benchmark(in)
		return []role{r}, err
	case descriptors.MPI, descriptors.Inference:
	}
	return nil, &RefusedError{
		Reason: event.StrategyUnknown,
		Message: fmt.Sprintf("hardware.strategy is %q, which this platform does not launch: it launches %s",
			in.Descriptor.Hardware.Strategy, strings.Join(Strategies(), ", ")),
	}
}

// benchmark returns the role of the pod that is measured.
func benchmark(in Input) (role, error) {
	d := in.Descriptor
	argv, args, err := d.Command()
	if err != nil {
		return role{}, &RefusedError{Reason: event.InvalidDescriptor, Message: fmt.Sprintf("the command cannot be read: %v", err)}
	}
	r := role{
		name: cluster.ContainerBenchmark, replicas: 1, ends: true,
		env: d.Env, hardware: d.Hardware, command: argv, args: args, data: in.Run.Data,
	}
	if _, text, ok := d.Script(); ok {
		r.command, r.args, r.script = slices.Concat(argv, []string{scriptPath}, args), nil, text
	}
	if d.Output != nil {
		r.metrics = d.Output.Metrics
	}
	return r, nil
}

// zoneOf returns the zone that the hardware is to be in, empty for any.
func zoneOf(h descriptors.Hardware, s Settings) (string, error) {
	if h.AvailabilityZone != "" || h.AWSZoneID == "" {
		return h.AvailabilityZone, nil
	}
	if zone, ok := s.Zones[h.AWSZoneID]; ok {
		return zone, nil
	}
	known := "it knows none"
	if len(s.Zones) > 0 {
		known = "it knows " + strings.Join(slices.Sorted(maps.Keys(s.Zones)), ", ")
	}
	return "", &RefusedError{
		Reason:  event.InvalidDescriptor,
		Message: fmt.Sprintf("hardware.aws_zone_id is %q, a zone that this platform does not know: %s; hardware.availability_zone takes the name of any", h.AWSZoneID, known),
	}
}

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
		TTLSecondsAfterFinished: seconds32(b.settings.Keep, 24*time.Hour),
		ActiveDeadlineSeconds:   b.deadline(),
		Template:                corev1.PodTemplateSpec{ObjectMeta: b.podMeta(), Spec: b.pod()},
	}
	return j
}

func (b builder) deadline() *int64 {
	d := b.in.Descriptor.Limits.Deadline
	if d == 0 {
		d = b.settings.Deadline
	}
	if d == 0 {
		return nil
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
