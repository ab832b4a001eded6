// Package inject puts the parts that pods of runs have into the pods of objects that users
// write (strategy manifest): labels, variables, data and the collector. It also gives the
// objects names that no other run has. The package is pure.
package inject

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// prefix begins the names of the platform's volumes and containers in a user's pod. No
// manifest has such a name.
const prefix = "bai-"

// measuredOf returns the container of a user's pod that is measured: the one called name, or
// else the first. It is nil for a pod without containers.
func measuredOf(spec *corev1.PodSpec, name string) *corev1.Container {
	for i := range spec.Containers {
		if spec.Containers[i].Name == name {
			return &spec.Containers[i]
		}
	}
	if len(spec.Containers) == 0 {
		return nil
	}
	return &spec.Containers[0]
}

// addParts adds to a user's pod the parts that the platform's pod has, whose only container is the
// measured one. Where both say something about the measured container, the user's pod wins;
// for the rules of the platform (labels, nodes, accounts, grace) the platform's does.
func addParts(own *corev1.PodTemplateSpec, measured *corev1.Container, platform corev1.PodTemplateSpec) {
	own.Labels, own.Annotations = over(own.Labels, platform.Labels), over(own.Annotations, platform.Annotations)
	ours := platform.Spec.DeepCopy()
	renameVolumes(ours)
	container(measured, ours.Containers[0])
	spec := &own.Spec
	for _, group := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range group {
			if ours.Containers[0].ImagePullPolicy != "" {
				group[i].ImagePullPolicy = ours.Containers[0].ImagePullPolicy
			}
		}
	}
	spec.InitContainers = append(ours.InitContainers, spec.InitContainers...)
	spec.Volumes = append(spec.Volumes, ours.Volumes...)
	spec.ImagePullSecrets = append(spec.ImagePullSecrets, ours.ImagePullSecrets...)
	spec.RestartPolicy = ours.RestartPolicy
	if most := ours.ActiveDeadlineSeconds; most != nil && (spec.ActiveDeadlineSeconds == nil || *spec.ActiveDeadlineSeconds > *most) {
		spec.ActiveDeadlineSeconds = most
	}
	spec.TerminationGracePeriodSeconds = ours.TerminationGracePeriodSeconds
	spec.AutomountServiceAccountToken, spec.EnableServiceLinks = ours.AutomountServiceAccountToken, ours.EnableServiceLinks
	schedule(spec, ours)
	secure(spec, ours)
}

// schedule sets on which nodes a pod may be, and when.
func schedule(spec, ours *corev1.PodSpec) {
	spec.NodeSelector = over(spec.NodeSelector, ours.NodeSelector)
	spec.Tolerations = append(spec.Tolerations, ours.Tolerations...)
	spec.Affinity = affinity(spec.Affinity, ours.Affinity)
	spec.SchedulerName = ours.SchedulerName
	if spec.PriorityClassName == "" {
		spec.PriorityClassName = ours.PriorityClassName
	}
}

// secure gives a pod what the platform's security context has and its own does not say.
func secure(spec, ours *corev1.PodSpec) {
	if spec.SecurityContext == nil {
		spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	spec.SecurityContext.SeccompProfile = ours.SecurityContext.SeccompProfile
	if ours.SecurityContext.RunAsNonRoot != nil {
		spec.SecurityContext.RunAsNonRoot = ours.SecurityContext.RunAsNonRoot
	}
	if spec.SecurityContext.FSGroup == nil {
		spec.SecurityContext.FSGroup = ours.SecurityContext.FSGroup
	}
}

// container completes the measured container. Its command runs under that of ours, which ends
// where a command begins. Without a command it runs as it is.
func container(own *corev1.Container, ours corev1.Container) {
	if own.Image == "" {
		own.Image = ours.Image
	}
	if len(own.Command) == 0 && len(own.Args) == 0 {
		own.Command, own.Args = ours.Command, ours.Args
	}
	own.Env = variables(ours.Env, own.Env)
	own.VolumeMounts = append(own.VolumeMounts, ours.VolumeMounts...)
	own.TerminationMessagePolicy = ours.TerminationMessagePolicy
	if len(own.Resources.Requests) == 0 && len(own.Resources.Limits) == 0 && len(own.Resources.Claims) == 0 {
		own.Resources = ours.Resources
	}
	if own.SecurityContext == nil || ours.SecurityContext != nil && ours.SecurityContext.Privileged != nil {
		own.SecurityContext = ours.SecurityContext
	}
}

// addVariables gives all containers of a user's pod variables of the platform. A variable of the
// same name wins.
func addVariables(spec *corev1.PodSpec, vars ...corev1.EnvVar) {
	for _, group := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range group {
			group[i].Env = variables(vars, group[i].Env)
		}
	}
}

// variables returns the variables of first that are not in last, then those of last.
func variables(first, last []corev1.EnvVar) []corev1.EnvVar {
	all := slices.DeleteFunc(slices.Clone(first), func(v corev1.EnvVar) bool {
		return slices.ContainsFunc(last, func(own corev1.EnvVar) bool { return own.Name == v.Name })
	})
	return append(all, last...)
}

// renameVolumes lets the names of the platform's volumes begin with prefix.
func renameVolumes(spec *corev1.PodSpec) {
	for i := range spec.Volumes {
		spec.Volumes[i].Name = prefix + spec.Volumes[i].Name
	}
	for _, group := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range group {
			for n := range group[i].VolumeMounts {
				group[i].VolumeMounts[n].Name = prefix + group[i].VolumeMounts[n].Name
			}
		}
	}
}

// over returns the entries of own with those of ours over them.
func over(own, ours map[string]string) map[string]string {
	all := maps.Clone(own)
	if all == nil {
		return maps.Clone(ours)
	}
	maps.Copy(all, ours)
	return all
}
