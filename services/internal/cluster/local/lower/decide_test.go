package lower_test

import (
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/lower"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
)

func input() lower.Input {
	always, grace, deadline, mode := corev1.ContainerRestartPolicyAlways, int64(7), int64(60), int32(0o500)
	labels := map[string]string{"l": "label"}
	return lower.Input{
		PodName: "run-x", PodUID: "pod-uid", Labels: labels, Dir: "/d/pods/u", State: "/d/live/u.json", Lock: "/d/live/u.lock", Binary: "/d/bin/bai-pod",
		ID: "u", Annotations: map[string]string{"a": "annotation"}, Node: "machine", IP: "127.0.0.1", HostIP: "127.0.0.1", Env: []string{"PATH=/bin", "HOME=/root"}, Namespaces: true, Private: "/d",
		ConfigMaps: map[string]*corev1.ConfigMap{"c": {Data: map[string]string{"k": "config", "k2": "two"}, BinaryData: map[string][]byte{"bin": {1}}}},
		Secrets:    map[string]*corev1.Secret{"s": {Data: map[string][]byte{"k": []byte("secret")}, StringData: map[string]string{"k3": "three"}}},
		Job: &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: "run", Namespace: "ns", UID: "u", CreationTimestamp: metav1.Unix(1000, 0)},
			Spec: batchv1.JobSpec{ActiveDeadlineSeconds: &deadline, Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": "annotation"}},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: &grace,
					Volumes: []corev1.Volume{
						{Name: "bai", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
						{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}},
						{Name: "script", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
							LocalObjectReference: corev1.LocalObjectReference{Name: "c"}, DefaultMode: &mode, Items: []corev1.KeyToPath{{Key: "k", Path: "a/b"}},
						}}},
					},
					InitContainers: []corev1.Container{
						{Name: "bai-install", Command: []string{"/bai-pod", "install", "/bai/bin/bai-pod"}, VolumeMounts: []corev1.VolumeMount{{Name: "bai", MountPath: "/bai"}}},
						{
							Name: "bai-collect", Command: []string{"/bai/bin/bai-pod-ship", "collect"}, RestartPolicy: &always,
							VolumeMounts: []corev1.VolumeMount{{Name: "bai", MountPath: "/bai"}, {Name: "secret", MountPath: "/bai-secret", ReadOnly: true}},
						},
					},
					Containers: []corev1.Container{{
						Name: "benchmark", Command: []string{"/bai/bin/bai-pod", "exec", "--", "/bai/script/a/b"}, Args: []string{"$(A)", "/bai-not-ours"},
						Env:          []corev1.EnvVar{{Name: "A", Value: "$(HOME)"}, {Name: "HOME", Value: "/bai/home"}, {Name: "AGAIN", Value: "$(HOME)"}},
						VolumeMounts: []corev1.VolumeMount{{Name: "bai", MountPath: "/bai"}, {Name: "script", MountPath: "/bai/script/", ReadOnly: true}},
					}},
				},
			}},
		},
	}
}

