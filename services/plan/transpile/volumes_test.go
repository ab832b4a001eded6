package transpile_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/plan/transpile"
)

// claimsOf returns the claims among objects: name, size, access and class.
func claimsOf(all []cluster.Object) []string {
	var found []string
	for _, o := range all {
		if c, ok := o.(*corev1.PersistentVolumeClaim); ok {
			class := "default"
			if c.Spec.StorageClassName != nil {
				class = *c.Spec.StorageClassName
			}
			size := c.Spec.Resources.Requests[corev1.ResourceStorage]
			found = append(found, strings.Join([]string{strings.TrimPrefix(c.Name, "bai-"+runID+"-1-"), size.String(), string(c.Spec.AccessModes[0]), class}, " "))
		}
	}
	return found
}

// sharedPulls returns the data sets that the pullers of a role share.
func sharedPulls(t *testing.T, in transpile.Input, s transpile.Settings, role string) []int {
	t.Helper()
	all, err := transpile.Secrets(in, s, secret)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(s *corev1.Secret) bool { return s.Labels[cluster.LabelRole] == role })
	var pull pod.Pull
	if err := json.Unmarshal(all[i].Data[pod.PullFile], &pull); err != nil {
		t.Fatal(err)
	}
	return pull.Shared
}

// mountsByPath returns the volume of each path in a role's benchmark.
func mountsByPath(t *testing.T, p transpile.Workload, role string) map[string]string {
	t.Helper()
	at := make(map[string]string)
	for _, o := range p.Objects {
		j, ok := o.(*batchv1.Job)
		if !ok || j.Labels[cluster.LabelRole] != role {
			continue
		}
		for _, m := range j.Spec.Template.Spec.Containers[0].VolumeMounts {
			name := m.Name + " " + m.SubPath
			if m.ReadOnly {
				name += " read-only"
			}
			at[m.MountPath] = name
		}
	}
	return at
}

func TestDataAreSharedWhereARoleHasSeveralPodsAndTheClusterCan(t *testing.T) {
	in := input(t, "testdata/volumes.toml")
	in.Run.Data[0].Size, in.Run.Data[2].Size = 3<<30, 1<<30
	off, onOne := settings, settings
	off.Shared.Off = true
	onOne.Shared.Access, onOne.Shared.StorageClass = "ReadWriteOnce", "disk"
	for name, tt := range map[string]struct {
		settings transpile.Settings
		claims   []string
		shared   []int
		train    string
	}{
		"a claim as large as what is shared, and what is in it": {
			settings, []string{"worker-data 15Gi ReadWriteMany default", "volume-1 100Gi ReadWriteMany default"}, []int{0, 2}, "shared 0 read-only",
		},
		"of the class that settings name": {
			onOne, []string{"worker-data 15Gi ReadWriteOnce disk", "volume-1 100Gi ReadWriteMany default"}, []int{0, 2}, "shared 0 read-only",
		},
		"not where settings say so": {
			off, []string{"volume-1 100Gi ReadWriteMany default"}, nil, "data 0 read-only",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := objects(t, in, tt.settings)
			if diff := cmp.Diff(tt.claims, claimsOf(p.Objects)); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.shared, sharedPulls(t, in, tt.settings, "worker")); diff != "" {
				t.Errorf("the puller is told (-want +got):\n%s", diff)
			}
			at := mountsByPath(t, p, "worker")
			if at["/data/train"] != tt.train || at["/data/weights"] != "data 1" {
				t.Errorf("data lie at %q, want %q", at, tt.train)
			}
		})
	}
	in.Run.Descriptor = strings.NewReplacer(`strategy = "mpi"`, "", "role = \"worker\"\n", "", "role = \"launcher\"\n", "").Replace(in.Run.Descriptor)
	one := newInput(t, in.Run)
	if got := claimsOf(objects(t, one, settings).Objects); len(got) != 1 || sharedPulls(t, one, settings, "benchmark") != nil {
		t.Errorf("a single pod shares with nobody, and has %q", got)
	}
}

// volumeRights are the settings that decide whether a container may write to a volume.
type volumeRights struct {
	Root  bool
	Group int64
}

