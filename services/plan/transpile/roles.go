package transpile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// strategies returns the names of the supported strategies.
func strategies() []string {
	return []string{string(descriptors.SingleNode), string(descriptors.MPI), string(descriptors.Inference)}
}

// Scripts is the path of code that was sent along, in the data of a run and in its
// pods.
const Scripts = pod.ScriptsDir

// role is one kind of pod of a run: its command, its number of replicas, when it starts
// and what its end means.
type role struct {
	name           string // event.Stream.Role of its samples and lines
	replicas       int
	indexed        bool   // each replica has a number and a name on the network
	endsRun        bool   // its end ends the run; the earlier end of another role fails the run, unless end says something else
	end            string // value of cluster.LabelEnd; empty for none
	env            descriptors.Env
	vars           []corev1.EnvVar // the platform's variables, which the user's may refer to
	hardware       descriptors.Hardware
	command        []string      // run under bai-pod; nil means the image's entrypoint
	args           []string      // arguments of the image's entrypoint
	image          cluster.Image // registry answer with the entrypoint, if there is no command
	script         string        // text of the script that command runs; empty for none
	data           []event.Data
	shared         []bool // whether the replicas share data set n; may be shorter than data
	metrics        []descriptors.Metric
	systemInterval *time.Duration // interval of system metrics; nil means unset
	scrape         pod.Scrape
	otlp           bool
	artifacts      []pod.Artifact
	steps          []step // containers before and after the benchmark, in the order in which they run

	ports     []int             // ports on which it listens
	probe     *corev1.Probe     // readiness probe
	awaitArgs []string          // arguments of bai-pod await before the benchmark starts; nil means no wait
	mpi       bool              // it has the ssh files and keys of the run
	network   string            // end of the name of the headless Service that gives its pods names; empty means none
	ownsNames bool              // that Service is created with this role
	otherPods int               // number of other pods of the run
	slots     int               // MPI processes on each worker, for the launcher
	sshFiles  map[string]string // ssh files of the run; set in the role that creates them

	ownsKeys bool // the Secret with the keys is created with this role
}

// rolesOf returns the roles of a run by its strategy. The role that ends the run is the
// last.
func rolesOf(in Input, s Settings) ([]role, error) {
	if in.Descriptor.Hardware.Strategy == descriptors.OwnRoles {
		return ownRoles(in, s)
	}
	r, err := benchmarkRole(in, in.Descriptor.RoleNames()[0])
	if err != nil {
		return nil, err
	}
	switch in.Descriptor.Hardware.Strategy {
	case descriptors.SingleNode:
		return []role{r}, nil
	case descriptors.Inference:
		return inference(in, s, r)
	case descriptors.MPI:
		return mpi(in, s, r)
	case descriptors.OwnRoles: // those above
	}
	return nil, &RefusedError{
		Reason: event.StrategyUnknown,
		Message: fmt.Sprintf("hardware.strategy is %q, which this platform does not launch: it launches %s",
			in.Descriptor.Hardware.Strategy, strings.Join(strategies(), ", ")),
	}
}

// benchmarkRole returns the role of the measured pod, with the data that the role called
// reader has.
func benchmarkRole(in Input, reader string) (role, error) {
	d := in.Descriptor
	argv, args, err := d.Command()
	if err != nil {
		return role{}, unreadableCommandError(err)
	}
	sources, shared := in.sources(reader)
	_, scripts := in.modelsAndScripts()
	r := role{
		name: cluster.ContainerBenchmark, replicas: 1, endsRun: true,
		env: d.Env, hardware: d.Hardware, command: argv, args: args, data: slices.Concat(sources, scripts), shared: shared,
		image: in.image(d.Env.DockerImage),
	}
	if _, text, ok := d.Script(); ok {
		r.command, r.args, r.script = slices.Concat(argv, []string{scriptPath}, args), nil, text
	}
	if err := r.addCode(d, scripts); err != nil {
		return role{}, err
	}
	r.applyOutput(d.Output)
	return r, r.addSteps(d)
}

// addCode sets the variable for code that was sent along, even if the descriptor does
// not ask for code. It refuses a descriptor that asks for code that was not sent.
func (r *role) addCode(d *descriptors.Descriptor, scripts []event.Data) error {
	if len(scripts) > 0 {
		r.vars = append(r.vars, corev1.EnvVar{Name: pod.EnvScripts, Value: Scripts})
		r.command, r.args = useKubernetesVariables(r.command, r.vars), useKubernetesVariables(r.args, r.vars)
		return nil
	}
	if d.ML == nil || d.ML.Script == nil {
		return nil
	}
	return &RefusedError{
		Reason:  event.InvalidDescriptor,
		Message: fmt.Sprintf("ml.script.script is %q, and no code was sent along with the descriptor: submit it with --script DIR", d.ML.Script.Archive),
	}
}

func unreadableCommandError(err error) error {
	return &RefusedError{Reason: event.InvalidDescriptor, Message: fmt.Sprintf("the command cannot be read: %v", err)}
}

// applyOutput sets how the role's output is stored.
func (r *role) applyOutput(o *descriptors.Output) {
	if o == nil {
		return
	}
	r.metrics, r.systemInterval, r.otlp = o.Metrics, o.System, o.OTLP
	if len(o.Prometheus) > 0 {
		r.scrape = pod.Scrape{URLs: o.Prometheus, Every: o.PrometheusInterval, Names: o.PrometheusNames}
	}
	for _, a := range o.Artifacts {
		r.artifacts = append(r.artifacts, pod.Artifact{Path: a.Path, MaxSize: a.MaxSize})
	}
}

// sources returns the data sets of the descriptor's sources that a role has, and for
// each whether the replicas share it.
func (in Input) sources(role string) (data []event.Data, shared []bool) {
	for i, s := range in.Descriptor.Data.Sources[:in.sourceCount()] {
		if slices.Contains(in.Descriptor.Readers(s), role) {
			data, shared = append(data, in.Run.Data[i]), append(shared, s.Mount == descriptors.MountShared)
		}
	}
	return data, shared
}

// sourceCount returns how many data sets of the run are the descriptor's sources.
func (in Input) sourceCount() int { return min(len(in.Descriptor.Data.Sources), len(in.Run.Data)) }

// modelsAndScripts returns the run's other data: the server's models, and code that was
// sent along.
func (in Input) modelsAndScripts() (models, scripts []event.Data) {
	for _, d := range in.Run.Data[in.sourceCount():] {
		if d.Path == Scripts {
			d.Unpack, d.Writable = true, true
			scripts = append(scripts, d)
			continue
		}
		models = append(models, d)
	}
	return models, scripts
}

// useKubernetesVariables replaces ${NAME} by $(NAME) in words, for the variables that
// the platform sets, because no shell expands them.
func useKubernetesVariables(words []string, vars []corev1.EnvVar) []string {
	var pairs []string
	for _, v := range vars {
		pairs = append(pairs, "${"+v.Name+"}", "$("+v.Name+")")
	}
	with := strings.NewReplacer(pairs...)
	var out []string
	for _, w := range words {
		out = append(out, with.Replace(w))
	}
	return out
}

// awaitArgs returns the arguments of bai-pod await that wait for all targets.
func (s Settings) awaitArgs(every, timeout time.Duration, successes int, targets ...string) []string {
	within := s.Ready
	if within == 0 {
		within = 30 * time.Minute
	}
	return append([]string{
		"--within=" + within.String(), "--every=" + every.String(), "--timeout=" + timeout.String(), fmt.Sprintf("--successes=%d", successes),
	}, targets...)
}
