package inject_test

import (
	"slices"
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

// ofHost returns a term for nodes with a label.
func ofHost(key string, values ...string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}}}
}

// both returns a term for nodes that two terms mean.
func both(a, b corev1.NodeSelectorTerm) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: slices.Concat(a.MatchExpressions, b.MatchExpressions), MatchFields: slices.Concat(a.MatchFields, b.MatchFields)}
}

func TestAPodIsWhereBothItAndThePlatformSay(t *testing.T) {
	mine, theirs := corev1.PodAffinityTerm{TopologyKey: "rack"}, corev1.PodAffinityTerm{TopologyKey: "host"}
	weighted := func(t corev1.PodAffinityTerm) []corev1.WeightedPodAffinityTerm {
		return []corev1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: t}}
	}
	prefer := func(t corev1.NodeSelectorTerm) []corev1.PreferredSchedulingTerm {
		return []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: t}}
	}
	require := func(terms ...corev1.NodeSelectorTerm) *corev1.NodeSelector {
		return &corev1.NodeSelector{NodeSelectorTerms: terms}
	}
	named := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n1"}}}}
	a, b, x := ofHost("zone", "a"), ofHost("zone", "b"), ofHost("disk", "ssd")
	for name, row := range map[string]struct{ own, platform, want corev1.Affinity }{
		"beside the pods that both require": {
			corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{mine}}},
			corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{theirs}}},
			corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{mine, theirs}}},
		},
		"beside pods that it prefers, and that the platform requires": {
			corev1.Affinity{PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: weighted(mine)}},
			corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{theirs}}},
			corev1.Affinity{PodAffinity: &corev1.PodAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: weighted(mine), RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{theirs},
			}},
		},
		"apart from pods of either": {
			corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: weighted(mine)}},
			corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: weighted(theirs)}},
			corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: slices.Concat(weighted(mine), weighted(theirs))}},
		},
		"on nodes that each prefers": {
			corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: prefer(a)}},
			corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: prefer(x)}},
			corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: slices.Concat(prefer(a), prefer(x))}},
		},
		"on nodes that it requires, and among them those that the platform prefers": {
			corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: require(a)}},
			corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: prefer(x)}},
			corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: require(a), PreferredDuringSchedulingIgnoredDuringExecution: prefer(x),
			}},
		},
		"on nodes that a term of each means": {
			corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: require(a, b)}},
			corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: require(x, named)}},
			corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: require(both(a, x), both(a, named), both(b, x), both(b, named))}},
		},
		"on no node that an empty term means, which means none": {
			corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: require(corev1.NodeSelectorTerm{}, a)}},
			corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: require(x)}},
			corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: require(corev1.NodeSelectorTerm{}, both(a, x))}},
		},
		"where the platform says, if it says nothing": {
			corev1.Affinity{},
			corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: require(x)}},
			corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: require(x)}},
		},
		"where it says, if the platform says nothing": {
			corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: require(a)}},
			corev1.Affinity{},
			corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: require(a)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			own, platform := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}, Affinity: &row.own}}, platformPod()
			platform.Spec.Affinity = &row.platform
			inject.AddParts(&own, inject.MeasuredOf(&own.Spec, "main"), platform)
			if diff := cmp.Diff(&row.want, own.Spec.Affinity); diff != "" {
				t.Error(diff)
			}
		})
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
