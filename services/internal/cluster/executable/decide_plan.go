package executable

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// ourContainers are the platform's own beside the benchmark, which such a cluster lacks.
func ourContainers() []string {
	return []string{cluster.ContainerInstall, cluster.ContainerPull, cluster.ContainerCollect, cluster.ContainerMTU}
}

// values are the ConfigMaps and Secrets of an attempt by name.
type values struct {
	configMaps map[string]*corev1.ConfigMap
	secrets    map[string]*corev1.Secret
}

// newPlan returns the plan for a Job, or why it cannot be run here.
func newPlan(j *batchv1.Job, v values, uid string, now time.Time) (*commandPlan, error) {
	if why := unsupported(j); why != "" {
		return nil, &cluster.RefusedError{Object: "Job " + j.Name, Reason: string(event.EngineUnavailable), Message: why}
	}
	spec := j.Spec.Template.Spec
	benchmark := spec.Containers[0]
	p := &commandPlan{Image: benchmark.Image, Grace: grace(j), Env: []envVar{}, Files: []file{}}
	if d := j.Spec.ActiveDeadlineSeconds; d != nil {
		p.Deadline = *d
	}
	if text := j.Annotations[cluster.AnnotationCustomParams]; text != "" {
		p.CustomParams = json.RawMessage(text)
	}
	p.setProcess(benchmark, p.addFiles(spec, benchmark, v))
	p.Pull = pullOf(spec, v)
	p.Record = record{
		Scope: j.Namespace, Job: j.Name, UID: uid, Created: now.UTC(), Labels: j.Labels,
		Annotations: j.Spec.Template.Annotations, Image: benchmark.Image,
	}
	return p, nil
}

// setProcess sets the command and the environment of the benchmark. References to variables are
// replaced as Kubernetes does, by their values, for which the paths of volumes are replaced before.
func (p *commandPlan) setProcess(c corev1.Container, mounts []fileMount) {
	vars := make(map[string]string, len(c.Env))
	expand := func(text string) string {
		return relocate(cluster.Expand(text, func(name string) (string, bool) { v, ok := vars[name]; return v, ok }), mounts)
	}
	for _, e := range c.Env {
		if e.ValueFrom != nil {
			continue
		}
		vars[e.Name] = expand(e.Value)
		if !ofPlatform(e.Name) {
			p.Env = append(p.Env, envVar{e.Name, vars[e.Name]})
		}
	}
	for _, arg := range slices.Concat(ownCommand(c.Command), c.Args) {
		p.Command = append(p.Command, expand(arg))
	}
}

// unsupported returns why a Job cannot be run here, or "".
func unsupported(j *batchv1.Job) string {
	spec := j.Spec.Template.Spec
	if j.Labels[cluster.LabelEnd] != "" || j.Spec.Parallelism != nil && *j.Spec.Parallelism > 1 {
		return "an engine of kind exec runs one pod: use strategy single_node"
	}
	for _, c := range spec.InitContainers {
		if !slices.Contains(ourContainers(), c.Name) {
			return fmt.Sprintf("an engine of kind exec runs the benchmark alone, and not %s", c.Name)
		}
	}
	if len(spec.Containers) != 1 {
		return "an engine of kind exec runs the benchmark alone: leave out steps"
	}
	if benchmark := spec.Containers[0]; len(ownCommand(benchmark.Command))+len(benchmark.Args) == 0 {
		return "an engine of kind exec runs no images: add ml.benchmark_code"
	}
	return unsupportedPart(spec)
}

// unsupportedPart returns which part of a pod, beside its command, is not brought here, or "".
// The platform's entrypoint, which reads what parsers read, is not there either.
func unsupportedPart(spec corev1.PodSpec) string {
	for _, e := range spec.Containers[0].Env {
		switch {
		case e.Name == pod.EnvParsers:
			return "an engine of kind exec runs no parsers: leave out output.parsers"
		case e.ValueFrom != nil && !ofPlatform(e.Name):
			return fmt.Sprintf("an engine of kind exec has no secrets: leave out %s", e.Name)
		}
	}
	for _, v := range spec.Volumes {
		switch {
		case strings.HasPrefix(v.Name, cluster.VolumeSecretFile):
			return "an engine of kind exec has no secrets: leave out env.secret_files"
		case strings.HasPrefix(v.Name, cluster.VolumeUser):
			return "an engine of kind exec has no volumes: leave out volumes"
		}
	}
	return ""
}

