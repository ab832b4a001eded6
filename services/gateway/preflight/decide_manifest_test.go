package preflight_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/benchmark-ai/bai/services/gateway/preflight"
	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// tfJob returns a TFJob of a manifest with two workers, each of which asks for CPUs.
func tfJob(cpus string) *unstructured.Unstructured {
	template := map[string]any{
		"metadata": map[string]any{"labels": map[string]any{cluster.LabelRole: "benchmark"}, "annotations": map[string]any{cluster.AnnotationContainer: "tensorflow"}},
		"spec": map[string]any{"containers": []any{map[string]any{
			"name": "tensorflow", "image": "image:1", "command": []any{"train"}, "resources": map[string]any{"limits": map[string]any{"cpu": cpus}},
		}}},
	}
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kubeflow.org/v1", "kind": "TFJob",
		"spec": map[string]any{"tfReplicaSpecs": map[string]any{"Worker": map[string]any{"replicas": int64(2), "template": template}}},
	}}
	o.SetName("bai-x-1")
	o.SetAnnotations(map[string]string{cluster.AnnotationSucceeded: "condition=Succeeded"})
	return o
}

func TestAKindThatTheClusterLacksNamesItsOperator(t *testing.T) {
	n := preflight.Requirements{Objects: []cluster.Object{tfJob("1")}}
	kind := schema.GroupVersionKind{Group: "kubeflow.org", Version: "v1", Kind: "TFJob"}
	q := preflight.NewInquiry(n, preflight.Settings{Executor: "e", Watcher: "w"})
	if !slices.Contains(q.Kinds, kind) {
		t.Errorf("it asks for %v", q.Kinds)
	}
	for _, r := range []cluster.Permission{
		{Account: "e", Verb: "create", Group: "kubeflow.org", Resource: "tfjobs"}, {Account: "w", Verb: "watch", Group: "kubeflow.org", Resource: "tfjobs"},
	} {
		if !slices.Contains(q.Permissions, r) {
			t.Errorf("%+v is not asked for", r)
		}
	}
	for _, c := range preflight.Decide(n, cluster.Survey{Kinds: map[schema.GroupVersionKind]cluster.Answer{kind: {}}}) {
		if c.Topic == preflight.TopicKinds && c.Grade == preflight.Fault && strings.Contains(c.Remedy, "training operator (kubeflow.org/v1) brings it") {
			return
		}
	}
	t.Error("nothing says what brings it")
}

func TestPodsOfAKnownKindAreHeldAgainstTheNodes(t *testing.T) {
	nodes := []corev1.Node{node("a", map[string]string{"cpu": "4", "ephemeral-storage": "50Gi"})}
	for cpus, fits := range map[string]bool{"1": true, "8": false} {
		checks := preflight.Decide(preflight.Requirements{Objects: []cluster.Object{tfJob(cpus)}}, cluster.Survey{Nodes: nodes})
		faulty := slices.ContainsFunc(checks, func(c preflight.Check) bool { return c.Topic == preflight.TopicNodes && c.Grade == preflight.Fault })
		if faulty == fits {
			t.Errorf("%s CPUs: %+v", cpus, checks)
		}
	}
}

func TestTheWatcherNeedsTheLogsOfPodsThatAreFollowed(t *testing.T) {
	for kind, annotations := range map[string]map[string]string{"Workflow": nil, "Widget": {cluster.AnnotationPodSelector: "of=bai-x-1"}} {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "argoproj.io/v1alpha1", "kind": kind}}
		o.SetAnnotations(annotations)
		q := preflight.NewInquiry(preflight.Requirements{Objects: []cluster.Object{o}}, preflight.Settings{Watcher: "w"})
		if r := (cluster.Permission{Account: "w", Verb: "get", Resource: "pods/log"}); !slices.Contains(q.Permissions, r) {
			t.Errorf("%s: %+v is not asked for", kind, r)
		}
	}
}
