package transpile

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// Volumes of the hosts file of a pod.
const (
	volumePeers = "peers"
	volumeHosts = "hosts"
)

// hostsPath is where programs look for the names of hosts.
const hostsPath = "/etc/hosts"

// hasPeers reports whether the pods of the role get a hosts file with the addresses of all
// pods of the run. One machine writes it by itself. The pods of a manifest have other names.
func (b builder) hasPeers() bool {
	return b.role.OtherPods > 0 && !b.settings.OneMachine && b.in.Descriptor.Hardware.Strategy != descriptors.FromManifest
}

// annotatePeers asks for the addresses of the pods of the run.
func (b builder) annotatePeers(annotations map[string]string) {
	if b.hasPeers() {
		annotations[cluster.AnnotationPods] = strconv.Itoa(b.role.OtherPods + 1)
	}
}

// hostsContainers returns the container that waits for the addresses of all pods of the run
// and writes them into the hosts file.
func (b builder) hostsContainers() []corev1.Container {
	if !b.hasPeers() {
		return nil
	}
	c := b.platformContainer(cluster.ContainerHosts, append([]string{pod.PathIn("", pod.Binary), "hosts"}, b.domains()...)...)
	c.Env = nil
	c.VolumeMounts = []corev1.VolumeMount{
		programsMount(true), {Name: volumePeers, MountPath: pod.PeersDir, ReadOnly: true}, {Name: volumeHosts, MountPath: pod.HostsDir},
	}
	return []corev1.Container{c}
}

// domains returns the domains of the names of the run's pods, the one of the full names first.
func (b builder) domains() []string {
	scope := b.settings.scope()
	all := []string{scope + ".svc." + cmp.Or(b.settings.Domain, "cluster.local"), scope + ".svc", scope}
	if b.role.Network == "" {
		return all
	}
	subdomain := b.names.Subdomain(b.role)
	for i := range all {
		all[i] = fmt.Sprintf("%s.%s", subdomain, all[i])
	}
	return append(all, subdomain)
}

// withHosts adds the hosts file to the mounts of a container that starts after the one which
// writes it, unless the user mounts a file of that name. The node then adds none of its own.
func (b builder) withHosts(mounts []corev1.VolumeMount) []corev1.VolumeMount {
	own := func(m corev1.VolumeMount) bool { return path.Clean(m.MountPath) == hostsPath }
	if !b.hasPeers() || slices.ContainsFunc(mounts, own) {
		return mounts
	}
	return append(mounts, corev1.VolumeMount{Name: volumeHosts, MountPath: hostsPath, SubPath: pod.HostsFile})
}

// hostsVolumes returns the volumes with the addresses of the run's pods, and with the hosts
// file.
func (b builder) hostsVolumes() []corev1.Volume {
	if !b.hasPeers() {
		return nil
	}
	peers := &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{{
		Path: pod.PeersFile, FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + cluster.AnnotationPeers + "']"},
	}}}
	return []corev1.Volume{
		{Name: volumePeers, VolumeSource: corev1.VolumeSource{DownwardAPI: peers}},
		{Name: volumeHosts, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
}
