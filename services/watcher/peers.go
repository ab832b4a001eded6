package watcher

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/watcher/peers"
)

// maxAnnotations is how many pods of an attempt are annotated at a time.
const maxAnnotations = 16

// sharePeers gives the pods of an attempt that wait for each other's addresses all of them, once they have any. Each change of a pod is a
// reason to do so again, until every pod has them.
func (w *watcher) sharePeers(ctx context.Context, e *engine, seen cluster.Snapshot) error {
	if e.Annotator == nil {
		return nil
	}
	value, waiting := peers.Decide(seen.Pods)
	var all errgroup.Group
	all.SetLimit(maxAnnotations)
	for _, p := range waiting {
		all.Go(func() error { return e.Annotator.Annotate(ctx, p, cluster.AnnotationPeers, value) })
	}
	return wrapError(all.Wait(), "share the addresses of the pods of %s", seen.Ref.Job)
}
