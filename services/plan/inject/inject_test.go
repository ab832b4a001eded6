package inject_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/descriptors/manifest"
	"github.com/benchmark-ai/bai/services/plan/inject"
)

// platformPod returns a pod of the platform.
func platformPod() corev1.PodTemplateSpec {
	var p corev1.PodTemplateSpec
	no, grace, deadline := false, int64(60), int64(600)
	p.Labels, p.Annotations = map[string]string{"run": "r1"}, map[string]string{"grace": "60"}
	p.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: &no, TerminationGracePeriodSeconds: &grace, ActiveDeadlineSeconds: &deadline,
		SecurityContext: &corev1.PodSecurityContext{}, NodeSelector: map[string]string{"pool": "a"}, SchedulerName: "s", PriorityClassName: "p",
		Affinity:       &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "host"}}}},
		InitContainers: []corev1.Container{{Name: "bai-install", VolumeMounts: []corev1.VolumeMount{{Name: "data"}}}},
		Containers: []corev1.Container{{
			Image: "default:1", Command: []string{"bai-pod", "exec", "--", "default"}, Env: []corev1.EnvVar{{Name: "A", Value: "platform"}, {Name: "B", Value: "platform"}},
			VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}, ImagePullPolicy: corev1.PullAlways,
		}},
		Volumes: []corev1.Volume{{Name: "data"}},
	}
	return p
}

func TestAPodKeepsWhatItSaysAndGetsWhatPodsOfRunsHave(t *testing.T) {
	var own corev1.PodTemplateSpec
	own.Labels = map[string]string{"app": "mine", "run": "other"}
	yes, longer := true, int64(6000)
	own.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyAlways, AutomountServiceAccountToken: &yes, NodeSelector: map[string]string{"pool": "b", "disk": "ssd"}, ActiveDeadlineSeconds: &longer,
		Affinity:       &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "rack"}}}},
		InitContainers: []corev1.Container{{Name: "mine"}},
		Containers:     []corev1.Container{{Name: "aside"}, {Name: "main", Env: []corev1.EnvVar{{Name: "B", Value: "own"}}, VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/own"}}}},
		Volumes:        []corev1.Volume{{Name: "data"}},
	}
	inject.AddParts(&own, inject.MeasuredOf(&own.Spec, "main"), platformPod())
	s := own.Spec
	got := map[string]any{
		"labels": own.Labels, "selector": s.NodeSelector, "restart": s.RestartPolicy, "token": *s.AutomountServiceAccountToken, "deadline": *s.ActiveDeadlineSeconds,
		"init": []string{s.InitContainers[0].Name, s.InitContainers[1].Name}, "volumes": []string{s.Volumes[0].Name, s.Volumes[1].Name}, "first": s.Containers[0],
		"image": s.Containers[1].Image, "env": s.Containers[1].Env, "mounts": s.Containers[1].VolumeMounts, "command": s.Containers[1].Command,
		"apart": len(s.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution), "class": s.PriorityClassName,
	}
	want := map[string]any{
		"labels": map[string]string{"app": "mine", "run": "r1"}, "selector": map[string]string{"pool": "a", "disk": "ssd"}, "restart": corev1.RestartPolicyNever, "token": false,
		"deadline": int64(600), "init": []string{"bai-install", "mine"}, "volumes": []string{"data", "bai-data"}, "first": corev1.Container{Name: "aside", ImagePullPolicy: corev1.PullAlways},
		"image": "default:1", "env": []corev1.EnvVar{{Name: "A", Value: "platform"}, {Name: "B", Value: "own"}},
		"mounts":  []corev1.VolumeMount{{Name: "data", MountPath: "/own"}, {Name: "bai-data", MountPath: "/data"}},
		"command": []string{"bai-pod", "exec", "--", "default"}, "apart": 2, "class": "p",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTheMeasuredContainerIsTheOneOfItsNameOrTheFirst(t *testing.T) {
	spec := &corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}, {Name: "b"}}}
	for name, want := range map[string]string{"b": "b", "c": "a", "": "a"} {
		if c := inject.MeasuredOf(spec, name); c.Name != want {
			t.Errorf("%q: %s", name, c.Name)
		}
	}
	if c := inject.MeasuredOf(&corev1.PodSpec{}, "a"); c != nil {
		t.Error(c)
	}
}

