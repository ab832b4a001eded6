// Package kueue gives a test Kueue (Apache-2.0), of the version that the module in the
// folder program pins: its kinds of objects, its controller and the webhooks of that.
package kueue

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/test/testbed"
	"github.com/benchmark-ai/bai/services/test/testbed/kit"
	"github.com/benchmark-ai/bai/services/test/testbed/port"
	"github.com/benchmark-ai/bai/services/test/testbed/webhook"
)

// module is Kueue's own name for itself.
const module = "sigs.k8s.io/kueue"

// startup is how long the controller may take until its webhooks answer.
const startup = 10 * time.Minute

// Build builds the controller, or finds an earlier build. The first time takes some
// minutes.
func Build(ctx context.Context) (string, error) {
	return kit.Program(ctx, "kueue", module+"/cmd/kueue")
}

// Start has a cluster know Kueue, and the controller look after the Jobs of a namespace
// that name a queue, until the test ends. A cluster has one controller at a time.
func Start(tb testing.TB, c *testbed.Cluster, scope string) {
	tb.Helper()
	program, err := Build(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	config := folder(tb)
	kinds := filepath.Join(config, "components", "crd", "bases")
	ports, dir := port.ForTest(tb, 2), tb.TempDir()
	authority, err := webhook.WriteCertificate(dir, c.Host)
	if err != nil {
		tb.Fatal(err)
	}
	hooks, err := webhook.Configurations(filepath.Join(config, "components", "webhook", "manifests.yaml"), webhook.Settings{
		Name: "kueue-" + scope, Scope: scope, Address: fmt.Sprintf("https://%s:%d", c.Host, ports[0]), Authority: authority,
		Wanted: wanted, Scoped: ofJobs,
	})
	if err != nil {
		tb.Fatal(err)
	}
	hookFile := filepath.Join(dir, "webhooks.json")
	if err := os.WriteFile(hookFile, hooks, 0o600); err != nil {
		tb.Fatal(err)
	}
	undo := func(what string) {
		tb.Helper()
		if out, err := c.Try(context.WithoutCancel(tb.Context()), "delete", "-f", what, "--ignore-not-found", "--timeout=5m"); err != nil {
			tb.Errorf("delete what Kueue needs: %v\n%s", err, out)
		}
	}
	tb.Cleanup(func() { undo(hookFile) })
	c.Run(tb, "apply", "--server-side", "-f", kinds)
	c.Run(tb, "wait", "--for=condition=Established", "--timeout=5m", "-f", kinds)
	run(tb, program, dir, c, ports)
	tb.Cleanup(func() { undo(kinds) }) // before the controller ends, which lets go of the objects
	c.Run(tb, "apply", "--server-side", "-f", hookFile)
	await(tb, c)
}

// ofJobs reports whether a webhook is about Jobs: it is not called for those of other tests.
func ofJobs(path string) bool { return strings.HasSuffix(path, "-batch-v1-job") }

// wanted reports whether a webhook is about Kueue's own objects or Jobs.
func wanted(path string) bool {
	return strings.Contains(path, "-kueue-x-k8s-io-v1beta1-") || ofJobs(path)
}

// folder returns the folder with Kueue's manifests.
func folder(tb testing.TB) string {
	tb.Helper()
	root, err := kit.Root()
	if err != nil {
		tb.Fatal(err)
	}
	list := exec.CommandContext(tb.Context(), "go", "mod", "download", "-json", module)
	list.Dir, list.Env = filepath.Join(root, "services", "test", "testbed", "kueue", "program"), append(os.Environ(), "GOWORK=off")
	out, err := list.Output()
	var found struct{ Dir string }
	if err == nil {
		err = json.Unmarshal(out, &found)
	}
	if err != nil {
		tb.Fatalf("download %s: %v\n%s", module, err, out)
	}
	return filepath.Join(found.Dir, "config")
}

// run starts the controller, which ends with the test.
func run(tb testing.TB, program, dir string, c *testbed.Cluster, ports []int) {
	tb.Helper()
	config, log := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "log")
	text := fmt.Sprintf(`apiVersion: config.kueue.x-k8s.io/v1beta1
kind: Configuration
health: {healthProbeBindAddress: "127.0.0.1:%d"}
metrics: {bindAddress: "0"}
webhook: {host: %q, port: %d, certDir: %q}
leaderElection: {leaderElect: false}
internalCertManagement: {enable: false}
integrations: {frameworks: [batch/job]}
`, ports[1], c.Host, ports[0], dir)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	out, err := os.Create(log) //nolint:gosec // the test's
	if err != nil {
		tb.Fatal(err)
	}
	defer out.Close()                                                                                               //nolint:errcheck // the process has it
	p := exec.Command(program, "--config", config, "--feature-gates=VisibilityOnDemand=false", "--zap-log-level=2") //nolint:gosec,noctx // built here, and ends with the test
	p.Env, p.Stdout, p.Stderr = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig), out, out
	if err := kit.Start(p); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = p.Process.Kill()                                          // it may have ended
		_ = p.Wait()                                                  // by our own signal
		if text, err := os.ReadFile(log); tb.Failed() && err == nil { //nolint:gosec // the test's
			tb.Logf("the last that Kueue logged:\n%s", text[max(0, len(text)-6000):])
		}
	})
}

// await waits until the API server can call the webhooks.
func await(tb testing.TB, c *testbed.Cluster) {
	tb.Helper()
	const probe = `{"apiVersion":"kueue.x-k8s.io/v1beta1","kind":"ResourceFlavor","metadata":{"name":"probe"}}`
	file := filepath.Join(tb.TempDir(), "probe.json")
	if err := os.WriteFile(file, []byte(probe), 0o600); err != nil {
		tb.Fatal(err)
	}
	late := time.Now().Add(startup)
	for every := time.Tick(200 * time.Millisecond); ; <-every {
		out, err := c.Try(tb.Context(), "create", "--dry-run=server", "-f", file)
		if err == nil {
			return
		}
		if time.Now().After(late) {
			tb.Fatalf("Kueue does not answer: %v\n%s", err, strings.TrimSpace(out))
		}
	}
}
