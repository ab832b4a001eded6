package transpile

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/plan/roles"
)

// execCommand returns the beginning of the command of the benchmark's container.
func (b builder) execCommand() []string {
	if !b.role.HasStep(descriptors.After) {
		return []string{pod.PathIn("", pod.Binary), "exec", "--"}
	}
	return []string{pod.PathIn("", pod.Binary), "exec", "--lock", "--"}
}

// stepContainers returns the containers of the steps that run at a time. Those before the
// benchmark are init containers, which run one after the other. Those after it start with
// it, and each waits for the one before it.
func (b builder) stepContainers(when descriptors.When) []corev1.Container {
	var all []corev1.Container
	after := ""
	if when == descriptors.After {
		after = pod.AfterBenchmark
	}
	for _, s := range b.role.Steps {
		if s.When != when {
			continue
		}
		all = append(all, b.stepContainer(s, after))
		if after != "" {
			after = s.Name
		}
	}
	return all
}

// alwaysContainers returns the containers of the steps that run always. They are sidecars,
// which a node tells to end once all other containers have ended, however they did: the last
// sidecar first, and each only when the one behind it has ended. So the last container is
// that of the step that runs first.
func (b builder) alwaysContainers() []corev1.Container {
	var all []corev1.Container
	for _, s := range b.role.Steps {
		if s.When != descriptors.Always {
			continue
		}
		c, always := b.stepContainer(s, ""), corev1.ContainerRestartPolicyAlways
		c.RestartPolicy = &always
		command := append([]string{pod.PathIn("", pod.Binary), "always", s.Name, s.Deadline.String()}, s.Needs...)
		c.Command = append(append(command, "--"), escapeNonVariables(s.Command)...)
		all = append(all, c)
	}
	slices.Reverse(all)
	return all
}

// stepContainer returns the container of a step that waits for another one, if after names
// one. A step before the benchmark has its resources. One after it asks for none: those would
// be added to those of the benchmark.
func (b builder) stepContainer(s roles.Step, after string) corev1.Container {
	command := []string{pod.PathIn("", pod.Binary), "step", s.Name, s.Deadline.String()}
	if after != "" {
		command = append(command, after)
	}
	c := corev1.Container{
		Name: s.Container(), Image: s.Env.DockerImage, Command: append(append(command, "--"), escapeNonVariables(s.Command)...),
		Env: b.stepEnv(s), VolumeMounts: b.stepMounts(s), ImagePullPolicy: b.settings.pullPolicy(s.Env),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext:          b.userSecurityContext(),
	}
	if s.When == descriptors.Before {
		c.Resources = b.stepResources()
	}
	return c
}

// stepEnv returns the variables of a step: those of the benchmark, but for those of metrics.
func (b builder) stepEnv(s roles.Step) []corev1.EnvVar {
	e := b.entrypointVars()
	e.set(pod.EnvStepOutput, outputDir(s.Name))
	e.set(pod.EnvRun, b.in.Run.Run)
	e.set(pod.EnvAttempt, strconv.Itoa(b.in.Run.Attempt))
	b.addUserVars(&e, s.Env)
	return e.vars
}

func outputDir(name string) string { return pod.StepsDir + "/" + name }

// stepMounts returns the mounts of a step: those of the benchmark, its own output, and that
// of the steps that have ended when it starts.
func (b builder) stepMounts(s roles.Step) []corev1.VolumeMount {
	mounts := b.sharedMounts()
	for _, other := range b.role.Steps {
		own := other.Name == s.Name
		mounts = append(mounts, corev1.VolumeMount{Name: other.Container(), MountPath: outputDir(other.Name), ReadOnly: !own})
		if own {
			break
		}
	}
	return mounts
}

// outputMounts returns read-only mounts of the output of the steps that run at a time.
func (b builder) outputMounts(when descriptors.When) []corev1.VolumeMount {
	var mounts []corev1.VolumeMount
	for _, s := range b.role.Steps {
		if s.When == when {
			mounts = append(mounts, corev1.VolumeMount{Name: s.Container(), MountPath: outputDir(s.Name), ReadOnly: true})
		}
	}
	return mounts
}

// outputVolumes returns a volume for the output of each step. They are in memory, where the
// kernel keeps them to their size.
func (b builder) outputVolumes() []corev1.Volume {
	var volumes []corev1.Volume
	for _, s := range b.role.Steps {
		memory := &corev1.EmptyDirVolumeSource{
			Medium:    corev1.StorageMediumMemory,
			SizeLimit: resource.NewQuantity(pod.MaxStepOutput, resource.BinarySI),
		}
		volumes = append(volumes, corev1.Volume{Name: s.Container(), VolumeSource: corev1.VolumeSource{EmptyDir: memory}})
	}
	return volumes
}
