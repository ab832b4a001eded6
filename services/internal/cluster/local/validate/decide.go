// Package validate decides which objects the local cluster can run as they are written. It is pure.
package validate

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// Machine has the capabilities of the machine.
type Machine struct {
	GPUs         int    // NVIDIA devices
	NoNamespaces string // why pods run without namespaces, and the remedy; empty if they have them
	NoNetworks   string // the same for networks of their own, which several pods of a run each need
}

// Object returns why the cluster does not accept o, nil if it does.
func Object(o cluster.Object, m Machine) *cluster.RefusedError {
	kind := o.GetObjectKind().GroupVersionKind().Kind
	refuse := func(reason event.Reason, format string, args ...any) *cluster.RefusedError {
		return &cluster.RefusedError{Object: kind + " " + o.GetName(), Reason: string(reason), Message: fmt.Sprintf(format, args...)}
	}
	if problem := checkIdentity(o); problem != "" {
		return refuse("", "%s", problem)
	}
	if path := unsupportedField(o); path != "" {
		return refuse("", "the local cluster does not implement %s", path)
	}
	if s, ok := o.(*corev1.Service); ok {
		if p := checkService(s, m); p.text != "" {
			return refuse(p.reason, "%s", p.text)
		}
		return nil
	}
	j, ok := o.(*batchv1.Job)
	if !ok {
		return nil
	}
	for _, rule := range []func(*batchv1.Job, Machine) problem{
		checkJobController, checkMTU, checkContainers, checkImages, checkVolumes,
		checkResources, checkNamespaces,
	} {
		if p := rule(j, m); p.text != "" {
			return refuse(p.reason, "%s", p.text)
		}
	}
	return nil
}

// problem is why an object is refused; its zero value means that it is accepted.
type problem struct {
	reason event.Reason
	text   string
}

func problemf(format string, args ...any) problem { return problem{text: fmt.Sprintf(format, args...)} }

// checkIdentity checks the name and labels of an object.
func checkIdentity(o cluster.Object) string {
	if errs := validation.IsDNS1123Subdomain(o.GetName()); len(errs) > 0 {
		return fmt.Sprintf("metadata.name %q: %s", o.GetName(), errs[0])
	}
	if errs := validation.IsDNS1123Label(o.GetNamespace()); len(errs) > 0 {
		return fmt.Sprintf("metadata.namespace %q: %s", o.GetNamespace(), errs[0])
	}
	switch o.(type) {
	case *batchv1.Job, *corev1.ConfigMap, *corev1.Secret, *corev1.Service:
	default:
		return "the local cluster runs Jobs, and keeps ConfigMaps, Secrets and Services for them"
	}
	if o.GetLabels()[cluster.LabelRun] == "" {
		return "it lacks the label " + cluster.LabelRun
	}
	if n, err := strconv.Atoi(o.GetLabels()[cluster.LabelAttempt]); err != nil || n < 1 {
		return fmt.Sprintf("the label %s is %q, want a number from 1", cluster.LabelAttempt, o.GetLabels()[cluster.LabelAttempt])
	}
	return ""
}

// checkService checks that the pods of a run can find each other by name.
func checkService(s *corev1.Service, m Machine) problem {
	switch {
	case m.NoNamespaces != "":
		return problem{
			event.NeedsNamespaces,
			"the run has several pods, which find each other by names of their own, and this machine's kernel gives pods no mounts of their own: " + m.NoNamespaces,
		}
	case m.NoNetworks != "":
		return problem{
			event.NeedsNamespaces,
			"the run has several pods, which would answer for each other, and this machine's kernel gives pods no networks of their own: " +
				m.NoNetworks,
		}
	}
	for i, p := range s.Spec.Ports {
		if to := p.TargetPort; to.Type != intstr.Int || to.IntVal != 0 && to.IntVal != p.Port {
			return problemf("spec.ports[%d].targetPort: the local cluster implements that of the port only", i)
		}
	}
	return problem{}
}

// MaxPods is how many pods a Job may have.
const MaxPods = 1000

// IsIndexed reports whether the pods of a Job have numbers.
func IsIndexed(j *batchv1.Job) bool {
	return j.Spec.CompletionMode != nil && *j.Spec.CompletionMode == batchv1.IndexedCompletion
}

