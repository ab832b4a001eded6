// Package testbed gives tests a real Kubernetes.
//
// The suites that need one are run where EnvReal is set, as `make test-real`
// does. They are given the cluster of KUBECONFIG; where that is not set, the one
// called EnvCluster that is up on this machine; else one that is booted for the test
// and gone after it.
package testbed

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/test/testbed/kubecluster"
)

// Environment variables.
const (
	EnvReal    = "BAI_TEST_REAL" // 1 runs the suites that need a real Kubernetes
	EnvCluster = "BAI_BED"       // name of a cluster that is up on this machine
	// EnvOldest boots, where no nodes are needed, the oldest Kubernetes that the
	// platform works with.
	EnvOldest = "BAI_OLDEST"
	// EnvShort makes suites do less of the same, where their duration matters more than
	// their numbers.
	EnvShort = "BAI_SHORT"
)

// Size is how much of something a suite does: short where EnvShort is set.
func Size(full, short int) int {
	if os.Getenv(EnvShort) != "" {
		return short
	}
	return full
}

// Cluster is a Kubernetes that a test may use, with others at the same time:
// a test works in a namespace of its own.
type Cluster struct {
	kubecluster.Info

	// Own says that the cluster runs on this machine, so that its machines can
	// be switched off and its audit events read.
	Own bool

	dryRunOnce sync.Once
	dryRun     *dryRunner
	dryRunErr  error
}

// Kubernetes returns a cluster with nodes, or skips the test.
func Kubernetes(tb testing.TB) *Cluster {
	tb.Helper()
	return clusterFor(tb, 2)
}

// API returns a cluster that has at least the API server, its store and the controllers,
// or skips the test.
func API(tb testing.TB) *Cluster {
	tb.Helper()
	return clusterFor(tb, 0)
}

// Simulated returns a cluster of the test's own without a node: the API server,
// its store, the controllers and the scheduler, for nodes that package kwok
// simulates; or it skips the test.
func Simulated(tb testing.TB) *Cluster {
	tb.Helper()
	if os.Getenv(EnvReal) == "" {
		tb.Skip("needs a real Kubernetes: `make test-real` boots one")
	}
	return simulated(tb)
}

func clusterFor(tb testing.TB, nodes int) *Cluster {
	tb.Helper()
	if os.Getenv(EnvReal) == "" {
		tb.Skip("needs a real Kubernetes: `make test-real` boots one, or takes the one of KUBECONFIG")
	}
	if config := os.Getenv("KUBECONFIG"); config != "" {
		return &Cluster{Info: kubecluster.Info{Kubeconfig: config, Kubectl: "kubectl"}}
	}
	if name := os.Getenv(EnvCluster); name != "" {
		info, err := kubecluster.Read(name)
		if err != nil {
			tb.Fatal(err)
		}
		return &Cluster{Info: info, Own: true}
	}
	return boot(tb, nodes)
}

// Run runs kubectl, and returns its output.
func (c *Cluster) Run(tb testing.TB, args ...string) string {
	tb.Helper()
	out, err := c.Try(tb.Context(), args...)
	if err != nil {
		tb.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// Try runs kubectl.
func (c *Cluster) Try(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, c.Kubectl, append([]string{"--kubeconfig", c.Kubeconfig}, args...)...) //nolint:gosec // a test's
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Namespace makes a namespace that goes with the test.
func (c *Cluster) Namespace(tb testing.TB) string {
	tb.Helper()
	name := "t-" + strings.ToLower(randomText())
	c.Run(tb, "create", "namespace", name)
	c.Run(tb, "label", "namespace", name, "pod-security.kubernetes.io/enforce=baseline")
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), 10*time.Minute)
		defer cancel()
		if out, err := c.Try(ctx, "delete", "namespace", name, "--wait=false"); err != nil {
			tb.Errorf("delete the namespace %s: %v\n%s", name, err, out)
		}
	})
	return name
}

// Apply creates the objects of a JSON or YAML text.
func (c *Cluster) Apply(tb testing.TB, text string) {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "objects.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	c.Run(tb, "apply", "-f", path)
}

// Account makes a service account, and returns the path of a kubeconfig that is
// its alone.
func (c *Cluster) Account(tb testing.TB, scope, name string) string {
	tb.Helper()
	if _, err := c.Try(tb.Context(), "-n", scope, "get", "serviceaccount", name); err != nil {
		c.Run(tb, "-n", scope, "create", "serviceaccount", name)
	}
	token := strings.TrimSpace(c.Run(tb, "-n", scope, "create", "token", name))
	path := filepath.Join(tb.TempDir(), name+".kubeconfig")
	view := c.Run(tb, "config", "view", "--raw", "--minify", "-o", "json")
	var config map[string]any
	if err := json.Unmarshal([]byte(view), &config); err != nil {
		tb.Fatal(err)
	}
	users, _ := config["users"].([]any)
	for _, u := range users {
		if user, ok := u.(map[string]any); ok {
			user["user"] = map[string]any{"token": token}
		}
	}
	text, err := json.Marshal(config)
	if err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}
