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

// strategies returns the strategies that can be transpiled, by name.
func strategies() []string {
	return []string{string(descriptors.SingleNode), string(descriptors.MPI), string(descriptors.Inference)}
}

// Scripts is the path of code that was sent along with a descriptor, in the data
// of its run and in its pods.
const Scripts = pod.ScriptsDir

// role is one kind of pod of a run: what it runs, how often, when it begins and
// what its end means.
type role struct {
	name           string // event.Source.Role of its samples and lines
	replicas       int
	indexed        bool // each replica has a number, and a name on the network
	endsRun        bool // its end, good or bad, ends the run; of others any end before that fails it
	env            descriptors.Env
	vars           []corev1.EnvVar // the platform's, which the user's may use
	hardware       descriptors.Hardware
	command        []string      // run under bai-pod; nil means the image's entrypoint
	args           []string      // of the image's entrypoint
	image          cluster.Image // its entrypoint, where there is no command and its registry gave an answer
	script         string        // text of the script that command runs; empty for none
	data           []event.Data
	shared         []bool // of the first of data: its pods have them in common, where it has several
	metrics        []descriptors.Metric
	systemInterval *time.Duration // how often to measure what it uses of the machine; nil is not said
	scrape         pod.Scrape
	otlp           bool
	artifacts      []pod.Artifact

	ports     []int             // where it answers
	probe     *corev1.Probe     // says when it is ready
	awaitArgs []string          // arguments of bai-pod await, before the benchmark begins; nil to begin at once
	mpi       bool              // it has the keys and the files of the run's ssh
	otherPods int               // pods of the run beside one of these
	slots     int               // processes of MPI on each worker, for who starts them
	sshFiles  map[string]string // the files of the run's ssh, in the role that brings them

	ownsKeys bool // the Secret with the keys is made with this role
}

// rolesOf returns what pods a run has, by its strategy, the one that ends it
// last.
func rolesOf(in Input, s Settings) ([]role, error) {
	r, err := benchmarkRole(in)
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
	}
	return nil, &RefusedError{
		Reason: event.StrategyUnknown,
		Message: fmt.Sprintf("hardware.strategy is %q, which this platform does not launch: it launches %s",
			in.Descriptor.Hardware.Strategy, strings.Join(strategies(), ", ")),
	}
}

// benchmarkRole returns the role of the pod that is measured.
func benchmarkRole(in Input) (role, error) {
	d := in.Descriptor
	argv, args, err := d.Command()
	if err != nil {
		return role{}, unreadableCommandError(err)
	}
	sources, shared := in.sources(d.Hardware.Strategy.Roles()[0])
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
	return r, nil
}

// addCode has the role find code that was sent along, which is there whether or not
// the descriptor asks for it.
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

// applyOutput has the role's output kept as o says.
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

// sources returns the data of the descriptor's sources that a role has, and of each
// whether its pods have it in common.
func (in Input) sources(role string) (data []event.Data, shared []bool) {
	strategy := in.Descriptor.Hardware.Strategy
	for i, s := range in.Descriptor.Data.Sources[:in.sourceCount()] {
		if strategy.Reader(s) == role {
			data, shared = append(data, in.Run.Data[i]), append(shared, s.Mount == descriptors.MountShared)
		}
	}
	return data, shared
}

// sourceCount is how many of the run's data are the descriptor's sources.
func (in Input) sourceCount() int { return min(len(in.Descriptor.Data.Sources), len(in.Run.Data)) }

// modelsAndScripts returns the run's data beside those of its sources: the server's models,
// and code that was sent along.
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

// useKubernetesVariables has $(NAME) take the place of ${NAME} in words, for the variables that
// the platform sets: no shell reads them.
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

// awaitArgs are the arguments of bai-pod await that wait for all of targets.
func (s Settings) awaitArgs(every, timeout time.Duration, successes int, targets ...string) []string {
	within := s.Ready
	if within == 0 {
		within = 30 * time.Minute
	}
	return append([]string{
		"--within=" + within.String(), "--every=" + every.String(), "--timeout=" + timeout.String(), fmt.Sprintf("--successes=%d", successes),
	}, targets...)
}
