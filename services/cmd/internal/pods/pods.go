// Package pods opens the cluster that a program's settings name.
package pods

import (
	"context"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
	"github.com/benchmark-ai/bai/services/internal/cluster/local"
)

// Cluster is a cluster of either kind.
type Cluster struct {
	cluster.Creator
	cluster.Deleter
	cluster.Observer

	// Ready says why the cluster is of no use at the moment.
	Ready func(ctx context.Context) error
	// Close lets go of it. What runs there goes on.
	Close func(ctx context.Context) error
}

// Open opens the local cluster where l names its directory, else that of
// Kubernetes.
func Open(k kube.Settings, l local.Settings, log *zap.Logger) (Cluster, error) {
	if l.Dir != "" {
		c, err := local.New(l)
		if err != nil {
			return Cluster{}, err
		}
		return Cluster{
			Creator: c, Deleter: c, Observer: c,
			Ready: func(context.Context) error { return nil },
			Close: func(ctx context.Context) error { return c.Close(ctx, true) },
		}, nil
	}
	c, err := kube.New(k, log)
	if err != nil {
		return Cluster{}, err
	}
	return Cluster{
		Creator: c, Deleter: c, Observer: c, Ready: c.Ready,
		Close: func(context.Context) error { c.Close(); return nil },
	}, nil
}
