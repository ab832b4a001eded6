package kube_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
)

// object returns an object of a manifest with a status.
func object(apiVersion, kind, succeeded, failed string, spec, status map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "spec": spec, "status": status}}
	o.SetName("bai-r1-1")
	o.SetLabels(map[string]string{cluster.LabelRun: "r1", cluster.LabelAttempt: "1", cluster.LabelCopy: "2"})
	o.SetAnnotations(map[string]string{cluster.AnnotationSucceeded: succeeded, cluster.AnnotationFailed: failed})
	return o
}

func TestAnObjectStandsForAJobByTheConditionsInItsAnnotations(t *testing.T) {
	conditions := func(name string) map[string]any {
		return map[string]any{"conditions": []any{
			map[string]any{"type": name, "status": "True", "reason": "Why", "message": "so", "lastTransitionTime": "2026-01-02T03:04:05Z"},
		}}
	}
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	of := func(t batchv1.JobConditionType) []batchv1.JobCondition {
		return []batchv1.JobCondition{{Type: t, Status: corev1.ConditionTrue, Reason: "Why", Message: "so", LastTransitionTime: at}}
	}
	for name, row := range map[string]struct {
		object *unstructured.Unstructured
		want   []batchv1.JobCondition
	}{
		"that it has succeeded": {object("kubeflow.org/v1", "TFJob", "condition=Succeeded", "condition=Failed", nil, conditions("Succeeded")), of(batchv1.JobComplete)},
		"that it has failed":    {object("kubeflow.org/v1", "TFJob", "condition=Succeeded", "condition=Failed", nil, conditions("Failed")), of(batchv1.JobFailed)},
		"that it is held back":  {object("kubeflow.org/v1", "TFJob", "condition=Succeeded", "condition=Failed", nil, conditions("Suspended")), of(batchv1.JobSuspended)},
		"nothing yet":           {object("kubeflow.org/v1", "TFJob", "condition=Succeeded", "condition=Failed", nil, conditions("Running")), nil},
		"by a phase": {
			object("argoproj.io/v1alpha1", "Workflow", "jsonpath={.status.phase}=Succeeded", "jsonpath={.status.phase}=Failed|Error", nil, map[string]any{"phase": "Error", "message": "so"}),
			[]batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "Error", Message: "so"}},
		},
		"nothing, by a condition that cannot be read": {object("example.com/v1", "Widget", "phase", "", nil, conditions("Succeeded")), nil},
	} {
		t.Run(name, func(t *testing.T) {
			j, err := kube.JobFromObject(row.object)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(row.want, j.Status.Conditions); diff != "" {
				t.Error(diff)
			}
			if j.Name != "bai-r1-1" || j.Labels[cluster.LabelCopy] != "2" || j.Kind != "Job" {
				t.Errorf("%+v", j.ObjectMeta)
			}
		})
	}
}

func TestAnObjectHasItsDeadlineAndWhetherAQueueHoldsIt(t *testing.T) {
	spec := map[string]any{"runPolicy": map[string]any{"activeDeadlineSeconds": int64(60), "suspend": true}}
	j, err := kube.JobFromObject(object("kubeflow.org/v1", "TFJob", "condition=Succeeded", "", spec, nil))
	if err != nil || j.Spec.ActiveDeadlineSeconds == nil || *j.Spec.ActiveDeadlineSeconds != 60 || j.Spec.Suspend == nil || !*j.Spec.Suspend {
		t.Errorf("%+v, %v", j.Spec, err)
	}
}

func TestAnObjectThatEndsNoRunStandsForNoJob(t *testing.T) {
	o := object("example.com/v1", "Widget", "", "", nil, nil)
	if j, err := kube.JobFromObject(o); j != nil || err != nil {
		t.Errorf("%v, %v", j, err)
	}
	left, err := kube.StripUnused(o)
	if _, ok := left.(*unstructured.Unstructured); !ok || err != nil {
		t.Errorf("%T, %v", left, err)
	}
}

func TestTheMeasuredContainerHasTheSameNameInEveryPod(t *testing.T) {
	for name, row := range map[string]struct {
		command []string
		wrapped bool
	}{
		"one that runs under the platform's program":  {[]string{"/bai/bin/bai-pod", "exec", "--", "true"}, true},
		"one that runs under another, or by its own":  {[]string{"argoexec", "emissary"}, false},
		"one that runs the entrypoint of its image":   {nil, false},
		"one with the platform's program as argument": {[]string{"sh", "/bai/bin/bai-pod"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{cluster.AnnotationContainer: "main"}}}
			p.Spec.Containers = []corev1.Container{{Name: "wait", Command: []string{"w"}}, {Name: "main", Command: row.command}}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main"}, {Name: "wait"}}
			if _, err := kube.StripUnused(p); err != nil {
				t.Fatal(err)
			}
			if p.Spec.Containers[1].Name != cluster.ContainerBenchmark || p.Status.ContainerStatuses[0].Name != cluster.ContainerBenchmark || p.Spec.Containers[0].Name != "wait" {
				t.Errorf("%+v", p)
			}
			if cluster.RunsWithoutEntrypoint(*p) == row.wrapped {
				t.Errorf("runs without the entrypoint: %t", !row.wrapped)
			}
		})
	}
}

func TestKindsOfManifestsNeedTheirResources(t *testing.T) {
	kinds := map[string]bool{"Workflow.v1alpha1.argoproj.io": true, "PersistentVolumeClaim.v1": true}
	if err := kube.ValidateManifests(kube.Settings{}, kinds); err == nil || !strings.Contains(err.Error(), `"workflows.v1alpha1.argoproj.io"`) {
		t.Error(err)
	}
	if err := kube.ValidateManifests(kube.Settings{Kinds: []string{"workflows.v1alpha1.argoproj.io"}}, kinds); err != nil {
		t.Error(err)
	}
}
