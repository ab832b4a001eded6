// Package mpioperator gives a test Kubeflow's MPI operator (Apache-2.0), of the
// version that the module in the folder program pins.
package mpioperator

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/test/testbed"
	"github.com/benchmark-ai/bai/services/test/testbed/kit"
)

// program is the operator's own name for itself.
const program = "github.com/kubeflow/mpi-operator"

// patience is how long the API server may take to serve MPIJobs.
const patience = 10 * time.Minute

// definition is the name of that of MPIJobs.
const definition = "crd/mpijobs.kubeflow.org"

// users counts the tests of this process that need MPIJobs now.
var users struct { //nolint:gochecknoglobals // a cluster has one definition
	sync.Mutex

	count map[string]int  // by the cluster's kubeconfig
	ours  map[string]bool // clusters that did not know MPIJobs before
}

// Build builds the operator, or finds an earlier build. The first time takes some
// minutes.
func Build(ctx context.Context) (string, error) {
	return kit.Program(ctx, "mpioperator", program+"/cmd/mpi-operator")
}

// Install has a cluster know MPIJobs, until the last of the tests ends that need
// them, where it did not before.
func Install(tb testing.TB, c *testbed.Cluster) {
	tb.Helper()
	users.Lock()
	defer users.Unlock()
	if users.count == nil {
		users.count, users.ours = map[string]int{}, map[string]bool{}
	}
	users.count[c.Kubeconfig]++
	ctx := context.WithoutCancel(tb.Context())
	tb.Cleanup(func() { uninstall(ctx, tb, c) })
	if users.count[c.Kubeconfig] > 1 {
		return
	}
	if _, err := c.Try(tb.Context(), "get", definition); err != nil {
		users.ours[c.Kubeconfig] = true
		install(tb, c)
	}
}

// uninstall deletes the definition after the last test that needs it.
func uninstall(ctx context.Context, tb testing.TB, c *testbed.Cluster) {
	tb.Helper()
	users.Lock()
	defer users.Unlock()
	if users.count[c.Kubeconfig]--; users.count[c.Kubeconfig] > 0 || !users.ours[c.Kubeconfig] {
		return
	}
	delete(users.ours, c.Kubeconfig)
	if out, err := c.Try(ctx, "delete", definition, "--ignore-not-found", "--timeout=5m"); err != nil {
		tb.Errorf("delete %s: %v\n%s", definition, err, out)
	}
}

func install(tb testing.TB, c *testbed.Cluster) {
	tb.Helper()
	root, err := kit.Root()
	if err != nil {
		tb.Fatal(err)
	}
	list := exec.CommandContext(tb.Context(), "go", "mod", "download", "-json", program)
	list.Dir, list.Env = filepath.Join(root, "services", "test", "testbed", "mpioperator", "program"), append(os.Environ(), "GOWORK=off")
	out, err := list.Output()
	var module struct{ Dir string }
	if err == nil {
		err = json.Unmarshal(out, &module)
	}
	if err != nil {
		tb.Fatalf("download %s: %v\n%s", program, err, out)
	}
	c.Run(tb, "apply", "--server-side", "-f", filepath.Join(module.Dir, "manifests", "base", "kubeflow.org_mpijobs.yaml"))
	// Where there are no conditions yet, both kubectl wait and this fail.
	const established = `jsonpath={.status.conditions[?(@.type=="Established")].status}`
	for late := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		out, err := c.Try(tb.Context(), "get", definition, "-o", established)
		if err == nil && out == "True" {
			return
		}
		if time.Now().After(late) {
			tb.Fatalf("%s is not established after %s: %v: %s", definition, patience, err, out)
		}
	}
}

// Start installs the operator and has it look after the MPIJobs of a namespace
// until the test ends. It is built the first time, which takes some minutes.
func Start(tb testing.TB, c *testbed.Cluster, scope string) {
	tb.Helper()
	Install(tb, c)
	path, err := Build(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	log := filepath.Join(tb.TempDir(), "log")
	out, err := os.Create(log) //nolint:gosec // the test's
	if err != nil {
		tb.Fatal(err)
	}
	defer out.Close() //nolint:errcheck // the process has it
	//nolint:gosec,noctx // built here, and ends with the test
	p := exec.Command(path, "-kubeConfig", c.Kubeconfig, "-namespace", scope, "-lock-namespace", scope, "-kube-api-qps",
		"50", "-kube-api-burst", "100")
	p.Stdout, p.Stderr = out, out
	if err := kit.Start(p); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = p.Process.Kill()                                          // it may have ended
		_ = p.Wait()                                                  // by our own signal
		if text, err := os.ReadFile(log); tb.Failed() && err == nil { //nolint:gosec // the test's
			tb.Logf("the last that the MPI operator said:\n%s", text[max(0, len(text)-4000):])
		}
	})
}
