//go:build !linux

package local

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// Settings are those of the cluster on Linux.
type Settings struct {
	Dir          string
	PodBinary    string
	Log          *zap.Logger
	Env          []string
	Private      string
	GPUs         int
	Secrets      string
	NoNamespaces bool
	Resync       time.Duration
}

// Cluster cannot be had on this system.
type Cluster struct{}

// New returns an error that names the alternatives.
func New(Settings) (*Cluster, error) {
	return nil, fmt.Errorf("the local cluster runs on Linux only, and this is %s: use a Kubernetes cluster (--kubeconfig)", runtime.GOOS)
}

// Namespaces is empty.
func (*Cluster) Namespaces() string { return "" }

// Limits is empty.
func (*Cluster) Limits() string { return "" }

// Running returns 0.
func (*Cluster) Running() int { return 0 }

// Close has no effect.
func (*Cluster) Close(context.Context, bool) error { return nil }

// Create implements cluster.Creator.
func (*Cluster) Create(context.Context, cluster.Object) error { return cluster.ErrNotFound }

// Delete implements cluster.Deleter.
func (*Cluster) Delete(context.Context, cluster.Ref) error { return nil }

// Stop implements cluster.Stopper.
func (*Cluster) Stop(context.Context, cluster.Ref) error { return nil }

// Observe implements cluster.Observer.
func (*Cluster) Observe(context.Context, cluster.Ref) (cluster.Snapshot, error) {
	return cluster.Snapshot{}, cluster.ErrNotFound
}

// Occupancy implements cluster.Occupier.
func (*Cluster) Occupancy(context.Context) (cluster.Occupancy, error) {
	return cluster.Occupancy{}, nil
}

// Labels implements cluster.Labeler.
func (*Cluster) Labels(context.Context, string, string, string) (map[string]string, error) {
	return nil, cluster.ErrNotFound
}

// Watch implements cluster.Observer.
func (*Cluster) Watch(ctx context.Context, _ func(cluster.Snapshot)) error {
	<-ctx.Done()
	return nil
}

// Survey implements cluster.Surveyor.
func (*Cluster) Survey(context.Context, cluster.SurveyRequest) (cluster.Survey, error) {
	return cluster.Survey{}, cluster.ErrNotFound
}

// Runs reports whether pods run that a cluster in dir began.
func Runs(string) bool { return false }
