//go:build linux

package executable_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/executable"
	"github.com/benchmark-ai/bai/services/internal/tooltest"
)

// startSSHD starts a server of ssh on loopback for the user of this process, and returns the command that runs sh behind it.
func startSSHD(t *testing.T) []string {
	t.Helper()
	sshd, ssh := tooltest.Program(t, "/usr/sbin/sshd", "openssh-server"), tooltest.Program(t, "ssh", "openssh-client")
	if os.Getuid() != 0 {
		tooltest.Missing(t, "only root can start a server of ssh that lets its user in")
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil { //nolint:gosec // as Debian's package makes it when the machine's sshd starts
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, key := range []string{"host", "user"} {
		if out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, key)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("Port %s\nListenAddress 127.0.0.1\nHostKey %s\nAuthorizedKeysFile %s\nPidFile none\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n",
		port, filepath.Join(dir, "host"), filepath.Join(dir, "user.pub"))
	if err := os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	server := exec.CommandContext(t.Context(), sshd, "-D", "-e", "-f", filepath.Join(dir, "config"))
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	to := []string{
		ssh, "-T", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR",
		"-i", filepath.Join(dir, "user"), "-p", port, me.Username + "@127.0.0.1", "sh", "-s",
	}
	for late := time.Now().Add(5 * time.Minute); time.Now().Before(late); time.Sleep(50 * time.Millisecond) {
		if exec.CommandContext(t.Context(), to[0], to[1:]...).Run() == nil { //nolint:gosec // the test's own command
			return to
		}
	}
	t.Fatal("the server of ssh has not let its user in for two minutes")
	return nil
}

func TestTheSampleEngineRunsPlansOverSSH(t *testing.T) {
	t.Parallel()
	local := sample(t)
	c := open(t, executable.Settings{Command: slices.Concat(local[:len(local)-2], startSSHD(t))})
	j := job("r1", "echo \"$SSH_CONNECTION\" | grep -q 127.0.0.1; exit 3")
	if err := c.Create(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	r := cluster.Ref{Run: "r1", Attempt: 1, Scope: "default", Job: j.Name}
	seen := await(t, c, r, func(s cluster.Snapshot) bool { return s.Pods[0].Status.Phase == corev1.PodFailed })
	if end := seen.Pods[0].Status.ContainerStatuses[0].State.Terminated; end == nil || end.ExitCode != 3 {
		t.Errorf("the benchmark ended with %+v, want exit code 3", end)
	}
	if err := c.Delete(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, c, r)
}
