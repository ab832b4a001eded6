// Package roles decides which kinds of pods a run has: those of a descriptor's [[roles]], or those for which its strategy stands. A role
// has the properties in which its pods differ from others. The package is pure.
//
// # The roles of a descriptor
//
// Each role of [[roles]] is an indexed Job. A headless Service gives each of their pods a
// name. Of the roles whose end the run waits for, the last one has the main Job, with the
// name of the attempt; the label cluster.LabelEnd tells what the end of the others means.
// A role waits, before its command, until the addresses of the roles that it starts after
// answer: the port of the role, or, for a file or a line of the log, a port on which its
// entrypoint listens from then on. The variables BAI_ROLE, BAI_ROLE_INDEX and, for each
// role, BAI_HOSTS_NAME tell the pods about each other.
//
// # Strategy inference
//
// The roles are server and client. The server has a Service. The client, whose end ends
// the run, gets its address as INFERENCE_SERVER_HOST and INFERENCE_SERVER_PORT, and
// further ports as INFERENCE_SERVER_PORT_1 and so on. The client starts once the
// server's probe succeeds, or without a probe once each of its ports answers.
//
// # Strategy mpi
//
// The roles are worker, an indexed Job, and launcher, whose end ends the run. A
// headless Service gives each of their pods a name. Workers run the image's sshd until
// the end of the run. The launcher starts once all workers answer. A command that is
// neither a script nor mpirun itself runs under mpirun, with one process for each slot.
// A script runs once, on the launcher, and may call mpirun. Environment variables give
// the mpirun of Open MPI (4 and 5), MPICH and Intel MPI the hosts and the way to reach
// them, so that it needs no options. If the settings use Kubeflow's MPI operator, one
// MPIJob replaces the two Jobs and the Service; its pods are the same.
//
// # Strategy manifest
//
// The only role is benchmark. All pods of the objects of the manifest have it.
//
// # Files of the user
//
// The data of a run are those of the descriptor's sources, then the server's models, in
// the order of the descriptor. The pods of the role that a source names have its data;
// by default, those are the measured pods: workers, client or benchmark. Code that was
// sent along comes last, with the path pod.ScriptsDir, even if the descriptor does not ask for
// it (ml.script). It is unpacked in each pod that runs measured code, but not in a
// server's pods. In these pods BAI_SCRIPTS_PATH is the path of its folder, in the
// environment and, as $(BAI_SCRIPTS_PATH) or ${BAI_SCRIPTS_PATH}, in the command.
package roles

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/plan/refusal"
)

// Input is the input for one attempt of a run.
type Input struct {
	Descriptor *descriptors.Descriptor
	Data       []event.Data          // of the run: its sources, the models of its server, then code that was sent along
	Images     []cluster.Image       // registry answers about images whose own entrypoint is run; empty if unknown
	Names      Names                 // of the objects of the attempt
	Ready      time.Duration         // time for pods for which others wait to become ready; zero means 30 min
	Instances  descriptors.Instances // more instance types
}

