package transpile

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// step is a container that runs before the benchmark or after it.
type step struct {
	descriptors.Step

	env     descriptors.Env
	command []string
	script  string // text of the script that command runs; empty for none
}

// addSteps adds the steps of a descriptor, in the order in which they run.
func (r *role) addSteps(d *descriptors.Descriptor) error {
	for _, s := range slices.Concat(d.StepsOf(descriptors.Before), d.StepsOf(descriptors.After)) {
		one := d.ForStep(s)
		argv, args, err := one.Command()
		if err != nil {
			return unreadableCommandError(err)
		}
		made := step{Step: s, env: one.Env, command: argv}
		if _, text, ok := one.Script(); ok {
			made.command, made.script = slices.Concat(argv, []string{scriptDir + "/" + containerOfStep(s.Name)}, args), text
		}
		made.command = useKubernetesVariables(made.command, r.vars)
		r.steps = append(r.steps, made)
	}
	return nil
}

func containerOfStep(name string) string { return pod.ContainerStep + name }

// scripts returns the texts of the role's scripts, by the names of their files.
func (r role) scripts() map[string]string {
	var all map[string]string
	add := func(name, text string) {
		if text == "" {
			return
		}
		if all == nil {
			all = map[string]string{}
		}
		all[name] = text
	}
	add(scriptFile, r.script)
	for _, s := range r.steps {
		add(containerOfStep(s.Name), s.script)
	}
	return all
}

// stepNames returns the names of the steps in the order in which they run.
func (r role) stepNames() []string {
	var names []string
	for _, s := range r.steps {
		names = append(names, s.Name)
	}
	return names
}

// lastStep returns the name of the last step after the benchmark; empty if there is none.
func (r role) lastStep() string {
	if n := len(r.steps); n > 0 && r.steps[n-1].When == descriptors.After {
		return r.steps[n-1].Name
	}
	return ""
}

// execCommand returns the beginning of the command of the benchmark's container.
func (b builder) execCommand() []string {
	if b.role.lastStep() == "" {
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
	for _, s := range b.role.steps {
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

// stepContainer returns the container of a step that waits for another one, if after names
// one. A step before the benchmark has its resources. One after it asks for none: those would
// be added to those of the benchmark.
func (b builder) stepContainer(s step, after string) corev1.Container {
	command := []string{pod.PathIn("", pod.Binary), "step", s.Name, s.Deadline.String()}
	if after != "" {
		command = append(command, after)
	}
	c := corev1.Container{
		Name: containerOfStep(s.Name), Image: s.env.DockerImage, Command: append(append(command, "--"), escapeNonVariables(s.command)...),
		Env: b.stepEnv(s), VolumeMounts: b.stepMounts(s), ImagePullPolicy: b.settings.pullPolicy(s.env),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext:          b.userSecurityContext(),
	}
	if s.When == descriptors.Before {
		c.Resources = b.resources()
	}
	return c
}

// stepEnv returns the variables of a step: those of the benchmark, but for those of metrics.
func (b builder) stepEnv(s step) []corev1.EnvVar {
	e := b.entrypointVars()
	e.set(pod.EnvStepOutput, outputDir(s.Name))
	e.set(pod.EnvRun, b.in.Run.Run)
	e.set(pod.EnvAttempt, strconv.Itoa(b.in.Run.Attempt))
	b.addUserVars(&e, s.env)
	return e.vars
}

func outputDir(name string) string { return pod.StepsDir + "/" + name }

// stepMounts returns the mounts of a step: those of the benchmark, its own output, and that
// of the steps that have ended when it starts.
func (b builder) stepMounts(s step) []corev1.VolumeMount {
	mounts := b.sharedMounts()
	for _, other := range b.role.steps {
		own := other.Name == s.Name
		mounts = append(mounts, corev1.VolumeMount{Name: containerOfStep(other.Name), MountPath: outputDir(other.Name), ReadOnly: !own})
		if own {
			break
		}
	}
	return mounts
}

// outputMounts returns read-only mounts of the output of the steps that run at a time.
func (b builder) outputMounts(when descriptors.When) []corev1.VolumeMount {
	var mounts []corev1.VolumeMount
	for _, s := range b.role.steps {
		if s.When == when {
			mounts = append(mounts, corev1.VolumeMount{Name: containerOfStep(s.Name), MountPath: outputDir(s.Name), ReadOnly: true})
		}
	}
	return mounts
}

// outputVolumes returns a volume for the output of each step. They are in memory, where the
// kernel keeps them to their size.
func (b builder) outputVolumes() []corev1.Volume {
	var volumes []corev1.Volume
	for _, s := range b.role.steps {
		memory := &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: resource.NewQuantity(pod.MaxStepOutput, resource.BinarySI)}
		volumes = append(volumes, corev1.Volume{Name: containerOfStep(s.Name), VolumeSource: corev1.VolumeSource{EmptyDir: memory}})
	}
	return volumes
}
