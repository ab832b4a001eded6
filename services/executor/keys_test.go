package executor_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/internal/tooltest"
)

const mpiDescriptor = `spec_version = "1.0"
[info]
description = "x"
[hardware]
cpus = 1
strategy = "mpi"
[env]
docker_image = "debian:12"
[ml]
benchmark_code = "./rank"
`

// TestKeysAreWhatSSHReads checks the keys with ssh-keygen, if it is installed.
func TestKeysAreWhatSSHReads(t *testing.T) {
	keygen := tooltest.Program(t, "ssh-keygen", "openssh-client")
	keys := launchedKeys(t)
	dir := t.TempDir()
	for file, text := range keys {
		if err := os.WriteFile(filepath.Join(dir, file), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	public := func(file string) string {
		out, err := exec.CommandContext(t.Context(), keygen, "-y", "-f", filepath.Join(dir, file)).CombinedOutput() //nolint:gosec // found above
		if err != nil {
			t.Fatalf("%s: %v: %s", file, err, out)
		}
		return strings.Join(strings.Fields(string(out))[:2], " ")
	}
	if got, want := public("id"), string(keys["id.pub"]); want != got+" launcher\n" {
		t.Errorf("the launcher's key is %s, and workers are told %s", got, want)
	}
	if got, want := public("host"), string(keys["known_hosts"]); want != "worker "+got+"\n" {
		t.Errorf("the workers' key is %s, and the launcher is told %s", got, want)
	}
}

// launchedKeys returns the keys in the pods of an MPI run.
func launchedKeys(t *testing.T) (keys map[string][]byte) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		w.runDuration = time.Hour
		run := fetched("r1")
		run.Descriptor = mpiDescriptor
		stop := w.start(executor.Settings{Slots: 1})
		w.publish(run)
		time.Sleep(2 * time.Second)
		if secret, ok := w.cluster.object("Secret bai-r1-1-keys").(*corev1.Secret); ok {
			keys = secret.Data
		}
		w.cancel("r1")
		time.Sleep(2 * time.Second)
		stop()
	})
	if len(keys) == 0 {
		t.Fatal("there is no Secret with keys")
	}
	return keys
}