// Role is one kind of pod of a run: its command, its number of replicas, when it starts
// and what its end means.
type Role struct {
	Name           string // event.Stream.Role of its samples and lines
	Replicas       int
	Indexed        bool   // each replica has a number and a name on the network
	EndsRun        bool   // its end ends the run; the earlier end of another role fails the run, unless End says something else
	End            string // value of cluster.LabelEnd; empty for none
	Env            descriptors.Env
	Vars           []corev1.EnvVar // the platform's variables, which the user's may refer to
	Hardware       descriptors.Hardware
	Command        []string      // run under bai-pod; nil means the image's entrypoint
	Args           []string      // arguments of the image's entrypoint
	Image          cluster.Image // registry answer with the entrypoint, if there is no command
	Script         string        // text of the script that Command runs; empty for none
	Data           []event.Data
	Shared         []bool // whether the replicas share data set n; may be shorter than Data
	Metrics        []descriptors.Metric
	SystemInterval *time.Duration // interval of system metrics; nil means unset
	Scrape         pod.Scrape
	OTLP           bool
	Artifacts      []pod.Artifact
	Parsers        []pod.Parser // of the output and the files of the benchmark
	// texts of the scripts that the parsers' commands run, in the order of the parsers; empty for those without one
	ParserScripts []string
	Steps         []Step // containers before and after the benchmark, and at the end, in the order in which they run

	PodNetwork descriptors.Network // of its pods
	Listens    []int               // ports on which its pods listen, as far as the descriptor says
	Ports      []int               // those that a Service has
	Probe      *corev1.Probe       // readiness probe
	AwaitArgs  []string            // arguments of bai-pod-ship await before the benchmark starts; nil means no wait
	MPI        bool                // it has the ssh files and keys of the run
	Network    string              // end of the name of the headless Service that gives its pods names; empty means none
	OwnsNames  bool                // that Service is created with this role
	OtherPods  int                 // number of other pods of the run
	Slots      int                 // MPI processes on each worker, for the launcher
	SSHFiles   map[string]string   // ssh files of the run; set in the role that creates them
	OwnsKeys   bool                // the Secret with the keys is created with this role
}

// Of returns the roles of a run. The role that ends the run is the last. The only error is
// *refusal.Error.
func Of(in Input) ([]Role, error) {
	all, err := in.all()
	if err != nil {
		return nil, err
	}
	pods := 0
	for _, r := range all {
		pods += r.Replicas
	}
	for i := range all {
		all[i].OtherPods = pods - 1
	}
	return all, nil
}

func (in Input) all() ([]Role, error) {
	if in.Descriptor.Hardware.Strategy == descriptors.OwnRoles {
		return own(in)
	}
	r, err := benchmark(in, in.Descriptor.RoleNames()[0])
	if err != nil {
		return nil, err
	}
	switch in.Descriptor.Hardware.Strategy {
	case descriptors.SingleNode, descriptors.FromManifest:
		return []Role{r}, nil
	case descriptors.Inference:
		return inference(in, r)
	case descriptors.MPI:
		return mpi(in, r)
	case descriptors.OwnRoles: // those above
	}
	return nil, &refusal.Error{
		Reason: event.StrategyUnknown,
		Message: fmt.Sprintf("hardware.strategy is %q, which this platform does not launch: it launches %s, %s, %s, %s",
			in.Descriptor.Hardware.Strategy, descriptors.SingleNode, descriptors.MPI, descriptors.Inference, descriptors.FromManifest),
	}
}

// benchmark returns the role of the measured pod, with the data that the role called
// reader has.
func benchmark(in Input, reader string) (Role, error) {
	d := in.Descriptor
	r := Role{
		Name: cluster.ContainerBenchmark, Replicas: 1, EndsRun: true, Env: d.Env, Hardware: d.Hardware, PodNetwork: d.Network,
		Image: in.image(d.Env.DockerImage),
	}
	if err := r.setProgram(d); err != nil {
		return Role{}, err
	}
	sources, shared := in.sources(reader)
	_, scripts := in.modelsAndScripts()
	r.Data, r.Shared = slices.Concat(sources, scripts), shared
	if err := r.addCode(d, scripts); err != nil {
		return Role{}, err
	}
	if err := r.setOutput(d.Output); err != nil {
		return Role{}, err
	}
	return r, r.addSteps(d)
}

// program is a part of a descriptor that says what a container runs.
type program interface {
	Command() (argv, args []string, err error)
	Script() (interpreter, text string, ok bool)
}

// setProgram sets what the role's container runs.
func (r *Role) setProgram(p program) error {
	argv, args, err := p.Command()
	if err != nil {
		return refusal.Descriptor("the command cannot be read: %v", err)
	}
	r.Command, r.Args = argv, args
	if _, text, ok := p.Script(); ok {
		r.Command, r.Args, r.Script = slices.Concat(argv, []string{ScriptDir + "/" + ScriptFile}, args), nil, text
	}
	return nil
}