// PodCount returns how many pods a Job has.
func PodCount(j *batchv1.Job) int { return int(valueOrOne(j.Spec.Completions)) }

// checkJobController checks the fields for a Job controller: the local cluster runs each pod of a Job once, and all at the same time.
func checkJobController(j *batchv1.Job, _ Machine) problem {
	s := j.Spec
	if errs := validation.IsDNS1123Label(j.Name); len(errs) > 0 {
		return problemf("metadata.name %q: %s", j.Name, errs[0])
	}
	for _, key := range []string{cluster.LabelRun, cluster.LabelAttempt} {
		if got, want := s.Template.Labels[key], j.Labels[key]; got != want {
			return problemf("spec.template.metadata.labels: %s is %q, but %q in the Job's own", key, got, want)
		}
	}
	switch {
	case !IsIndexed(j) && (valueOrOne(s.Parallelism) != 1 || valueOrOne(s.Completions) != 1):
		return problemf("spec.parallelism and spec.completions: the local cluster runs one pod of a Job that is not Indexed")
	case PodCount(j) < 1 || PodCount(j) > MaxPods || valueOrOne(s.Parallelism) != valueOrOne(s.Completions):
		return problemf("spec.parallelism and spec.completions: the local cluster runs all pods of a Job at the same time, and at most %d",
			MaxPods)
	case s.BackoffLimit == nil || *s.BackoffLimit != 0:
		return problemf("spec.backoffLimit: the local cluster implements 0 only")
	case s.Template.Spec.RestartPolicy != corev1.RestartPolicyNever:
		return problemf("spec.template.spec.restartPolicy is %q: the local cluster implements Never only", s.Template.Spec.RestartPolicy)
	case s.ActiveDeadlineSeconds != nil && *s.ActiveDeadlineSeconds < 1:
		return problemf("spec.activeDeadlineSeconds is %d, want 1 or more", *s.ActiveDeadlineSeconds)
	case s.TTLSecondsAfterFinished != nil && *s.TTLSecondsAfterFinished < 0:
		return problemf("spec.ttlSecondsAfterFinished is %d, want 0 or more", *s.TTLSecondsAfterFinished)
	}
	if g := s.Template.Spec.TerminationGracePeriodSeconds; g != nil && *g < 0 {
		return problemf("spec.template.spec.terminationGracePeriodSeconds is %d, want 0 or more", *g)
	}
	return problem{}
}

// minMTU and maxMTU are the least and the largest MTU of a link with addresses of IPv4 (RFC 791).
const (
	minMTU = 68
	maxMTU = 65535
)

// checkMTU checks the annotation with the MTU of a pod's link.
func checkMTU(j *batchv1.Job, _ Machine) problem {
	text, ok := j.Spec.Template.Annotations[cluster.AnnotationMTU]
	if !ok {
		return problem{}
	}
	if n, err := strconv.Atoi(text); err != nil || n < minMTU || n > maxMTU {
		return problemf("spec.template.metadata.annotations: %s is %q, want a number from %d to %d",
			cluster.AnnotationMTU, text, minMTU, maxMTU)
	}
	return problem{}
}

