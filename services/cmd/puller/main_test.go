package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafkatest"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// TestProcess pulls as a pod does, and publishes its progress to a broker.
func TestProcess(t *testing.T) {
	broker := kafkatest.Start(t, event.TopicStatus)
	dir := t.TempDir()
	cfg := pod.Pull{
		Header: event.NewHeader("launch", "r1", "team", "me", time.Unix(0, 0).UTC()), Brokers: broker.Addrs, Store: "file://" + dir,
		Data: []event.Data{{Source: "http://x", Path: "/data/dogs", Object: "objects/d", SHA256: "23bcd2d83d4c0f270640ec65cbeb61a1784856255c3c98dd25ec340453458348", Size: 4}},
	}
	b, err := json.Marshal(cfg)
	if err := errors.Join(err, os.WriteFile(filepath.Join(dir, pod.PullFile), b, 0o600), os.Mkdir(filepath.Join(dir, "objects"), 0o700),
		os.WriteFile(filepath.Join(dir, "objects", "d"), []byte("dogs"), 0o600)); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{pod.EnvDir: filepath.Join(dir, "bai"), pod.EnvSecretDir: dir}
	if err := pull(t.Context(), func(name string) string { return env[name] }); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "bai", "data", "0")); err != nil || string(b) != "dogs" {
		t.Errorf("in place: %q, %v", b, err)
	}
	if got := broker.Read(t, event.TopicStatus).Value; !strings.Contains(got, "copied 1 of 1 data sets to the machine") {
		t.Errorf("status: %s", got)
	}
}

func TestASecretThatIsNotThereIsSaid(t *testing.T) {
	err := pull(t.Context(), func(string) string { return t.TempDir() })
	if err == nil || !strings.Contains(err.Error(), "read what to pull: open ") {
		t.Errorf("pull: %v", err)
	}
}
