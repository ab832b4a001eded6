package transpile

import (
	"cmp"
	"path"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/plan/refusal"
)

// Shared controls how the pods of a role share data (data.sources[].mount).
type Shared struct {
	Off          bool   `toml:"off"`           // each pod has a copy, even if a descriptor asks for shared data
	StorageClass string `toml:"storage_class"` // storage class of the volumes; empty means the cluster's default
	Access       string `toml:"access"`        // ReadWriteMany, or ReadWriteOnce if a run's pods share a node; empty means ReadWriteMany
}

// accessModes returns the values of Shared.Access.
func accessModes() []string {
	return []string{"", string(corev1.ReadWriteMany), string(corev1.ReadWriteOnce)}
}

// volumeShared is the name of the volume with a role's shared data.
const volumeShared = "shared"

// sharesDataSet reports whether the role's pods share data set n.
func (b builder) sharesDataSet(n int) bool {
	return b.role.Replicas > 1 && !b.settings.Shared.Off && n < len(b.role.Shared) && n < len(b.role.Data) && b.role.Shared[n]
}

// sharedDataSets returns the numbers of the data sets that the role's pods share.
func (b builder) sharedDataSets() []int {
	var all []int
	for n := range b.role.Data {
		if b.sharesDataSet(n) {
			all = append(all, n)
		}
	}
	return all
}

// dataMount returns the benchmark's mount of data set n.
func (b builder) dataMount(n int) corev1.VolumeMount {
	d := b.role.Data[n]
	m := corev1.VolumeMount{Name: volumeData, MountPath: path.Clean(d.Path), SubPath: strconv.Itoa(n), ReadOnly: !d.Writable}
	if b.sharesDataSet(n) {
		m.Name, m.ReadOnly = volumeShared, true
	}
	return m
}

// pullMounts returns the mounts into which the puller downloads the data.
func (b builder) pullMounts() []corev1.VolumeMount {
	all := []corev1.VolumeMount{{Name: volumeData, MountPath: pod.PathIn("", pod.Data)}}
	if len(b.sharedDataSets()) > 0 {
		all = append(all, corev1.VolumeMount{Name: volumeShared, MountPath: pod.PathIn("", pod.Shared)})
	}
	return all
}

// dataVolumes returns the volumes with the data.
func (b builder) dataVolumes() []corev1.Volume {
	if len(b.role.Data) == 0 {
		return nil
	}
	all := []corev1.Volume{{Name: volumeData, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	if len(b.sharedDataSets()) > 0 {
		all = append(all, corev1.Volume{Name: volumeShared, VolumeSource: claimVolumeSource(b.sharedClaimName())})
	}
	return all
}

// sharedClaimName returns the name of the claim for the role's shared data.
func (b builder) sharedClaimName() string { return b.name() + "-data" }

// runAsVolumeOwner lets a container write to a new volume, which belongs to root: the
// container runs as root, without other privileges. At the security level restricted,
// the volume belongs to a group of the pod instead (see volumeGroup).
func (b builder) runAsVolumeOwner(c *corev1.SecurityContext) {
	if b.settings.Security == Restricted {
		return
	}
	root, no := int64(0), false
	c.RunAsUser, c.RunAsNonRoot = &root, &no
}

// volumeGroup returns the group of the volumes of a pod that shares data at the security
// level restricted, or that has files with secrets, or nil if there is none.
func (b builder) volumeGroup() *int64 {
	shares := b.settings.Security == Restricted && len(b.sharedDataSets()) > 0
	if !shares && !b.groupReadsSecrets() {
		return nil
	}
	group := int64(65532)
	return &group
}

// claimVolumeSource returns the volume of a claim.
func claimVolumeSource(claim string) corev1.VolumeSource {
	return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}
}

// newClaim returns a claim of the run.
func (b builder) newClaim(name string, spec corev1.PersistentVolumeClaimSpec) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: b.meta(), Spec: spec}
	c.APIVersion, c.Kind, c.Name = "v1", "PersistentVolumeClaim", name
	return c
}

func claimSpec(size resource.Quantity, class, access string) corev1.PersistentVolumeClaimSpec {
	spec := corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.PersistentVolumeAccessMode(access)},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: size}},
	}
	if class != "" {
		spec.StorageClassName = &class
	}
	return spec
}

// maxUnpackRatio is the assumed maximum ratio of unpacked to packed size, for a volume
// whose size must be known in advance. The archive is on the volume too while it is
// unpacked.
const maxUnpackRatio = 10