// defaultGrace is the seconds that a benchmark has to end unless its Job says otherwise, as on Kubernetes.
const defaultGrace = 30

// grace returns the seconds that a benchmark has to end: those of the platform's entrypoint, in whose place the program ends it, or else
// those of its pod.
func grace(j *batchv1.Job) int64 {
	for _, e := range j.Spec.Template.Spec.Containers[0].Env {
		if g, err := time.ParseDuration(e.Value); e.Name == pod.EnvGrace && err == nil && g >= time.Second {
			return int64(g / time.Second)
		}
	}
	all := int64(defaultGrace)
	if g := j.Spec.Template.Spec.TerminationGracePeriodSeconds; g != nil {
		all = *g
	}
	return int64(cluster.BenchmarkGrace(j.Spec.Template.Annotations, time.Duration(all)*time.Second) / time.Second)
}

// ownCommand returns a command without the platform's entrypoint.
func ownCommand(command []string) []string {
	if len(command) == 0 || path.Base(command[0]) != path.Base(pod.Binary) {
		return command
	}
	if i := slices.Index(command, "--"); i >= 0 {
		return command[i+1:]
	}
	return nil
}

// ofPlatform reports whether a variable is for the platform's own programs in the pod, which
// are not there.
func ofPlatform(name string) bool {
	forBenchmark := []string{pod.EnvRun, pod.EnvAttempt, pod.EnvScripts}
	return (strings.HasPrefix(name, "BAI_") || strings.HasPrefix(name, "BENCHMARK_AI")) && !slices.Contains(forBenchmark, name)
}

// fileMount is where a volume of files lies in the pod, and in the folder of the program.
type fileMount struct{ path, below string }

// addFiles adds the files of the ConfigMaps that the benchmark sees, and returns where they
// lie.
func (p *commandPlan) addFiles(spec corev1.PodSpec, c corev1.Container, v values) []fileMount {
	var mounts []fileMount
	for _, m := range c.VolumeMounts {
		i := slices.IndexFunc(spec.Volumes, func(vol corev1.Volume) bool { return vol.Name == m.Name })
		if i < 0 || spec.Volumes[i].ConfigMap == nil || v.configMaps[spec.Volumes[i].ConfigMap.Name] == nil {
			continue
		}
		source, below := spec.Volumes[i].ConfigMap, strings.TrimPrefix(m.MountPath, pod.Dir+"/")
		below = strings.Trim(below, "/")
		mode := int32(0o644)
		if source.DefaultMode != nil {
			mode = *source.DefaultMode
		}
		data := v.configMaps[source.Name].Data
		for _, name := range sortedKeys(data) {
			p.Files = append(p.Files, file{Name: path.Join(below, name), Text: data[name], Mode: mode})
		}
		mounts = append(mounts, fileMount{m.MountPath, below})
	}
	return mounts
}

// relocate replaces the paths of volumes in a text.
func relocate(text string, mounts []fileMount) string {
	for _, p := range mounts {
		if text == p.path || strings.HasPrefix(text, p.path+"/") {
			return "{dir}/" + p.below + strings.TrimPrefix(text, p.path)
		}
	}
	return text
}

// pullOf returns what the platform's puller would get, if it has anything to pull.
func pullOf(spec corev1.PodSpec, v values) json.RawMessage {
	if !slices.ContainsFunc(spec.InitContainers, func(c corev1.Container) bool { return c.Name == cluster.ContainerPull }) {
		return nil
	}
	for _, vol := range spec.Volumes {
		if vol.Secret == nil || v.secrets[vol.Secret.SecretName] == nil {
			continue
		}
		s := v.secrets[vol.Secret.SecretName]
		text := cmp.Or(s.StringData[pod.PullFile], string(s.Data[pod.PullFile]))
		if json.Valid([]byte(text)) {
			return json.RawMessage(text)
		}
	}
	return nil
}