// TestAPullerMayWriteToAVolumeThatIsRoots: as root if pods may be root, otherwise with
// a group, and only if pods share data.
func TestAPullerMayWriteToAVolumeThatIsRoots(t *testing.T) {
	restricted, off := settings, settings
	restricted.Security, off.Shared.Off = transpile.Restricted, true
	in := replaceInDescriptor(t, input(t, "testdata/volumes.toml"), `nfs = { server = "nfs.example.org", path = "/export/results" }`, `claim = "results"`)
	for name, tt := range map[string]struct {
		settings transpile.Settings
		want     volumeRights
	}{
		"as root":            {settings, volumeRights{Root: true}},
		"as one of a group":  {restricted, volumeRights{Group: 65532}},
		"no more than usual": {off, volumeRights{}},
	} {
		var got volumeRights
		for _, o := range objects(t, in, tt.settings).Objects {
			if j, ok := o.(*batchv1.Job); ok && j.Labels[cluster.LabelRole] == "worker" {
				got = rightsOf(j.Spec.Template.Spec)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// rightsOf reports whether a pod's puller is root, and returns the group of its
// volumes.
func rightsOf(s corev1.PodSpec) (r volumeRights) {
	if s.SecurityContext.FSGroup != nil {
		r.Group = *s.SecurityContext.FSGroup
	}
	for _, c := range s.InitContainers {
		if c.Name == cluster.ContainerPull && c.SecurityContext.RunAsUser != nil {
			r.Root = *c.SecurityContext.RunAsUser == 0
		}
	}
	return r
}

func TestEachRoleMountsItsVolumes(t *testing.T) {
	p := objects(t, input(t, "testdata/volumes.toml"), settings)
	for role, want := range map[string][]string{
		"worker":   {"/exchange", "/fast", "/home/claim", "/scratch"},
		"launcher": {"/exchange", "/home/claim", "/results"},
	} {
		var got []string
		for path, volume := range mountsByPath(t, p, role) {
			if strings.HasPrefix(volume, "volume-") {
				got = append(got, path)
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s mounts (-want +got):\n%s", role, diff)
		}
	}
}

func TestAClusterThatEnforcesNoLimitsIsToldOfNoneOfADisk(t *testing.T) {
	s := settings
	s.NoLimits = true
	for _, o := range objects(t, input(t, "testdata/volumes.toml"), s).Objects {
		if j, ok := o.(*batchv1.Job); ok {
			for _, v := range j.Spec.Template.Spec.Volumes {
				if v.EmptyDir != nil && v.EmptyDir.SizeLimit != nil {
					t.Errorf("volume %s has a limit", v.Name)
				}
			}
		}
	}
}

const artifacts = `spec_version = "1.0"
[info]
description = "artifacts on volumes"
[hardware]
cpus = 1
[env]
docker_image = "example.org/x:1"
extended_shm = true
[ml]
benchmark_code = "train"
[[data.sources]]
src = "s3://data/a"
path = "/data/a"
[[data.sources]]
src = "s3://data/b"
path = "/data/b"
read_only = false
[[volumes]]
path = "/out"
ephemeral = { size = "1GiB" }
[[volumes]]
path = "/deep"
claim = "deep"
[[volumes]]
path = "/other"
ephemeral = { size = "1GiB" }
[output]
metrics = []
`

// TestTheCollectorSeesTheVolumesThatArtifactsLieOn: the mounts are read-only and at
// separate paths, so that no mount of the user's hides one of the platform's.
func TestTheCollectorSeesTheVolumesThatArtifactsLieOn(t *testing.T) {
	s := settings
	s.Gateway = "http://gateway:8080"
	for name, tt := range map[string]struct {
		paths []string
		seen  map[string]string // path below pod.VolumesDir -> volume and path on it
	}{
		"none":                              {nil, nil},
		"one on a volume":                   {[]string{"/out/*.json"}, map[string]string{"/out": "volume-0 "}},
		"a volume as a whole":               {[]string{"/out/"}, map[string]string{"/out": "volume-0 "}},
		"several on two":                    {[]string{"/out/x", "/out/y", "/deep/x"}, map[string]string{"/out": "volume-0 ", "/deep": "volume-1 "}},
		"data that may be written":          {[]string{"/data/b/x"}, map[string]string{"/data/b": "data 1"}},
		"the memory that processes share":   {[]string{"/dev/shm/x"}, map[string]string{"/dev/shm": "shm "}},
		"of the image, and of ours":         {[]string{"/outer", "/tmp", "/bai/run/output"}, nil},
		"a pattern that may match a volume": {[]string{"/o*/x"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputWithArtifacts(t, tt.paths...)
			if diff := cmp.Diff(tt.seen, collectorMounts(t, in, s), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var collect pod.Collect
			if err := json.Unmarshal(secrets(t, in, s).Data[pod.CollectFile], &collect); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(slices.Sorted(maps.Keys(tt.seen)), collect.Volumes, cmpopts.SortSlices(strings.Compare), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("it is told (-want +got):\n%s", diff)
			}
			if got := collectorMounts(t, in, settings); len(got) > 0 {
				t.Errorf("where nobody keeps artifacts it sees %v", got)
			}
		})
	}
}

// inputWithArtifacts returns a run whose artifacts have these paths.
func inputWithArtifacts(t *testing.T, paths ...string) transpile.Input {
	t.Helper()
	in := input(t, "testdata/volumes.toml")
	in.Run.Descriptor = artifacts
	for _, p := range paths {
		in.Run.Descriptor += "[[output.artifacts]]\npath = \"" + p + "\"\n"
	}
	return newInput(t, in.Run)
}

// collectorMounts returns the collector's mounts below pod.VolumesDir: path -> volume
// and path on it.
func collectorMounts(t *testing.T, in transpile.Input, s transpile.Settings) map[string]string {
	t.Helper()
	at := make(map[string]string)
	for _, m := range podOf(t, objects(t, in, s)).InitContainers[1].VolumeMounts {
		if path, ok := strings.CutPrefix(m.MountPath, pod.VolumesDir); ok && m.ReadOnly {
			at[path] = m.Name + " " + m.SubPath
		}
	}
	return at
}

// secretFilesOf returns the files with secrets of a role's benchmark, by path, as the mode, the group that may read
// them, and the place of the content.
func secretFilesOf(t *testing.T, p transpile.Workload, role string) map[string]string {
	t.Helper()
	spec, all := specOf(t, p, role), map[string]string{}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		for _, m := range c.VolumeMounts {
			i := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
			if !strings.HasPrefix(m.Name, cluster.VolumeSecretFile) || !m.ReadOnly || c.Name != cluster.ContainerBenchmark {
				continue
			}
			s := spec.Volumes[i].Secret
			all[m.MountPath] = fmt.Sprintf("%o %d %s/%s", *s.DefaultMode, rightsOf(spec).Group, s.SecretName, s.Items[0].Key)
			if s.Items[0].Path != m.SubPath {
				t.Errorf("%s mounts %q of the volume with %q", m.MountPath, m.SubPath, s.Items[0].Path)
			}
		}
	}
	return all
}

// specOf returns the pods of a role.
func specOf(t *testing.T, p transpile.Workload, role string) corev1.PodSpec {
	t.Helper()
	for _, o := range p.Objects {
		if j, ok := o.(*batchv1.Job); ok && j.Labels[cluster.LabelRole] == role {
			return j.Spec.Template.Spec
		}
	}
	t.Fatalf("there is no role %s", role)
	return corev1.PodSpec{}
}

func TestEveryUserOfAnImageReadsTheFilesWithSecrets(t *testing.T) {
	restricted, local := settings, settings
	restricted.Security, local.OneMachine = transpile.Restricted, true
	files := func(text string) string {
		return strings.Replace(text, "[env]\n", "[env]\nsecret_files = { \"/root/.aws/credentials\" = \"aws/credentials\", \"/root/key\" = \"aws/key\" }\n", 1)
	}
	want := func(rights string) map[string]string {
		return map[string]string{"/root/.aws/credentials": rights + " aws/credentials", "/root/key": rights + " aws/key"}
	}
	claim := "\n[[volumes]]\npath = \"/models\"\nclaim = \"models\"\n"
	for name, tt := range map[string]struct {
		text     string
		settings transpile.Settings
		role     string
		want     map[string]string
	}{
		"by a group of the pod":                      {plain, settings, "benchmark", want("440 65532")},
		"as any user, at the level restricted":       {plain, restricted, "benchmark", want("440 65532")},
		"whose volumes are not a group's":            {plain + claim, settings, "benchmark", want("444 0")},
		"as the user that owns them, on one machine": {plain + claim, local, "benchmark", want("440 0")},
		"in each pod of a strategy, by a worker":     {several, settings, "worker", want("440 65532")},
		"in each pod of a strategy, by a launcher":   {several, settings, "launcher", want("440 65532")},
	} {
		in := input(t, "testdata/volumes.toml")
		in.Run.Descriptor, in.Run.Data = files(tt.text), nil
		if diff := cmp.Diff(tt.want, secretFilesOf(t, objects(t, newInput(t, in.Run), tt.settings), tt.role)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// plain is a descriptor of one pod, and several one of several.
const (
	plain   = "spec_version = \"1.0\"\n[info]\ndescription = \"x\"\n[hardware]\ncpus = 1\n[env]\ndocker_image = \"alpine:3\"\n[ml]\nbenchmark_code = \"train\"\n"
	several = "spec_version = \"1.0\"\n[info]\ndescription = \"x\"\n[hardware]\ncpus = 1\nstrategy = \"mpi\"\n[env]\ndocker_image = \"alpine:3\"\n[ml]\nbenchmark_code = \"train\"\n"
)