func valueOrOne(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

// locatedContainer is a container and its path in the object.
type locatedContainer struct {
	corev1.Container

	path string
	init bool
}

// allContainers returns a pod's containers in the order in which they begin.
func allContainers(s corev1.PodSpec) []locatedContainer {
	var cs []locatedContainer
	for i, c := range s.InitContainers {
		cs = append(cs, locatedContainer{c, fmt.Sprintf("spec.template.spec.initContainers[%d]", i), true})
	}
	for i, c := range s.Containers {
		cs = append(cs, locatedContainer{c, fmt.Sprintf("spec.template.spec.containers[%d]", i), false})
	}
	return cs
}

func checkContainers(j *batchv1.Job, _ Machine) problem {
	if len(j.Spec.Template.Spec.Containers) == 0 {
		return problemf("spec.template.spec.containers: there is none")
	}
	names := map[string]bool{}
	for _, c := range allContainers(j.Spec.Template.Spec) {
		if errs := validation.IsDNS1123Label(c.Name); len(errs) > 0 {
			return problemf("%s.name %q: %s", c.path, c.Name, errs[0])
		}
		if names[c.Name] {
			return problemf("%s.name: there are two containers %q", c.path, c.Name)
		}
		names[c.Name] = true
		if p := checkContainer(c); p.text != "" {
			return p
		}
	}
	return problem{}
}

func checkContainer(c locatedContainer) problem {
	if r := c.RestartPolicy; r != nil && (!c.init || *r != corev1.ContainerRestartPolicyAlways) {
		return problemf("%s.restartPolicy is %q: only an init container has one, and Always is the only one implemented", c.path, *r)
	}
	for _, dir := range []string{c.WorkingDir, c.TerminationMessagePath} {
		if dir != "" && !path.IsAbs(dir) {
			return problemf("%s: %q is not an absolute path", c.path, dir)
		}
	}
	for i, e := range c.Env {
		if p := checkVariable(fmt.Sprintf("%s.env[%d]", c.path, i), e); p.text != "" {
			return p
		}
	}
	if slices.ContainsFunc(slices.Concat(c.Command, c.Args), func(s string) bool { return strings.Contains(s, "\x00") }) {
		return problemf("%s.command: holds a zero byte", c.path)
	}
	return problem{}
}

func checkVariable(at string, e corev1.EnvVar) problem {
	switch {
	case e.Name == "" || strings.ContainsAny(e.Name, "=\x00"):
		return problemf("%s.name: %q is no name of a variable", at, e.Name)
	case strings.Contains(e.Value, "\x00"):
		return problemf("%s.value: holds a zero byte", at)
	case e.ValueFrom != nil && e.ValueFrom.FieldRef != nil && !isSupportedFieldRef(e.ValueFrom.FieldRef.FieldPath):
		return problemf("%s.valueFrom.fieldRef.fieldPath: the local cluster does not implement %q", at, e.ValueFrom.FieldRef.FieldPath)
	}
	return problem{}
}

// isSupportedFieldRef reports whether the downward API offers a field here.
func isSupportedFieldRef(path string) bool {
	switch path {
	case "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "status.podIP", "status.hostIP":
		return true
	}
	key, labels := strings.CutPrefix(path, "metadata.labels['")
	if !labels {
		if key, labels = strings.CutPrefix(path, "metadata.annotations['"); !labels {
			return false
		}
	}
	return strings.HasSuffix(key, "']") && len(key) > 2
}

// checkImages checks that no container needs its image's command: the local cluster runs no images.
func checkImages(j *batchv1.Job, _ Machine) problem {
	for _, c := range allContainers(j.Spec.Template.Spec) {
		if len(c.Command) > 0 && c.Command[0] != "" {
			continue
		}
		return problem{event.NeedsImage, fmt.Sprintf(
			"container %q has no command, so the entrypoint of image %q would run, and the local cluster runs no images: give a command (ml.benchmark_code), which is run with this machine's own programs, or use a Kubernetes cluster",
			c.Name, c.Image)}
	}
	return problem{}
}

func checkVolumes(j *batchv1.Job, _ Machine) problem {
	s, names := j.Spec.Template.Spec, map[string]bool{}
	for i, v := range s.Volumes {
		at := fmt.Sprintf("spec.template.spec.volumes[%d]", i)
		if errs := validation.IsDNS1123Label(v.Name); len(errs) > 0 || names[v.Name] {
			return problemf("%s.name: %q is no name, or that of another volume too", at, v.Name)
		}
		names[v.Name] = true
		if p := checkVolume(at, v); p.text != "" {
			return p
		}
	}
	for _, c := range allContainers(s) {
		if p := checkMounts(c, names); p.text != "" {
			return p
		}
	}
	return problem{}
}

func checkVolume(at string, v corev1.Volume) problem {
	e := v.EmptyDir
	switch {
	case e == nil && v.ConfigMap == nil && v.Secret == nil:
		return problemf("%s: the local cluster implements emptyDir, configMap and secret", at)
	case e == nil:
	case e.Medium != "" && e.Medium != corev1.StorageMediumMemory:
		return problemf("%s.emptyDir.medium: the local cluster does not implement %q", at, e.Medium)
	case e.SizeLimit != nil && e.Medium != corev1.StorageMediumMemory:
		return problemf("%s.emptyDir.sizeLimit: the local cluster implements it in memory only", at)
	}
	return problem{}
}

func checkMounts(c locatedContainer, names map[string]bool) problem {
	seen := map[string]bool{}
	for i, m := range c.VolumeMounts {
		at, clean := fmt.Sprintf("%s.volumeMounts[%d]", c.path, i), path.Clean(m.MountPath)
		switch {
		case !names[m.Name]:
			return problemf("%s: there is no volume %q", at, m.Name)
		case !path.IsAbs(m.MountPath) || clean == "/" || strings.Contains(m.MountPath, ":"):
			return problemf("%s.mountPath: %q is no place to mount at", at, m.MountPath)
		case clean == "/proc" || strings.HasPrefix(clean, "/proc/"):
			return problemf("%s.mountPath: %q lies in /proc", at, m.MountPath)
		case seen[clean]:
			return problemf("%s.mountPath: two volumes at %q", at, m.MountPath)
		case path.IsAbs(m.SubPath) || slices.Contains(strings.Split(m.SubPath, "/"), ".."):
			return problemf("%s.subPath: %q leads out of the volume", at, m.SubPath)
		}
		seen[clean] = true
	}
	return problem{}
}

// checkResources checks limits: limits that cannot be enforced are refused.
func checkResources(j *batchv1.Job, m Machine) problem {
	for _, c := range allContainers(j.Spec.Template.Spec) {
		for _, name := range slices.Sorted(limits(c)) {
			q := c.Resources.Limits[corev1.ResourceName(name)]
			switch {
			case q.IsZero(), name == GPU && q.Sign() > 0:
			case strings.HasSuffix(name, "/gpu"):
				return problem{event.NeedsGPU, fmt.Sprintf("%s.resources.limits: the machine has no %q", c.path, name)}
			case strings.Contains(name, "/"), strings.HasPrefix(name, corev1.ResourceHugePagesPrefix):
				return problem{
					event.NeedsDevice,
					fmt.Sprintf("%s.resources.limits: the local cluster has no %q: use a Kubernetes cluster", c.path, name),
				}
			default:
				return problemf("%s.resources.limits: the local cluster cannot enforce a limit of %s; leave it out (hardware.cpus, hardware.memory), or use a Kubernetes cluster", c.path, name)
			}
		}
	}
	if gpus := GPUCount(j) * PodCount(j); gpus > m.GPUs {
		return problem{event.NeedsGPU, fmt.Sprintf("the run asks for %d GPUs, and this machine has %d", gpus, m.GPUs)}
	}
	return problem{}
}

// GPU is the resource that stands for a GPU of this machine.
const GPU = "nvidia.com/gpu"

// GPUCount returns how many GPUs each pod of a Job requests: its containers together, or an init container that ends before they start if
// that requests more.
func GPUCount(j *batchv1.Job) int {
	together, first := int64(0), int64(0)
	for _, c := range allContainers(j.Spec.Template.Spec) {
		q := c.Resources.Limits[GPU]
		n := min(max(0, q.Value()), 1<<16)
		if c.init && c.RestartPolicy == nil {
			first = max(first, n)
			continue
		}
		together += n
	}
	return int(max(together, first))
}

func limits(c locatedContainer) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for name := range c.Resources.Limits {
			if !yield(string(name)) {
				return
			}
		}
	}
}

// checkNamespaces checks, on a machine whose kernel refuses mount namespaces, that no volume is mounted at a path that only a mount
// namespace could show.
func checkNamespaces(j *batchv1.Job, m Machine) problem {
	if m.NoNamespaces == "" {
		return problem{}
	}
	for _, c := range allContainers(j.Spec.Template.Spec) {
		for _, v := range c.VolumeMounts {
			if at := path.Clean(v.MountPath); !IsRelocated(at) && at != SharedMemory {
				return problem{
					event.NeedsNamespaces,
					fmt.Sprintf("container %q mounts volume %q at %s, and this machine's kernel gives pods no mounts of their own: %s",
						c.Name, v.Name, at, m.NoNamespaces),
				}
			}
		}
	}
	return problem{}
}

// SharedMemory is the machine's own if there are no namespaces.
const SharedMemory = "/dev/shm"

// IsRelocated reports whether a path is one of the platform's, which processes find by their environment if it cannot be mounted.
func IsRelocated(at string) bool {
	for _, dir := range []string{pod.Dir, pod.SecretDir, pod.StateDir, pod.StepsDir} {
		if at == dir || strings.HasPrefix(at, dir+"/") {
			return true
		}
	}
	return false
}
