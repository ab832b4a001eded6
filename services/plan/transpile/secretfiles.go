package transpile

import (
	"path"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// secretFile is the name of the only file of a volume with a secret.
const secretFile = "secret"

// secretFiles returns the paths of the descriptor's files with secrets, in the order of their volumes.
func (b builder) secretFiles() []string { return orderedKeys(b.role.Env.SecretFiles, nil) }

// secretMounts returns the benchmark's mounts of the files with secrets. No other container has them.
func (b builder) secretMounts() []corev1.VolumeMount {
	var all []corev1.VolumeMount
	for i, file := range b.secretFiles() {
		all = append(all, corev1.VolumeMount{
			Name: cluster.VolumeSecretFile + strconv.Itoa(i), MountPath: path.Clean(file), SubPath: secretFile, ReadOnly: true,
		})
	}
	return all
}

// secretVolumes returns the volumes of secretMounts.
func (b builder) secretVolumes() []corev1.Volume {
	mode := int32(0o440)
	if !b.settings.OneMachine && b.volumeGroup() == nil {
		mode = 0o444
	}
	var all []corev1.Volume
	for i, file := range b.secretFiles() {
		ref := b.role.Env.SecretFiles[file]
		all = append(all, corev1.Volume{Name: cluster.VolumeSecretFile + strconv.Itoa(i), VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{
				SecretName: ref.Name, Items: []corev1.KeyToPath{{Key: ref.Key, Path: secretFile}}, DefaultMode: &mode,
			},
		}})
	}
	return all
}

// groupReadsSecrets reports whether the pod has a group that may read its files with secrets. Kubernetes gives the
// group all volumes that it can, so that a pod with a claim of the user has none.
func (b builder) groupReadsSecrets() bool {
	named := func(v descriptors.Volume) bool { return v.Claim != "" && b.mountsVolume(v) }
	return len(b.role.Env.SecretFiles) > 0 && !b.settings.OneMachine && !slices.ContainsFunc(b.in.Descriptor.Volumes, named)
}