func TestNamesBeginWithTheAttemptAndStayDifferent(t *testing.T) {
	long := strings.Repeat("a", 60)
	all, problems := manifest.Read("{apiVersion: v1, kind: ConfigMap, metadata: {name: conf}}\n---\n{apiVersion: batch/v1, kind: Job, metadata: {name: train}}\n---\n" +
		"{apiVersion: v1, kind: Service, metadata: {name: " + long + "b}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: " + long + "c}}")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	attempt := "bai-01jz0000000000000000000000-1"
	first, second := inject.NamesOf(attempt, 0, all, 1), inject.NamesOf(attempt, 1, all, 1)
	if first.Of(all[1]) != attempt || second.Of(all[1]) != attempt+"-1" || first.Of(all[0]) != attempt+"-conf" || second.Of(all[0]) != attempt+"-1-conf" {
		t.Errorf("%s %s %s %s", first.Of(all[1]), second.Of(all[1]), first.Of(all[0]), second.Of(all[0]))
	}
	seen := map[string]bool{}
	for _, n := range []inject.Names{first, second} {
		for _, d := range all {
			name := n.Of(d)
			if len(name) > 52 || seen[name] {
				t.Errorf("%s", name)
			}
			seen[name] = true
		}
	}
}

func TestASourceOfAClaimFollowsTheNameOfTheClaim(t *testing.T) {
	all, problems := manifest.Read("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: conf}}\n---\n{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: copy}, " +
		"spec: {dataSource: {kind: PersistentVolumeClaim, name: conf}, dataSourceRef: {kind: PersistentVolumeClaim, name: other}}}\n---\n{apiVersion: batch/v1, kind: Job, metadata: {name: train}}")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := map[string]any{
		"dataSource": map[string]any{"kind": "PersistentVolumeClaim", "name": "bai-r1-1-conf"}, "dataSourceRef": map[string]any{"kind": "PersistentVolumeClaim", "name": "other"},
	}
	if diff := cmp.Diff(want, inject.NamesOf("bai-r1-1", 0, all, 2).Rename(all[1].Object["spec"])); diff != "" {
		t.Error(diff)
	}
}

func TestReferencesToObjectsOfTheManifestFollowTheirNames(t *testing.T) {
	all, _ := manifest.Read("{apiVersion: v1, kind: ConfigMap, metadata: {name: conf}}\n---\n{apiVersion: v1, kind: Service, metadata: {name: conf}}\n---\n" +
		"{apiVersion: batch/v1, kind: Job, metadata: {name: train}, spec: {subdomain: conf, volumes: [{configMap: {name: conf}}, {configMap: {name: other}}], env: [{valueFrom: {configMapKeyRef: {name: conf, key: conf}}}], name: conf}}")
	n := inject.NamesOf("bai-r1-1", 0, all, 2)
	want := map[string]any{
		"subdomain": "bai-r1-1-conf", "volumes": []any{map[string]any{"configMap": map[string]any{"name": "bai-r1-1-conf"}}, map[string]any{"configMap": map[string]any{"name": "other"}}},
		"env": []any{map[string]any{"valueFrom": map[string]any{"configMapKeyRef": map[string]any{"name": "bai-r1-1-conf", "key": "conf"}}}}, "name": "conf",
	}
	if diff := cmp.Diff(want, n.Rename(all[2].Object["spec"])); diff != "" {
		t.Error(diff)
	}
	if spec, ok := all[2].Object["spec"].(map[string]any); !ok || spec["subdomain"] != "conf" {
		t.Error("the manifest has changed")
	}
}
