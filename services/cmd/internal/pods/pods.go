// Package pods opens the cluster that a program's settings name.
package pods

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
	"github.com/benchmark-ai/bai/services/internal/cluster/local"
	"github.com/benchmark-ai/bai/services/internal/registry"
)

// Cluster is a local or a Kubernetes cluster.
type Cluster struct {
	cluster.Creator
	cluster.Deleter
	cluster.Stopper
	cluster.Observer
	cluster.Occupier
	cluster.Labeler

	// Annotator annotates pods. It is nil if pods find each other without it.
	Annotator cluster.Annotator
	// Logs reads the logs of containers. It is nil if all containers run under bai-pod.
	Logs cluster.Logger
	// Secrets reads pull secrets. It is nil if no images are run.
	Secrets registry.Secrets
	// Ready returns the reason why the cluster cannot be used now, or nil.
	Ready func(ctx context.Context) error
	// Close releases the cluster. Its pods continue to run.
	Close func(ctx context.Context) error
}

// Clusters are the settings of both kinds of cluster. A program uses one of them.
type Clusters struct {
	Cluster    Local         // the local cluster
	Kubernetes kube.Settings // used without the local cluster
}

// Local are the settings of the local cluster.
type Local struct {
	Dir       string `toml:"dir"`        // folder for its pods, for one process at a time; empty means that pods run in Kubernetes
	PodBinary string `toml:"pod_binary"` // the program bai-pod
	Secrets   string `toml:"secrets"`    // folder with users' secrets
}

// Validate names every setting at fault.
func (c *Clusters) Validate() error {
	var together error
	if (c.Cluster.Dir == "") != (c.Cluster.PodBinary == "") {
		together = errors.New("cluster: dir and pod_binary go together")
	}
	return errors.Join(together, c.Kubernetes.Validate())
}

// Open opens the local cluster if its directory is set, and otherwise the Kubernetes
// cluster.
func (c *Clusters) Open(log *zap.Logger) (Cluster, error) {
	if c.Cluster.Dir != "" {
		l, err := local.New(local.Settings{Dir: c.Cluster.Dir, PodBinary: c.Cluster.PodBinary, Secrets: c.Cluster.Secrets, Log: log})
		if err != nil {
			return Cluster{}, err
		}
		return Cluster{
			Creator: l, Deleter: l, Observer: l, Occupier: l, Labeler: l,
			Ready: func(context.Context) error { return nil },
			Close: func(ctx context.Context) error { return l.Close(ctx, true) },
		}, nil
	}
	k, err := kube.New(c.Kubernetes, log)
	if err != nil {
		return Cluster{}, err
	}
	return Cluster{
		Creator: k, Deleter: k, Observer: k, Occupier: k, Labeler: k, Annotator: k, Logs: k, Secrets: k, Ready: k.Ready,
		Close: func(context.Context) error { k.Close(); return nil },
	}, nil
}