func TestAPodIsTranslatedWhole(t *testing.T) {
	t.Parallel()
	out, missing := lower.Pod(input())
	if missing != nil {
		t.Fatal(missing)
	}
	env := []string{"PATH=/bin", "HOME=/root"}
	bai := shimapi.Mount{Volume: "bai", Path: "/bai"}
	want := lower.Output{
		Pod: shimapi.Pod{
			ID: "u", State: "/d/live/u.json", Lock: "/d/live/u.lock", Namespaces: true, Binary: "/d/bin/bai-pod", Grace: 7 * time.Second, Deadline: time.Unix(1060, 0),
			Volumes: []shimapi.Volume{{Name: "bai", Path: "/d/pods/u/volumes/bai"}, {Name: "secret", Path: "/d/pods/u/volumes/secret"}, {Name: "script", Path: "/d/pods/u/volumes/script"}},
			Containers: []shimapi.Container{
				{Name: "bai-install", Kind: shimapi.Init, Args: []string{"/bai-pod", "install", "/bai/bin/bai-pod"}, Env: env, Mounts: []shimapi.Mount{bai}, MessagePath: "/dev/termination-log", RunsPodBinary: true},
				{Name: "bai-collect", Kind: shimapi.Sidecar, Args: []string{"/bai/bin/bai-pod-ship", "collect"}, Env: env, Mounts: []shimapi.Mount{bai, {Volume: "secret", Path: "/bai-secret", ReadOnly: true}}, MessagePath: "/dev/termination-log", RunsPodBinary: true},
				{
					Name: "benchmark", Kind: shimapi.Main, Args: []string{"/bai/bin/bai-pod", "exec", "--", "/bai/script/a/b", "$(HOME)", "/bai-not-ours"},
					Env: []string{"PATH=/bin", "HOME=/bai/home", "A=$(HOME)", "AGAIN=/bai/home"}, Mounts: []shimapi.Mount{bai, {Volume: "script", Path: "/bai/script", ReadOnly: true}},
					MessagePath: "/dev/termination-log", RunsPodBinary: true, HiddenDir: "/d",
				},
			},
		},
		Dirs: []string{"/d/pods/u/volumes/bai", "/d/pods/u/volumes/secret", "/d/pods/u/volumes/script"},
		Files: []lower.File{
			{Path: "/d/pods/u/volumes/secret/k", Data: []byte("secret"), Mode: 0o644},
			{Path: "/d/pods/u/volumes/secret/k3", Data: []byte("three"), Mode: 0o644},
			{Path: "/d/pods/u/volumes/script/a/b", Data: []byte("config"), Mode: 0o500},
		},
		Links: map[string]string{},
	}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAFileWithASecretHasTheUsersBytes(t *testing.T) {
	t.Parallel()
	in, mode := input(), int32(0o440)
	in.SecretFiles = map[string]*corev1.Secret{"aws": {Data: map[string][]byte{"credentials": []byte("[default]\n")}}}
	file := func(secret, key string) corev1.Volume {
		return corev1.Volume{Name: cluster.VolumeSecretFile + "0", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: secret, DefaultMode: &mode, Items: []corev1.KeyToPath{{Key: key, Path: "secret"}},
		}}}
	}
	for name, tt := range map[string]struct {
		volume  corev1.Volume
		files   []lower.File
		missing *lower.Missing
	}{
		"of its secret": {volume: file("aws", "credentials"), files: []lower.File{{Path: "/d/pods/u/volumes/secret-file-0/secret", Data: []byte("[default]\n"), Mode: 0o440}}},
		"of none":       {volume: file("gone", "credentials"), missing: &lower.Missing{Container: "benchmark", Message: `secret "gone" not found`}},
		"of no value":   {volume: file("aws", "gone"), missing: &lower.Missing{Container: "benchmark", Message: "references non-existent config key: gone"}},
	} {
		in.Job.Spec.Template.Spec.Volumes = append(input().Job.Spec.Template.Spec.Volumes, tt.volume)
		out, missing := lower.Pod(in)
		files := slices.DeleteFunc(out.Files, func(f lower.File) bool { return !strings.Contains(f.Path, cluster.VolumeSecretFile) })
		if diff := cmp.Diff([]any{tt.files, tt.missing}, []any{files, missing}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestASidecarHasLongerThanABenchmark(t *testing.T) {
	t.Parallel()
	in := input()
	in.Job.Spec.Template.Annotations = map[string]string{cluster.AnnotationGrace: "3"}
	out, missing := lower.Pod(in)
	if missing != nil {
		t.Fatal(missing)
	}
	if out.Pod.Grace != 3*time.Second || out.Pod.SidecarGrace != 7*time.Second {
		t.Errorf("the benchmark has %s, its sidecars have %s", out.Pod.Grace, out.Pod.SidecarGrace)
	}
}

func TestWithoutNamespacesWhatIsOursIsFoundByItsPlace(t *testing.T) {
	t.Parallel()
	in := input()
	in.Namespaces = false
	out, missing := lower.Pod(in)
	if missing != nil {
		t.Fatal(missing)
	}
	const bai, secret, script = "/d/pods/u/volumes/bai", "/d/pods/u/volumes/secret", "/d/pods/u/volumes/script"
	got := map[string][]string{}
	for _, c := range out.Pod.Containers {
		if len(c.Mounts) > 0 {
			t.Errorf("%s has mounts %+v", c.Name, c.Mounts)
		}
		got[c.Name] = slices.Concat(c.Args, slices.Sorted(slices.Values(c.Env)), []string{c.MessagePath})
	}
	own := func(name string) []string {
		return []string{"BAI_LOCAL_POD=u", "BAI_TERMINATION_MESSAGE=/d/pods/u/logs/" + name + ".message", "HOME=/root", "PATH=/bin", "/d/pods/u/logs/" + name + ".message"}
	}
	want := map[string][]string{
		"bai-install": append([]string{"/d/bin/bai-pod", "install", bai + "/bin/bai-pod", "BAI_DIR=" + bai}, own("bai-install")...),
		"bai-collect": append([]string{bai + "/bin/bai-pod-ship", "collect", "BAI_DIR=" + bai}, slices.Insert(own("bai-collect"), 1, "BAI_SECRET_DIR="+secret)...),
		"benchmark": append([]string{
			bai + "/bin/bai-pod", "exec", "--", script + "/a/b", "$(HOME)", "/bai-not-ours",
			"A=$(HOME)", "AGAIN=" + bai + "/home", "BAI_DIR=" + bai,
		}, slices.Replace(own("benchmark"), 2, 3, "HOME="+bai+"/home")...),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("arguments, environment, message (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{bai + "/script": script}, out.Links); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
}

func TestAVolumeWithinAnotherIsItsOwnWithoutNamespaces(t *testing.T) {
	t.Parallel()
	in := input()
	in.Namespaces = false
	of := &in.Job.Spec.Template.Spec
	of.Volumes = append(of.Volumes, corev1.Volume{Name: "programs", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	for _, all := range [][]corev1.Container{of.InitContainers, of.Containers} {
		for i := range all {
			all[i].VolumeMounts = append(all[i].VolumeMounts, corev1.VolumeMount{Name: "programs", MountPath: "/bai/bin", ReadOnly: true})
		}
	}
	out, missing := lower.Pod(in)
	if missing != nil {
		t.Fatal(missing)
	}
	const programs = "/d/pods/u/volumes/programs"
	for _, c := range out.Pod.Containers {
		if !slices.ContainsFunc(c.Args, func(arg string) bool { return path.Dir(arg) == programs }) {
			t.Errorf("%s runs %q", c.Name, c.Args)
		}
	}
	if got := out.Links["/d/pods/u/volumes/bai/bin"]; got != programs {
		t.Errorf("links %v", out.Links)
	}
}

func TestVariablesComeFromWhereTheyAreSaidTo(t *testing.T) {
	t.Parallel()
	yes := true
	name := func(n string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: n} }
	field := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	config := func(n, key string, optional *bool) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: name(n), Key: key, Optional: optional}}
	}
	secret := func(n, key string, optional *bool) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: name(n), Key: key, Optional: optional}}
	}
	for what, test := range map[string]struct {
		from    *corev1.EnvVarSource
		all     *corev1.EnvFromSource
		want    map[string]string
		missing string
	}{
		"the pod's name":           {from: field("metadata.name"), want: map[string]string{"V": "run-x"}},
		"the pod's UID":            {from: field("metadata.uid"), want: map[string]string{"V": "pod-uid"}},
		"the namespace":            {from: field("metadata.namespace"), want: map[string]string{"V": "ns"}},
		"the node":                 {from: field("spec.nodeName"), want: map[string]string{"V": "machine"}},
		"the address":              {from: field("status.podIP"), want: map[string]string{"V": "127.0.0.1"}},
		"a label":                  {from: field("metadata.labels['l']"), want: map[string]string{"V": "label"}},
		"a label that is not":      {from: field("metadata.labels['x']"), want: map[string]string{"V": ""}},
		"an annotation":            {from: field("metadata.annotations['a']"), want: map[string]string{"V": "annotation"}},
		"a ConfigMap's key":        {from: config("c", "k", nil), want: map[string]string{"V": "config"}},
		"no ConfigMap":             {from: config("x", "k", nil), missing: `configmap "x" not found`},
		"no ConfigMap, optional":   {from: config("x", "k", &yes), want: map[string]string{}},
		"no key of a ConfigMap":    {from: config("c", "x", nil), missing: "couldn't find key x in ConfigMap ns/c"},
		"a Secret's key":           {from: secret("s", "k", nil), want: map[string]string{"V": "secret"}},
		"no Secret":                {from: secret("x", "k", nil), missing: `secret "x" not found`},
		"no key of a Secret":       {from: secret("s", "x", nil), missing: "couldn't find key x in Secret ns/s"},
		"no key, optional":         {from: secret("s", "x", &yes), want: map[string]string{}},
		"a whole ConfigMap":        {all: &corev1.EnvFromSource{Prefix: "P_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: name("c")}}, want: map[string]string{"P_k": "config", "P_k2": "two", "P_bin": "\x01"}},
		"a whole Secret":           {all: &corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: name("s")}}, want: map[string]string{"k": "secret", "k3": "three"}},
		"no whole ConfigMap":       {all: &corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: name("x")}}, missing: `configmap "x" not found`},
		"no whole Secret, allowed": {all: &corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: name("x"), Optional: &yes}}, want: map[string]string{}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			got, missing := variables(test.from, test.all)
			if diff := cmp.Diff(test.missing, missing); diff != "" {
				t.Errorf("missing (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// variables returns the environment of a container that has one variable from a source, or all from a source, or the name of the missing
// object.
func variables(from *corev1.EnvVarSource, all *corev1.EnvFromSource) (map[string]string, string) {
	in := input()
	c := &in.Job.Spec.Template.Spec.Containers[0]
	in.Env, c.Env, c.EnvFrom = nil, nil, nil
	if from != nil {
		c.Env = []corev1.EnvVar{{Name: "V", ValueFrom: from}}
	} else {
		c.EnvFrom = []corev1.EnvFromSource{*all}
	}
	out, missing := lower.Pod(in)
	if missing != nil {
		return nil, missing.Message
	}
	return asMap(out.Pod.Containers[2].Env), ""
}

func asMap(env []string) map[string]string {
	m := map[string]string{}
	for _, e := range env {
		for i := range e {
			if e[i] == '=' {
				m[e[:i]] = e[i+1:]
				break
			}
		}
	}
	return m
}

func TestGPUsAreGivenToWhoAsksAndHiddenFromOthers(t *testing.T) {
	t.Parallel()
	in := input()
	in.HasGPUs, in.GPUs = true, []int{1, 3}
	in.Job.Spec.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")}
	out, missing := lower.Pod(in)
	if missing != nil {
		t.Fatal(missing)
	}
	for name, want := range map[string]string{"benchmark": "1,3", "bai-collect": ""} {
		i := slices.IndexFunc(out.Pod.Containers, func(c shimapi.Container) bool { return c.Name == name })
		if got, ok := asMap(out.Pod.Containers[i].Env)["CUDA_VISIBLE_DEVICES"]; !ok || got != want {
			t.Errorf("%s sees %q, want %q", name, got, want)
		}
	}
}

func TestAVolumeLacksWhatItsSourceLacks(t *testing.T) {
	t.Parallel()
	yes := true
	for what, test := range map[string]struct {
		source  corev1.VolumeSource
		missing string
		files   []string
	}{
		"no ConfigMap": {
			source:  corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "x"}}},
			missing: `configmap "x" not found`,
		},
		"no Secret":           {source: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "x"}}, missing: `secret "x" not found`},
		"no Secret, optional": {source: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "x", Optional: &yes}}},
		"no key": {
			source:  corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s", Items: []corev1.KeyToPath{{Key: "x", Path: "x"}}}},
			missing: "references non-existent config key: x",
		},
		"a path that leads out": {source: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s", Items: []corev1.KeyToPath{{Key: "k", Path: "../../x"}}}}},
		"all keys":              {source: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}}}, files: []string{"bin", "k", "k2"}},
	} {
		in := input()
		in.Job.Spec.Template.Spec.Volumes[0].VolumeSource = test.source
		out, missing := lower.Pod(in)
		if test.missing != "" {
			if diff := cmp.Diff(&lower.Missing{Volume: "bai", Message: test.missing}, missing); diff != "" {
				t.Errorf("%s: missing (-want +got):\n%s", what, diff)
			}
			continue
		}
		got := map[string]bool{}
		for _, f := range out.Files {
			got[f.Path] = true
		}
		want := map[string]bool{"/d/pods/u/volumes/secret/k": true, "/d/pods/u/volumes/secret/k3": true, "/d/pods/u/volumes/script/a/b": true}
		for _, f := range test.files {
			want["/d/pods/u/volumes/bai/"+f] = true
		}
		if !maps.Equal(want, got) {
			t.Errorf("%s: files %v, want %v (%v)", what, got, want, missing)
		}
	}
}
