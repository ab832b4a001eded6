// Package kwok gives a test simulated nodes: KWOK of the Kubernetes project sets the
// states of nodes and pods as a kubelet would.
//
// The file stages.yaml defines the life of a pod. Such a pod has no container: it has no
// output, no exit message and no data.
package kwok

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/benchmark-ai/bai/services/test/testbed"
	"github.com/benchmark-ai/bai/services/test/testbed/kit"
)

// EndsAfter is the label that says after which time, as in 3s, a pod that runs
// ends well. One without it runs for ever.
const EndsAfter = "ends-after"

//go:embed stages.yaml
var stages []byte

// Build builds KWOK, or finds an earlier build. The first time takes some minutes.
func Build(ctx context.Context) (string, error) {
	return kit.Program(ctx, "kwok", "sigs.k8s.io/kwok/cmd/kwok")
}

// Start has KWOK take care of the nodes that Node makes, for as long as the test
// lasts.
func Start(tb testing.TB, c *testbed.Cluster) {
	tb.Helper()
	dir := tb.TempDir()
	config, log := filepath.Join(dir, "stages.yaml"), filepath.Join(dir, "log")
	if err := os.WriteFile(config, stages, 0o600); err != nil {
		tb.Fatal(err)
	}
	out, err := os.Create(log) //nolint:gosec // the test's
	if err != nil {
		tb.Fatal(err)
	}
	defer out.Close() //nolint:errcheck // the process has it
	program, err := Build(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	//nolint:gosec,noctx // built here, and ends with the test
	p := exec.Command(program, "--config", config, "--kubeconfig", c.Simulator, "--manage-nodes-with-annotation-selector", annotation,
		"--node-lease-duration-seconds", "40", "--node-ip", "127.0.0.1")
	p.Env = append(os.Environ(), "HOME="+dir)
	p.Stdout, p.Stderr = out, out
	if err := kit.Start(p); err != nil {
		tb.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		err = p.Wait()
		close(ended)
	}()
	tb.Cleanup(func() {
		select {
		case <-ended:
			tb.Errorf("kwok ended by itself: %v", err)
		default:
			_ = p.Process.Kill() // it may be ending
			<-ended              // by our own signal
		}
		if text, err := os.ReadFile(log); tb.Failed() && err == nil { //nolint:gosec // the test's
			tb.Logf("the last that kwok said:\n%s", text[max(0, len(text)-4000):])
		}
	})
}

// annotation marks the nodes that are KWOK's.
const annotation = "kwok.x-k8s.io/node=fake"

// Node returns a node, as JSON, which is ready once it is created. It has place
// for as many pods as it has processors.
func Node(name string, processors int, labels map[string]string) string {
	all := map[string]string{"kubernetes.io/hostname": name}
	maps.Copy(all, labels)
	room := map[string]string{"cpu": fmt.Sprint(processors), "memory": "1Ti", "pods": fmt.Sprint(processors)}
	text, _ := json.Marshal(map[string]any{ // of strings
		"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{"name": name, "labels": all, "annotations": map[string]string{"kwok.x-k8s.io/node": "fake"}},
		"status":   map[string]any{"capacity": room, "allocatable": room},
	})
	return string(text)
}
