package joining_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/cmd/bai/internal/joining"
	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/internal/blob"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/plan/transpile"
	"github.com/benchmark-ai/bai/services/watcher"
)

func TestAServiceThatJoinsHasTheSettingsOfThePlatform(t *testing.T) {
	want := joining.Settings{
		Store:      "/data/a \"b\"\\c/store.db",
		Objects:    blob.Settings{URL: "file:///data/objects", PodURL: "http://10.0.0.1:1/secret"},
		Kafka:      kafka.Settings{Brokers: []string{"10.0.0.1:9092"}, KeyFile: "/data/token.key", Session: time.Second},
		Kubernetes: &kube.Settings{Kubeconfig: "/config", Namespace: "benchmarks", QPS: 20, Kinds: []string{"mpijobs.v2beta1.kubeflow.org"}},
		Executor: &executor.Settings{
			Slots: 20, PerLabel: map[string]int{"a=b": 2}, Lease: 3 * time.Second,
			Pods: transpile.Settings{Image: "bai-pod:1", Brokers: []string{"10.0.0.1:9092"}, Instances: "big 8\n", Grace: 4 * time.Second},
		},
		Watcher: &watcher.Settings{PendingDeadline: time.Minute},
	}
	dir := t.TempDir()
	for range 2 { // a platform starts again
		if err := want.Write(dir); err != nil {
			t.Fatal(err)
		}
	}
	got, err := joining.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what was written (-) and what is read (+):\n%s", diff)
	}
}