// sharedClaim returns the claim for the data that the role's pods share, or nil if they
// share none.
func (b builder) sharedClaim() *corev1.PersistentVolumeClaim {
	common := b.sharedDataSets()
	if len(common) == 0 {
		return nil
	}
	const least, gib = 1, 1 << 30
	total := int64(0)
	for _, n := range common {
		d := b.role.Data[n]
		total += d.Size
		if d.Unpack {
			total += maxUnpackRatio * d.Size
		}
	}
	size := *resource.NewQuantity((total/gib+least)*gib, resource.BinarySI)
	return b.newClaim(b.sharedClaimName(),
		claimSpec(size, b.settings.Shared.StorageClass, cmp.Or(b.settings.Shared.Access, string(corev1.ReadWriteMany))))
}

// claims returns the claims that are created before a run's pods.
func claims(builders []builder) ([]cluster.Object, error) {
	var all []cluster.Object
	for _, b := range builders {
		if c := b.sharedClaim(); c != nil {
			all = append(all, c)
		}
	}
	b := builders[len(builders)-1]
	for i, v := range b.in.Descriptor.Volumes {
		if v.Template == nil {
			continue
		}
		size, err := resource.ParseQuantity(v.Template.Size)
		if err != nil {
			return nil, refusal.Descriptor("volumes[%d].template.size is %q, which is no size", i, v.Template.Size)
		}
		all = append(all, b.newClaim(b.volumeClaimName(i),
			claimSpec(size, v.Template.StorageClass, cmp.Or(v.Template.Access, string(corev1.ReadWriteOnce)))))
	}
	return all, nil
}

// volumeClaimName returns the name of the claim that is created for volume i of a run.
func (b builder) volumeClaimName(i int) string { return b.names.Shared(volumeName(i)) }

// volumeName returns the name of volume i of a descriptor in pods.
func volumeName(i int) string { return cluster.VolumeUser + strconv.Itoa(i) }

// mountsVolume reports whether the role's pods mount a volume.
func (b builder) mountsVolume(v descriptors.Volume) bool {
	return v.Role == "" || v.Role == b.role.Name
}

// userMounts returns the benchmark's mounts of the descriptor's volumes.
func (b builder) userMounts() []corev1.VolumeMount {
	var all []corev1.VolumeMount
	for i, v := range b.in.Descriptor.Volumes {
		if b.mountsVolume(v) {
			all = append(all, corev1.VolumeMount{Name: volumeName(i), MountPath: path.Clean(v.Path), ReadOnly: v.ReadOnly})
		}
	}
	return all
}

// userVolumes returns the descriptor's volumes.
func (b builder) userVolumes() []corev1.Volume {
	var all []corev1.Volume
	for i, v := range b.in.Descriptor.Volumes {
		if b.mountsVolume(v) {
			all = append(all, corev1.Volume{Name: volumeName(i), VolumeSource: b.userVolume(i, v)})
		}
	}
	return all
}

func (b builder) userVolume(i int, v descriptors.Volume) corev1.VolumeSource {
	switch {
	case v.Claim != "":
		s := claimVolumeSource(v.Claim)
		s.PersistentVolumeClaim.ReadOnly = v.ReadOnly
		return s
	case v.Template != nil:
		return claimVolumeSource(b.volumeClaimName(i))
	case v.NFS != nil:
		return corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: v.NFS.Server, Path: v.NFS.Path, ReadOnly: v.ReadOnly}}
	case v.Ephemeral != nil:
		return b.ephemeralVolumeSource(*v.Ephemeral)
	}
	return corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}} // no parsed descriptor has such a volume
}

// ephemeralVolumeSource returns a volume for a single pod: a claim with the lifetime of
// the pod, or space on the node's disk. The latter has no size limit on a cluster that
// enforces no limits.
func (b builder) ephemeralVolumeSource(e descriptors.Ephemeral) corev1.VolumeSource {
	size, err := resource.ParseQuantity(e.Size)
	if e.StorageClass != "" {
		spec := claimSpec(size, e.StorageClass, string(corev1.ReadWriteOnce))
		template := &corev1.PersistentVolumeClaimTemplate{Spec: spec}
		return corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: template}}
	}
	disk := &corev1.EmptyDirVolumeSource{}
	if err == nil && !b.settings.NoLimits {
		disk.SizeLimit = &size
	}
	return corev1.VolumeSource{EmptyDir: disk}
}
