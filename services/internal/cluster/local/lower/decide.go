// Package lower translates a Job's pod template to the specification of a shim. It is pure.
package lower

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/validate"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// Grace is the time that a pod has to end unless its spec sets one.
const Grace = 30 * time.Second

// Input is all that a pod is made of.
type Input struct {
	Job         *batchv1.Job // accepted
	ID          string       // of the pod, here
	Index       int          // of the pod, if the Job is Indexed
	PodName     string
	PodUID      string
	Labels      map[string]string // of the pod
	Annotations map[string]string // of the pod
	Dir         string            // of the pod
	State       string            // the file for its state
	Lock        string            // the file for its shim's lock
	Binary      string            // the pod binary
	Node        string            // name of this machine
	IP          string            // address of the pod
	HostIP      string            // address of this machine
	Env         []string          // that every process of this machine has
	Namespaces  bool
	Private     string                       // a folder that benchmarks see empty; empty means none
	Network     *shimapi.Network             // of the pod's own; nil for the machine's
	Hosts       string                       // content of /etc/hosts of a pod with a network of its own
	HasGPUs     bool                         // the machine has some
	GPUs        []int                        // that the pod may use
	ConfigMaps  map[string]*corev1.ConfigMap // of the Job's namespace, by name
	Secrets     map[string]*corev1.Secret    // of the Job's namespace, by name
	SecretFiles map[string]*corev1.Secret    // of the user, for the volumes that are files with secrets, by name
}

// Output is the result of the translation.
type Output struct {
	Pod   shimapi.Pod
	Dirs  []string          // to be made, for volumes
	Files []File            // to be written in them
	Links map[string]string // to be created: target of each link, which replaces a mount
}

// File is a file of a volume.
type File struct {
	Path string
	Data []byte
	Mode uint32
}

// Missing is an object that a pod needs and that does not exist. Container is empty if a volume needs it.
type Missing struct {
	Container string
	Volume    string
	Message   string
}

// Pod returns the specification of a pod, or the object that is missing for it.
func Pod(in Input) (Output, *Missing) {
	t := in.Job.Spec.Template.Spec
	out := Output{Links: map[string]string{}, Pod: shimapi.Pod{
		ID: in.ID, State: in.State, Lock: in.Lock, Namespaces: in.Namespaces, Binary: in.Binary, Grace: Grace,
		Deadline: Deadline(in.Job), Network: in.Network,
	}}
	if g := t.TerminationGracePeriodSeconds; g != nil {
		out.Pod.Grace = time.Duration(*g) * time.Second
	}
	if all := out.Pod.Grace; cluster.BenchmarkGrace(in.Job.Spec.Template.Annotations, all) < all {
		out.Pod.Grace, out.Pod.SidecarGrace = cluster.BenchmarkGrace(in.Job.Spec.Template.Annotations, all), all
	}
	for _, v := range t.Volumes {
		if missing := out.addVolume(in, v); missing != nil {
			return Output{}, missing
		}
	}
	if in.Network != nil {
		out.addHostsFile(in)
		out.addTempVolume(in)
	}
	for i, c := range slices.Concat(t.InitContainers, t.Containers) {
		made, missing := container(in, c, i < len(t.InitContainers))
		if missing != nil {
			return Output{}, missing
		}
		if in.Network != nil {
			joinNetwork(&made)
		}
		if !in.Namespaces {
			out.relocate(in, &made)
		} else if runsUserCommand(c) {
			made.HiddenDir = in.Private
		}
		out.Pod.Containers = append(out.Pod.Containers, made)
	}
	return out, nil
}

// hostsFile is the file of host names, and hostsVolume the volume for that of a pod with a network of its own; no Job can have a volume of
// this name.
const (
	hostsFile   = "/etc/hosts"
	hostsVolume = ".hosts"
)

// addHostsFile adds the pod's own file of host names.
func (o *Output) addHostsFile(in Input) {
	dir := volumePath(in, hostsVolume)
	o.Dirs = append(o.Dirs, dir)
	o.Pod.Volumes = append(o.Pod.Volumes, shimapi.Volume{Name: hostsVolume, Path: dir})
	o.Files = append(o.Files, File{Path: path.Join(dir, hostsVolume), Data: []byte(in.Hosts), Mode: 0o444})
}

// HostsFile returns the path of the host names of a pod with a network of its own. The pod sees lines that are appended there.
func HostsFile(dir string) string { return path.Join(dir, shimapi.Volumes, hostsVolume, hostsVolume) }

// temporaryVolume is the volume for the temporary files of a pod with a network of its own, and temporaryDir its path; no Job can have a
// volume of this name. In the machine's folder the files of several pods would collide, and stay when a pod is killed.
const (
	temporaryVolume = ".tmp"
	temporaryDir    = pod.Dir + "/tmp"
)

