package kube

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// stopPatch is the patch that ends a Job. A deadline that has passed ends it for good: queues such as Kueue start a suspended Job again.
const stopPatch = `{"metadata":{"annotations":{"` + AnnotationStopped + `":"the run has ended"}},"spec":{"activeDeadlineSeconds":1}}`

// AnnotationStopped is on a Job that was ended because its run is over. The reason in
// its status is then DeadlineExceeded.
const AnnotationStopped = "benchmark-ai.dev/stopped"

// Stop implements cluster.Stopper. The controller of Jobs deletes the pods that it ends. Stop does not end pods of an operator: the MPI
// operator ends them once the launcher has ended.
func (c *Cluster) Stop(ctx context.Context, r cluster.Ref) error {
	ctx, cancel := c.withTimeout(ctx)
	defer cancel()
	list, err := c.batch.Jobs(r.Scope).List(ctx, metav1.ListOptions{LabelSelector: attemptOfRef(r).selector()})
	if err != nil {
		return wrapError("look for the jobs of "+r.Job, err)
	}
	for i := range list.Items {
		if !needsStop(&list.Items[i]) {
			continue
		}
		name := list.Items[i].Name
		_, err := c.batch.Jobs(r.Scope).Patch(ctx, name, types.MergePatchType, []byte(stopPatch),
			metav1.PatchOptions{FieldManager: fieldManager})
		if err := ignoreGone(err); err != nil {
			return wrapError("stop job "+name, err)
		}
	}
	return nil
}