// addCode sets the variable for code that was sent along, even if the descriptor does
// not ask for code. It refuses a descriptor that asks for code that was not sent.
func (r *Role) addCode(d *descriptors.Descriptor, scripts []event.Data) error {
	if len(scripts) > 0 {
		r.addVars(corev1.EnvVar{Name: pod.EnvScripts, Value: pod.ScriptsDir})
		return nil
	}
	if d.ML == nil || d.ML.Script == nil {
		return nil
	}
	return refusal.Descriptor("ml.script.script is %q, and no code was sent along with the descriptor: submit it with --script DIR",
		d.ML.Script.Archive)
}

// addVars adds variables of the platform, to which the command may refer.
func (r *Role) addVars(vars ...corev1.EnvVar) {
	r.Vars = append(slices.Clip(r.Vars), vars...)
	r.Command, r.Args = useKubernetesVariables(r.Command, r.Vars), useKubernetesVariables(r.Args, r.Vars)
}

// setOutput sets how the role's output is stored.
func (r *Role) setOutput(o *descriptors.Output) error {
	if o == nil {
		return nil
	}
	r.Metrics, r.SystemInterval, r.OTLP = o.Metrics, o.System, o.OTLP
	if len(o.Prometheus) > 0 {
		r.Scrape = pod.Scrape{URLs: o.Prometheus, Every: o.PrometheusInterval, Names: o.PrometheusNames}
		for _, address := range o.Prometheus {
			r.listen(portOfURL(address))
		}
	}
	if err := r.addParsers(o.Parsers); err != nil {
		return err
	}
	for _, a := range o.Artifacts {
		r.Artifacts = append(r.Artifacts, pod.Artifact{Path: a.Path, MaxSize: a.MaxSize})
	}
	return nil
}

// GPUs returns the number of GPUs of a pod of the role. It is 0 for an instance type whose
// number is unknown.
func (r Role) GPUs(known descriptors.Instances) int {
	if r.Hardware.GPUs != nil || r.Hardware.InstanceType == "" {
		n, _ := r.Hardware.GPUCount()
		return n
	}
	n, _ := known.GPUs(r.Hardware.InstanceType)
	return n
}

// image returns the answer about an image, or the zero value if there is no answer.
func (in Input) image(name string) cluster.Image {
	for _, i := range in.Images {
		if i.Name == name && i.UnreadReason == "" {
			return i
		}
	}
	return cluster.Image{}
}

// sources returns the data sets of the descriptor's sources that a role has, and for
// each whether the replicas share it.
func (in Input) sources(role string) (data []event.Data, shared []bool) {
	for i, s := range in.Descriptor.Data.Sources[:in.sourceCount()] {
		if slices.Contains(in.Descriptor.Readers(s), role) {
			data, shared = append(data, in.Data[i]), append(shared, s.Mount == descriptors.MountShared)
		}
	}
	return data, shared
}

// sourceCount returns how many data sets of the run are the descriptor's sources.
func (in Input) sourceCount() int { return min(len(in.Descriptor.Data.Sources), len(in.Data)) }

// modelsAndScripts returns the run's other data: the server's models, and code that was
// sent along.
func (in Input) modelsAndScripts() (models, scripts []event.Data) {
	for _, d := range in.Data[in.sourceCount():] {
		if d.Path == pod.ScriptsDir {
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

// awaitArgs returns the arguments of bai-pod-ship await that wait for all targets.
func (in Input) awaitArgs(every, timeout time.Duration, successes int, targets ...string) []string {
	return append([]string{
		"--within=" + cmp.Or(in.Ready, 30*time.Minute).String(), "--every=" + every.String(), "--timeout=" + timeout.String(),
		fmt.Sprintf("--successes=%d", successes),
	}, targets...)
}