func (o *Output) addTempVolume(in Input) {
	dir := volumePath(in, temporaryVolume)
	o.Dirs = append(o.Dirs, dir)
	o.Pod.Volumes = append(o.Pod.Volumes, shimapi.Volume{Name: temporaryVolume, Path: dir})
}

// joinNetwork puts a container of a pod with a network of its own into that network, or into the machine's if it has to reach the platform.
func joinNetwork(c *shimapi.Container) {
	if c.RunsPodBinary && len(c.Args) > 1 && slices.Contains([]string{"install", "pull", "collect"}, c.Args[1]) {
		c.HostNetwork = true
		if c.Args[1] == "collect" {
			c.Sockets = true
			c.Env = overlay([]string{pod.EnvSockets + "=" + strconv.Itoa(shimapi.SocketsFD)}, c.Env)
		}
		return
	}
	c.Mounts = append(c.Mounts, shimapi.Mount{Volume: temporaryVolume, Path: temporaryDir})
	if !slices.ContainsFunc(c.Mounts, func(m shimapi.Mount) bool { return m.Path == hostsFile }) {
		c.Mounts = append(c.Mounts, shimapi.Mount{Volume: hostsVolume, SubPath: hostsVolume, Path: hostsFile, ReadOnly: true})
	}
	c.Env = overlay([]string{"TMPDIR=" + temporaryDir}, c.Env)
}

// Deadline returns when a Job is over, zero for never.
func Deadline(j *batchv1.Job) time.Time {
	if j.Spec.ActiveDeadlineSeconds == nil {
		return time.Time{}
	}
	return j.CreationTimestamp.Add(time.Duration(*j.Spec.ActiveDeadlineSeconds) * time.Second)
}

// addVolume adds a volume, and its first files.
func (o *Output) addVolume(in Input, v corev1.Volume) *Missing {
	made := shimapi.Volume{Name: v.Name, Path: volumePath(in, v.Name)}
	o.Dirs = append(o.Dirs, made.Path)
	if e := v.EmptyDir; e != nil && e.Medium == corev1.StorageMediumMemory && in.Namespaces {
		made.Memory = true
		if e.SizeLimit != nil {
			made.Limit = e.SizeLimit.Value()
		}
	}
	o.Pod.Volumes = append(o.Pod.Volumes, made)
	files, text := contents(in, v)
	if text != "" && isSecretFile(v) {
		return &Missing{Container: cluster.ContainerBenchmark, Message: text}
	}
	if text != "" {
		return &Missing{Volume: v.Name, Message: text}
	}
	for _, f := range files {
		f.Path = path.Join(made.Path, f.Path)
		o.Files = append(o.Files, f)
	}
	return nil
}

func volumePath(in Input, name string) string { return path.Join(in.Dir, shimapi.Volumes, name) }

// contents returns the files of a volume of configuration, or the name of the missing object.
func contents(in Input, v corev1.Volume) ([]File, string) {
	switch {
	case v.ConfigMap != nil:
		s := v.ConfigMap
		c, ok := in.ConfigMaps[s.Name]
		if !ok {
			return nil, missingUnlessOptional(s.Optional, "configmap %q not found", s.Name)
		}
		return selectItems(configData(c), s.Items, s.DefaultMode, s.Optional)
	case v.Secret != nil:
		s := v.Secret
		c, ok := in.Secrets[s.SecretName]
		if isSecretFile(v) && in.SecretFiles[s.SecretName] != nil {
			c, ok = in.SecretFiles[s.SecretName], true
		}
		if !ok {
			return nil, missingUnlessOptional(s.Optional, "secret %q not found", s.SecretName)
		}
		return selectItems(secretData(c), s.Items, s.DefaultMode, s.Optional)
	}
	return nil, ""
}

// isSecretFile reports whether a volume is a file of the benchmark with a secret of the user.
func isSecretFile(v corev1.Volume) bool { return strings.HasPrefix(v.Name, cluster.VolumeSecretFile) }

