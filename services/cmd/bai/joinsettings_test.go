package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/internal/blob"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
	"github.com/benchmark-ai/bai/services/internal/config"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/plan/transpile"
	"github.com/benchmark-ai/bai/services/watcher"
)

// serviceSettings has the settings that a service reads from the file.
type serviceSettings struct{ joinSettings }

// Validate implements config.Validator.
func (serviceSettings) Validate() error { return nil }

func TestAServiceThatJoinsHasTheSettingsOfThePlatform(t *testing.T) {
	want := joinSettings{
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
	text, err := want.text()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "services.toml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	var got serviceSettings
	if err := config.Load(path, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.joinSettings); diff != "" {
		t.Errorf("what was written (-) and what is read (+):\n%s\n%s", diff, text)
	}
}
