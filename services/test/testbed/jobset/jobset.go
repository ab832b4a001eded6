// Package jobset gives a test JobSet (Apache-2.0), of the version that the module in the folder
// program pins: its kind of objects, its controller and the webhooks of that.
package jobset

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

// module is JobSet's own name for itself.
const module = "sigs.k8s.io/jobset"

// startup is how long the controller may take until its webhooks answer.
const startup = 10 * time.Minute

// Build builds the controller, or finds an earlier build. The first time takes some
// minutes.
func Build(ctx context.Context) (string, error) {
	return kit.Program(ctx, "jobset", module)
}

// Start has a cluster know JobSets, and the controller look after those of a namespace until the
// test ends. A cluster has one controller at a time.
func Start(tb testing.TB, c *testbed.Cluster, scope string) {
	tb.Helper()
	program, err := Build(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	config := folder(tb)
	kinds := filepath.Join(config, "components", "crd", "bases", "jobset.x-k8s.io_jobsets.yaml")
	ports, dir := port.ForTest(tb, 2), tb.TempDir()
	authority, err := webhook.WriteCertificate(dir, c.Host)
	if err != nil {
		tb.Fatal(err)
	}
	hooks, err := webhook.Configurations(filepath.Join(config, "components", "webhook", "manifests.yaml"), webhook.Settings{
		Name: "jobset-" + scope, Scope: scope, Address: fmt.Sprintf("https://%s:%d", c.Host, ports[0]), Authority: authority,
		Wanted: func(path string) bool { return strings.Contains(path, "-jobset-x-k8s-io-") }, // those of pods are for exclusive topologies
		Scoped: func(string) bool { return true },
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
			tb.Errorf("delete what JobSet needs: %v\n%s", err, out)
		}
	}
	tb.Cleanup(func() { undo(hookFile) })
	c.Run(tb, "apply", "--server-side", "-f", kinds)
	c.Run(tb, "wait", "--for=condition=Established", "--timeout=5m", "-f", kinds)
	run(tb, program, dir, c, ports)
	tb.Cleanup(func() { undo(kinds) }) // before the controller ends, which lets go of the objects
	c.Run(tb, "apply", "--server-side", "-f", hookFile)
	await(tb, c, scope)
}

// folder returns the folder with JobSet's manifests.
func folder(tb testing.TB) string {
	tb.Helper()
	root, err := kit.Root()
	if err != nil {
		tb.Fatal(err)
	}
	list := exec.CommandContext(tb.Context(), "go", "mod", "download", "-json", module)
	list.Dir, list.Env = filepath.Join(root, "services", "test", "testbed", "jobset", "program"), append(os.Environ(), "GOWORK=off")
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
	text := fmt.Sprintf(`apiVersion: config.jobset.x-k8s.io/v1alpha1
kind: Configuration
health: {healthProbeBindAddress: "127.0.0.1:%d"}
metrics: {bindAddress: "0"}
webhook: {host: %q, port: %d, certDir: %q}
leaderElection: {leaderElect: false}
internalCertManagement: {enable: false}
`, ports[1], c.Host, ports[0], dir)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	out, err := os.Create(log) //nolint:gosec // the test's
	if err != nil {
		tb.Fatal(err)
	}
	defer out.Close()                              //nolint:errcheck // the process has it
	p := exec.Command(program, "--config", config) //nolint:gosec,noctx // built here, and ends with the test
	p.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig)
	p.Stdout, p.Stderr = out, out
	if err := kit.Start(p); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = p.Process.Kill()                                          // it may have ended
		_ = p.Wait()                                                  // by our own signal
		if text, err := os.ReadFile(log); tb.Failed() && err == nil { //nolint:gosec // the test's
			tb.Logf("the last that JobSet logged:\n%s", text[max(0, len(text)-6000):])
		}
	})
}

// await waits until the API server can call the webhooks.
func await(tb testing.TB, c *testbed.Cluster, scope string) {
	tb.Helper()
	const probe = `{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","metadata":{"name":"probe"},"spec":{"replicatedJobs":[{"name":"a","template":{"spec":` +
		`{"template":{"spec":{"containers":[{"name":"a","image":"none:1"}]}}}}}]}}`
	file := filepath.Join(tb.TempDir(), "probe.json")
	if err := os.WriteFile(file, []byte(probe), 0o600); err != nil {
		tb.Fatal(err)
	}
	late := time.Now().Add(startup)
	for every := time.Tick(200 * time.Millisecond); ; <-every {
		out, err := c.Try(tb.Context(), "-n", scope, "create", "--dry-run=server", "-f", file)
		if err == nil {
			return
		}
		if time.Now().After(late) {
			tb.Fatalf("JobSet does not answer: %v\n%s", err, strings.TrimSpace(out))
		}
	}
}