// missingUnlessOptional returns the message about a missing object, empty if the object is optional.
func missingUnlessOptional(optional *bool, format string, args ...any) string {
	if optional != nil && *optional {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

func selectItems(data map[string][]byte, items []corev1.KeyToPath, mode *int32, optional *bool) ([]File, string) {
	perm := int32(0o644)
	if mode != nil {
		perm = *mode
	}
	if len(items) == 0 {
		for _, key := range slices.Sorted(maps.Keys(data)) {
			items = append(items, corev1.KeyToPath{Key: key, Path: key})
		}
	}
	var files []File
	for _, item := range items {
		d, ok := data[item.Key]
		if text := missingUnlessOptional(optional, "references non-existent config key: %s", item.Key); !ok && text != "" {
			return nil, text
		}
		if !ok || !staysInVolume(item.Path) {
			continue
		}
		f := File{Path: item.Path, Data: d, Mode: uint32(perm) & 0o777} //nolint:gosec // permissions
		if item.Mode != nil {
			f.Mode = uint32(*item.Mode) & 0o777 //nolint:gosec // permissions
		}
		files = append(files, f)
	}
	return files, ""
}

// staysInVolume reports whether a path stays in its volume.
func staysInVolume(p string) bool {
	return p != "" && !path.IsAbs(p) && !slices.Contains(strings.Split(p, "/"), "..")
}

func configData(c *corev1.ConfigMap) map[string][]byte {
	data := maps.Clone(c.BinaryData)
	if data == nil {
		data = map[string][]byte{}
	}
	for k, v := range c.Data {
		data[k] = []byte(v)
	}
	return data
}

func secretData(s *corev1.Secret) map[string][]byte {
	data := maps.Clone(s.Data)
	if data == nil {
		data = map[string][]byte{}
	}
	for k, v := range s.StringData {
		data[k] = []byte(v)
	}
	return data
}

func container(in Input, c corev1.Container, init bool) (shimapi.Container, *Missing) {
	vars, text := environment(in, c)
	if text != "" {
		return shimapi.Container{}, &Missing{Container: c.Name, Message: text}
	}
	made := shimapi.Container{
		Name: c.Name, Kind: containerKind(c, init), Dir: c.WorkingDir, Env: overlay(machineEnv(in), vars.list),
		MessagePath: c.TerminationMessagePath, FallbackToLogs: c.TerminationMessagePolicy == corev1.TerminationMessageFallbackToLogsOnError,
	}
	for _, a := range slices.Concat(c.Command, c.Args) {
		made.Args = append(made.Args, cluster.Expand(a, vars.lookup))
	}
	if runsUserCommand(c) {
		made.CPU, made.Memory = limits(c.Resources)
	}
	made.RunsPodBinary = slices.Contains([]string{pod.ImageBinary, pod.PathIn("", pod.Binary), pod.PathIn("", pod.ShipBinary)},
		made.Args[0])
	if made.MessagePath == "" {
		made.MessagePath = pod.TerminationMessage
	}
	for _, m := range c.VolumeMounts {
		made.Mounts = append(made.Mounts,
			shimapi.Mount{Volume: m.Name, SubPath: m.SubPath, Path: path.Clean(m.MountPath), ReadOnly: m.ReadOnly})
	}
	return made, nil
}

// runsUserCommand reports whether a container runs a command of the user: the benchmark, or a step.
func runsUserCommand(c corev1.Container) bool {
	return c.Name == cluster.ContainerBenchmark || strings.HasPrefix(c.Name, pod.ContainerStep)
}

// limits returns how many thousandths of a core and bytes of memory a container may use, zero for no limit: its limits or, if it has none,
// its requests.
func limits(r corev1.ResourceRequirements) (cpu, memory int64) {
	for _, list := range []corev1.ResourceList{r.Requests, r.Limits} {
		if q, ok := list[corev1.ResourceCPU]; ok {
			cpu = q.MilliValue()
		}
		if q, ok := list[corev1.ResourceMemory]; ok {
			memory = q.Value()
		}
	}
	return cpu, memory
}

// machineEnv returns the variables that a pod has from its machine: the machine's folder
// for temporary files is not that of a pod with a network of its own.
func machineEnv(in Input) []string {
	if in.Network == nil {
		return in.Env
	}
	return slices.DeleteFunc(slices.Clone(in.Env), func(v string) bool { return strings.HasPrefix(v, "TMPDIR=") })
}

func containerKind(c corev1.Container, init bool) shimapi.Kind {
	switch {
	case !init:
		return shimapi.Main
	case c.RestartPolicy != nil:
		return shimapi.Sidecar
	}
	return shimapi.Init
}

// gpuEnv returns the variables that name a container's GPUs. Without the order CUDA numbers the fastest first, and
// nvidia-smi does not.
func gpuEnv(in Input, c corev1.Container) []string {
	if !in.HasGPUs {
		return nil
	}
	var ids []string
	if q := c.Resources.Limits[validate.GPU]; !q.IsZero() {
		for _, id := range in.GPUs {
			ids = append(ids, fmt.Sprint(id))
		}
	}
	return []string{"CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_VISIBLE_DEVICES=" + strings.Join(ids, ",")}
}
